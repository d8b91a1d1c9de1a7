//! One GPU in full: every reading of every group, each absent one with its reason, each group with
//! the age of its values.

use probes::snapshot::{Gpu, Stamp};
use probes::units;

use crate::canvas::Canvas;
use crate::facts;
use crate::keys::Command;
use crate::list::Scroll;
use crate::panels::{Entry, Focus, Panel, Reply, memory, memory_bar};
use crate::view::View;
use crate::words;

mod groups;

/// This panel in the list.
pub(super) const ENTRY: Entry = Entry {
    name: "gpu",
    purpose: "Everything that is known about one GPU.",
    answers: &[Command::Left, Command::Open, Command::Copy],
    explains: &[
        (
            "BUSY",
            "From the driver's own sample periods: the share of time in which any kernel ran. \
                  Memory is the share in which memory was accessed; it is no capacity.",
        ),
        (
            "COUNTERS",
            "Hardware counters averaged between two samples (GPM), without blocking and \
                      without the profiler's lock.",
        ),
        (
            "held down by",
            "Why the clocks are not at their best. idle is no fault; power cap alone \
                          is normal at full load. The times below count since the driver was \
                          loaded and cannot be missed between two looks.",
        ),
        (
            "left to slowdown",
            "Degrees until the GPU slows itself down. Older parts have a fixed \
                              limit instead.",
        ),
        ("volatile, lifetime", "Memory errors since the driver was loaded, and in the GPU's life."),
        (
            "remapped rows",
            "Memory rows replaced by spare ones. Pending waits for a reset; failed \
                           means that the GPU must be replaced.",
        ),
        ("recovery", "What the driver asks for to make this GPU whole again."),
        ("GSP firmware", "Must be of the driver's version."),
        (
            "persistence",
            "The driver stays loaded without users. Off, the first user waits a second \
                         or more.",
        ),
    ],
    make: || Box::<OneGpu>::default(),
};

#[derive(Default)]
struct OneGpu {
    scroll: Scroll,
}

impl Panel for OneGpu {
    fn subject(&self, view: &View, focus: &Focus) -> String {
        memory::subject("gpu", view, focus)
    }

    fn draw(&mut self, view: &View, focus: &Focus, canvas: &mut Canvas) {
        let Some(at) = focus.gpu_place(view) else {
            canvas.text(1, 1, "no GPU to show; the overview says why", canvas.theme.dim());
            return;
        };
        let gpu = &view.snapshot.gpus[at];
        let blocks = groups::blocks(view, gpu);
        let head = head_rows(view, gpu);
        let rows = facts::rows(&blocks, canvas.width().saturating_sub(1)).saturating_add(head);
        super::paged(canvas, &mut self.scroll, rows, |page| {
            draw_head(page, view, at);
            facts::draw(page, head, &blocks);
        });
    }

    fn command(&mut self, command: Command, view: &View, focus: &mut Focus) -> Reply {
        match command {
            Command::Left | Command::Right => {
                focus.step_gpu(view, command == Command::Right);
                Reply::Redraw
            }
            Command::Open => Reply::Go("memory"),
            Command::Copy => match focus.gpu_place(view) {
                Some(at) => Reply::Copy(words::gpu_key(&view.snapshot.gpus[at])),
                None => Reply::Redraw,
            },
            _ if self.scroll.command(command) => Reply::Redraw,
            _ => Reply::Ignored,
        }
    }
}

/// Findings, silence, bars, and a blank row.
fn head_rows(view: &View, gpu: &Gpu) -> u16 {
    let found = view.findings.iter().filter(|finding| words::concerns(view, finding, gpu)).count();
    let silent = u16::from(words::silence(gpu, view.at_ms()).is_some());
    u16::try_from(found).unwrap_or(u16::MAX - 8) + silent + 3
}

fn draw_head(page: &mut Canvas, view: &View, at: usize) {
    let theme = page.theme;
    let gpu = &view.snapshot.gpus[at];
    let mut y = 0;
    for finding in view.findings.iter().filter(|finding| words::concerns(view, finding, gpu)) {
        let style = theme.severity(finding.severity);
        page.glyph(0, y, theme.severity_glyph(finding.severity), style);
        let x = page.text(2, y, words::severity(finding.severity), style) + 2;
        page.text(x, y, &finding.title, theme.text());
        y += 1;
    }
    if let Some(words) = words::silence(gpu, view.at_ms()) {
        let thread = words::stuck_in(gpu).map_or(String::new(), |at| format!(", in {at}"));
        let words = format!("● {words}{thread}{}", words::standing(gpu));
        page.text(0, y, &words, theme.warning());
        y += 1;
    }
    let columns = page.width().saturating_sub(30);
    page.text(0, y, "memory", theme.dim());
    memory_bar::draw(page, 8, y, columns, view, at);
    let free = gpu.memory.free_bytes.get().map_or("?".into(), units::bytes);
    page.text(10 + columns, y, &format!("{free} free"), theme.text());
    page.text(0, y + 1, "busy", theme.dim());
    let series = view.history.series(gpu, "infertop_gpu_busy_ratio").rev();
    page.spark(8, y + 1, columns, series, (0.0, 1.0), theme.text());
    let busy = gpu.utilization.gpu_ratio.get().map_or("–".into(), units::percent);
    page.text(10 + columns, y + 1, &busy, theme.text());
}

/// The age of a group's values, for behind its title.
fn age(view: &View, stamp: Stamp) -> String {
    match stamp.age_seconds(view.at_ms()) {
        None => String::new(),
        Some(0) => "now".into(),
        Some(age) => format!("{} ago", units::duration(age)),
    }
}
