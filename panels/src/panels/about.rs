//! What looking costs, and how the data arrives: our own calls, time, memory, losses and sources.

use probes::finding::Severity;
use probes::reading::Absence;
use probes::units;

use crate::canvas::Canvas;
use crate::facts::{self, Block};
use crate::keys::Command;
use crate::list::Scroll;
use crate::panels::{Entry, Focus, Panel, Reply};
use crate::text;
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
        (
            "sources",
            "How long the last read of each took, and what it could not read and why. A dash: it \
                     is read together with another.",
        ),
        (
            "driver calls",
            "What each kind of call costs; MOST is the longest single one of the last minute.",
        ),
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
        let blocks = [feed(view), drawing(view), sampler(view)];
        let tables = [sources(view), calls(view)];
        let width = canvas.width().saturating_sub(1);
        let above = facts::rows(&blocks, width).saturating_add(1);
        let rows = tables.iter().fold(above, |sum, table| sum.saturating_add(table.height(width)));
        super::paged(canvas, &mut self.scroll, rows.saturating_sub(1), |page| {
            facts::draw(page, 1, &blocks);
            let mut y = above;
            for table in &tables {
                table.draw(page, y);
                y = y.saturating_add(table.height(width));
            }
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
    if let Some(span) = view.past.span {
        let moment = |at| units::moment(at, view.now_ms, view.utc_offset_seconds);
        let end = match feed.source {
            Source::Recording => moment(span.to_ms),
            _ => "now".into(),
        };
        block.text("remembered", format!("{} to {end}", moment(span.from_ms)));
    }
    if let Some(trouble) = &view.past.trouble {
        block.text("no past", trouble);
    }
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
    block.text("in the driver", format!("{:.2} s", cost.nvml_seconds_total));
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

/// A table below the blocks: name, figures at the right of their columns, a remark.
struct Table {
    title: &'static str,
    note: &'static str,
    /// Heads of the name, the figures and the remark.
    heads: Vec<&'static str>,
    rows: Vec<Row>,
}

struct Row {
    name: String,
    figures: Vec<String>,
    remark: String,
}

/// Columns of a table's name and of a figure.
const NAME: u16 = 32;
const FIGURE: u16 = 9;

impl Table {
    fn remark_x(&self) -> u16 {
        let figures = self.rows.first().map_or(0, |row| row.figures.len());
        NAME + u16::try_from(figures).unwrap_or(0) * FIGURE + 2
    }

    fn remark(&self, row: &Row, width: u16) -> Vec<String> {
        text::wrap(&row.remark, width.saturating_sub(self.remark_x()).min(90))
    }

    fn height(&self, width: u16) -> u16 {
        let rows: usize = self.rows.iter().map(|row| self.remark(row, width).len()).sum();
        u16::try_from(rows).unwrap_or(u16::MAX - 8).max(1) + 3
    }

    fn draw(&self, canvas: &mut Canvas, mut y: u16) {
        let theme = canvas.theme;
        let end = canvas.text(0, y, self.title, theme.strong());
        canvas.text(end + 2, y, self.note, theme.dim());
        y += 1;
        if self.rows.is_empty() {
            canvas.text(0, y, "none yet", theme.dim());
            return;
        }
        let remark_x = self.remark_x();
        canvas.text(0, y, self.heads[0], theme.heading());
        for (head, at) in self.heads[1..].iter().zip(0..) {
            canvas.right(NAME + at * FIGURE, y, FIGURE, head, theme.heading());
        }
        y += 1;
        for row in &self.rows {
            canvas.text_in(0, y, NAME, &row.name, theme.text());
            for (figure, at) in row.figures.iter().zip(0..) {
                canvas.right(NAME + at * FIGURE, y, FIGURE, figure, theme.text());
            }
            for line in self.remark(row, canvas.width()) {
                canvas.text(remark_x, y, &line, theme.dim());
                y += 1;
            }
        }
    }
}

fn sources(view: &View) -> Table {
    let rows = view.snapshot.self_cost.sources.iter().map(|source| Row {
        name: source.name.replace('_', " "),
        // One that is read on the way of another has no time of its own.
        figures: vec![match source.took_us {
            0 => "–".into(),
            took => units::count(took.into()),
        }],
        remark: source.absent.clone().unwrap_or_default(),
    });
    let rows = rows.collect();
    Table { title: "SOURCES", note: "their last read", heads: vec!["SOURCE", "TOOK µs"], rows }
}

fn calls(view: &View) -> Table {
    let rows = view.snapshot.self_cost.calls.iter().map(|call| Row {
        name: call.call.strip_prefix("nvmlDevice").unwrap_or(&call.call).into(),
        figures: vec![
            units::count(call.count),
            units::count(whole(call.mean_us)),
            units::count(call.max_us.into()),
        ],
        remark: String::new(),
    });
    let rows = rows.collect();
    let heads = vec!["CALL", "TIMES", "MEAN µs", "MOST µs"];
    Table {
        title: "DEAREST DRIVER CALLS",
        note: "last minute, by the time of all together",
        heads,
        rows,
    }
}

/// Whole microseconds, cut like the longest call's, so that a mean is never above it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast saturates"
)]
fn whole(us: f64) -> u64 {
    us as u64
}
