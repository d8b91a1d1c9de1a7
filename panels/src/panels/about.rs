//! What looking costs, and how the data arrives: our own calls, time, memory, losses and sources.

use probes::finding::Severity;
use probes::reading::Absence;
use probes::units;

use crate::canvas::Canvas;
use crate::facts::{self, Block};
use crate::keys::Command;
use crate::list::Scroll;
use crate::panels::{Entry, Focus, Panel, Reply};
use crate::value::Value;
use crate::view::{Source, View};

/// This panel in the list.
pub(super) const ENTRY: Entry = Entry {
    name: "about",
    purpose: "What looking costs, and how the data arrives.",
    answers: &[],
    explains: &[
        ("calls a GPU", "Driver calls in the last interval, for the GPU that had the most."),
        ("in the driver", "Time spent inside driver calls since the start, all threads together."),
        (
            "dropped values",
            "Figures that cannot be (a share above 1, a wrapped counter) are dropped \
                            and counted, never shown.",
        ),
        (
            "apart",
            "Time between reading the first and the last GPU's quick counters: what is shown \
                   side by side is that far apart.",
        ),
        ("lost snapshots", "Snapshots that were taken and never arrived here."),
        ("sources", "How long the last read of each took, or why it gave nothing."),
    ],
    make: || Box::<About>::default(),
};

#[derive(Default)]
struct About {
    scroll: Scroll,
}

impl Panel for About {
    fn subject(&self, _view: &View, _focus: &Focus) -> String {
        "about infertop itself".into()
    }

    fn draw(&mut self, view: &View, _focus: &Focus, canvas: &mut Canvas) {
        let blocks = [feed(view), sampler(view), drawing(view), sources(view), calls(view)];
        let rows = facts::rows(&blocks, canvas.width().saturating_sub(1)).saturating_add(1);
        super::paged(canvas, &mut self.scroll, rows, |page| {
            facts::draw(page, 1, &blocks);
        });
    }

    fn command(&mut self, command: Command, _view: &View, _focus: &mut Focus) -> Reply {
        if self.scroll.command(command) { Reply::Redraw } else { Reply::Ignored }
    }
}

fn feed(view: &View) -> Block {
    let feed = view.feed;
    let mut block = Block::new("FEED");
    let source = match feed.source {
        Source::Live => "an own sampler",
        Source::Daemon => "the daemon's socket",
        Source::Recording => "a recording",
    };
    block.text("from", source);
    block.text("every", format!("{:.2} s", feed.interval_ms as f64 / 1000.0));
    let last = match feed.last_ms {
        Some(at) => {
            let age = view.now_ms.saturating_sub(at);
            format!("{:.1} s ago", age as f64 / 1000.0)
        }
        None => "none yet".into(),
    };
    block.text("last snapshot", last);
    block.text("number", units::count(view.snapshot.sequence));
    block.text("driver generation", view.snapshot.generation.to_string());
    let value = Value::plain(units::count(feed.lost)).quiet_if(feed.lost == 0);
    block.put("lost snapshots", value);
    if let Some(trouble) = &feed.trouble {
        block.put("trouble", Value::plain(trouble).alarm_if(true, Severity::Warning));
    }
    block
}

fn sampler(view: &View) -> Block {
    let cost = &view.snapshot.self_cost;
    let mut block = Block::new("SAMPLER");
    block.text("pid", cost.pid.to_string());
    block.text("calls a GPU", format!("{} in the last interval", cost.nvml_calls_per_gpu));
    block.text("driver calls", units::count(cost.nvml_calls_total));
    block.text("in the driver", format!("{:.1} s", cost.nvml_seconds_total));
    block.text("GPUs read apart", format!("{:.1} ms", f64::from(cost.spread_us) / 1000.0));
    block.put("dropped values", Value::plain(units::count(cost.dropped_values_total)));
    block
        .put("CPU", Value::of(&cost.cpu_ratio, |ratio| format!("{:.2}% of a core", ratio * 100.0)));
    block.put("CPU time", Value::of(&cost.cpu_seconds_total, |s| format!("{s:.1} s")));
    block.put("memory", Value::bytes(&cost.rss_bytes));
    block.put("threads", Value::shown(&cost.threads));
    block
}

fn drawing(view: &View) -> Block {
    let mut block = Block::new("THIS PROGRAM");
    let unknown = || Value::absent(&Absence::NotRead);
    let cpu = view.feed.own_cpu_ratio;
    let cpu = cpu.map(|ratio| Value::plain(format!("{:.2}% of a core", ratio * 100.0)));
    block.put("CPU with sampler", cpu.unwrap_or_else(unknown));
    let memory = view.feed.own_rss_bytes.map(|bytes| Value::plain(units::bytes(bytes)));
    block.put("memory", memory.unwrap_or_else(unknown));
    block
}

fn sources(view: &View) -> Block {
    let mut block = Block::new("SOURCES");
    for source in &view.snapshot.self_cost.sources {
        let took = format!("{:.1} ms", f64::from(source.took_us) / 1000.0);
        let words = match &source.absent {
            Some(why) => format!("{took}, nothing: {why}"),
            None => took,
        };
        block.put(source.name.replace('_', " "), Value::plain(words));
    }
    if block.is_empty() {
        block.put("none", Value::plain("nothing has been read yet").quiet_if(true));
    }
    block
}

fn calls(view: &View) -> Block {
    let mut block = Block::new("DEAREST DRIVER CALLS").note("last minute");
    for call in &view.snapshot.self_cost.calls {
        let name = call.call.strip_prefix("nvmlDevice").unwrap_or(&call.call);
        let words = format!(
            "{} times, {:.2} ms, at most {:.1} ms",
            units::count(call.count),
            call.mean_us / 1000.0,
            f64::from(call.max_us) / 1000.0
        );
        block.put(name, Value::plain(words));
    }
    if block.is_empty() {
        block.put("none", Value::plain("").quiet_if(true));
    }
    block
}
