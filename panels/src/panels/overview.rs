//! Every GPU, what is wrong, who holds the memory: the first screen, complete at 80×24.
//!
//! Three parts share the rows: GPUs (worst first when something is wrong), findings, holders. It
//! judges nothing by itself: findings come from elsewhere, a GPU that does not answer says so.

use probes::finding::{Severity, Subject};
use ratatui::layout::Position;

use crate::canvas::Canvas;
use crate::keys::Command;
use crate::list::{self, List};
use crate::panels::{Entry, Focus, Panel, Reply};
use crate::text;
use crate::view::View;
use crate::words::{self, ProcessKey};

mod findings;
mod gpus;
mod holders;
mod problem;
mod rest;

/// This panel in the list.
pub(super) const ENTRY: Entry = Entry {
    name: "overview",
    purpose: "Every GPU, what is wrong, and who holds the memory.",
    answers: &[Command::Open, Command::Copy],
    explains: &[
        (
            "BUSY",
            "Share of the driver's last sample period in which any kernel ran. It says nothing \
                  about how full the GPU was.",
        ),
        (
            "MEMORY",
            "█ largest holder, ▓ other holders, ░ used and in nobody's account, ▒ kept by \
                    the driver, · free.",
        ),
        ("HELD", "Memory in use, in GiB, without the driver's own reserve."),
        ("FREE", "What a new process could have, in GiB."),
        ("W", "Power draw of the board; LIM is the limit in force."),
        ("°C", "Temperature of the GPU; MEM°C of its memory."),
        ("MHz", "Clock of the multiprocessors. It falls at idle."),
        ("BUS", "PCIe traffic in both directions together, GB/s."),
        ("NVL", "NVLink traffic in both directions and over all links together, GB/s."),
        (
            "TENS DRAM L2",
            "Busy share of the tensor pipes, of the memory's bandwidth, and the share \
                          of accesses to local memory that the L2 cache served. Hopper and newer.",
        ),
        ("ECC", "Uncorrected memory errors since the driver was loaded."),
        ("PCIE", "Generation and lanes of the link now. They fall at idle on many parts."),
        ("SLOWED BY", "What holds the clocks down. The power cap alone is normal at full load."),
        (
            "holders",
            "One row a process, all its GPUs together. Memory that processes share counts \
                     in each of them.",
        ),
        (
            "WHERE",
            "Container, pod, Slurm job or systemd unit of the process, by the best name that is \
                   known.",
        ),
        (
            "held by nobody visible",
            "In use, and in no visible process's account: contexts of \
                                    processes that are gone or in another PID namespace, managed \
                                    memory, the driver's own.",
        ),
        (
            "– and ?",
            "– is not supported here; ? should be known and is not: select the row and the \
                     reason is shown.",
        ),
    ],
    make: || Box::<Overview>::default(),
};

/// A row that can be selected.
#[derive(Clone, Debug, PartialEq)]
enum Row {
    Gpu(String),
    Finding(usize),
    Holder(ProcessKey),
    /// A sum that is no process: nobody, reserve.
    Sum(holders::Sum),
}

#[derive(Default)]
struct Overview {
    list: List<Row>,
    offsets: [usize; 3],
}

impl Panel for Overview {
    fn subject(&self, view: &View, _focus: &Focus) -> String {
        crate::frame::box_subject(view)
    }

    fn draw(&mut self, view: &View, _focus: &Focus, canvas: &mut Canvas) {
        let gpus = gpus::order(view);
        let holders = holders::rows(view);
        let found = view.findings.len();
        let mut keys: Vec<Row> =
            gpus.iter().map(|at| Row::Gpu(words::gpu_key(&view.snapshot.gpus[*at]))).collect();
        keys.extend((0..found).map(Row::Finding));
        keys.extend(holders.iter().map(holders::Holder::key));
        self.list.set(keys);

        let problem = problem::lines(view);
        let mut y = 0;
        if !problem.is_empty() {
            y = problem::draw(canvas, &problem);
        }
        let room = usize::from(canvas.height().saturating_sub(y));
        let heads = usize::from(!gpus.is_empty()) + usize::from(!holders.is_empty());
        let split = share_rows(room.saturating_sub(heads), gpus.len(), found, holders.len());
        let spare = room.saturating_sub(heads + split.0 + split.1 + split.2);
        // Blank rows between the parts once everything is shown.
        let gap = u16::from(spare >= 3);
        self.list.set_page(split.0.max(split.2));
        let place = self.list.place();
        let in_part = |from: usize, count: usize| place.checked_sub(from).filter(|at| *at < count);

        if !gpus.is_empty() {
            let rows =
                list::window(&mut self.offsets[0], in_part(0, gpus.len()), gpus.len(), split.0);
            let columns = gpus::columns(canvas.width());
            gpus::head(canvas, y, &columns, &rows, gpus.len());
            y += 1;
            for at in rows {
                gpus::draw(canvas, y, &columns, view, gpus[at]);
                self.mark(canvas, y, at);
                y += 1;
            }
        }
        if gpus.is_empty() && problem.is_empty() {
            canvas.text(1, y, "no GPU", canvas.theme.dim());
        }
        y += gap;
        let from = gpus.len();
        let rows = list::window(&mut self.offsets[1], in_part(from, found), found, split.1);
        let hidden = found - rows.len();
        let last = rows.end;
        for at in rows {
            let more = if at + 1 == last { hidden } else { 0 };
            findings::draw(canvas, y, view, &view.findings[at], more);
            self.mark(canvas, y, from + at);
            y += 1;
        }
        if found == 0 && spare > 0 && !gpus.is_empty() {
            let glyph = canvas.theme.severity_glyph(Severity::Info);
            canvas.glyph(1, y, glyph, canvas.theme.dim());
            let words = "driver, GPU health, memory errors: nothing found";
            let end = canvas.text(3, y, words, canvas.theme.dim());
            // Whole or not at all: half a caveat is none.
            let caveat = "   nothing else is judged";
            if end + text::width(caveat) < canvas.width() {
                canvas.text(end, y, caveat, canvas.theme.faint());
            }
            y += 1;
        }
        y += gap;
        let from = from + found;
        if !holders.is_empty() {
            let count = holders.len();
            let rows = list::window(&mut self.offsets[2], in_part(from, count), count, split.2);
            let plan = holders::plan(canvas.width());
            holders::head(canvas, y, &plan, &rows, count);
            y += 1;
            for at in rows {
                holders::draw(canvas, y, &plan, view, &holders[at]);
                self.mark(canvas, y, from + at);
                y += 1;
            }
        }
        rest::draw(canvas, y + 1, view);
    }

    fn command(&mut self, command: Command, view: &View, focus: &mut Focus) -> Reply {
        if self.list.command(command) {
            self.follow(view, focus);
            return Reply::Redraw;
        }
        match command {
            Command::Open => self.open(focus),
            Command::Copy => self.copy(view),
            _ => Reply::Ignored,
        }
    }

    fn click(&mut self, at: Position, view: &View, focus: &mut Focus) -> Reply {
        match self.list.click(at.y) {
            Some(true) => self.open(focus),
            Some(false) => {
                self.follow(view, focus);
                Reply::Redraw
            }
            None => Reply::Ignored,
        }
    }

    fn reason(&self, view: &View) -> Option<String> {
        match self.list.selected()? {
            Row::Gpu(key) => {
                let gpu = view.snapshot.gpus.iter().find(|gpu| words::gpu_key(gpu) == *key)?;
                gpus::reason(gpu, view)
            }
            Row::Holder(key) => holders::reason(key.find(view.snapshot)?),
            Row::Sum(sum) => holders::sum_reason(view, *sum),
            Row::Finding(_) => None,
        }
    }
}

impl Overview {
    fn mark(&mut self, canvas: &mut Canvas, y: u16, at: usize) {
        self.list.drawn(canvas.screen_row(y), at);
        if self.list.is_at(at) {
            canvas.select(y);
        }
    }

    /// The GPU that other panels show is the one selected here, or the one that the row is about.
    fn follow(&self, view: &View, focus: &mut Focus) {
        let index = match self.list.selected() {
            Some(Row::Gpu(key)) => {
                focus.gpu = Some(key.clone());
                return;
            }
            Some(Row::Finding(at)) => match view.findings.get(*at).map(|found| &found.subject) {
                Some(Subject::Gpu(index)) => Some(*index),
                _ => None,
            },
            Some(Row::Holder(key)) => key
                .find(view.snapshot)
                .and_then(|process| process.gpus.first())
                .map(|part| part.gpu_index),
            _ => None,
        };
        let gpu = view.snapshot.gpus.iter().find(|gpu| Some(gpu.index) == index);
        if let Some(gpu) = gpu {
            focus.gpu = Some(words::gpu_key(gpu));
        }
    }

    fn open(&self, focus: &mut Focus) -> Reply {
        match self.list.selected() {
            Some(Row::Gpu(key)) => {
                focus.gpu = Some(key.clone());
                Reply::Go("gpu")
            }
            Some(Row::Finding(at)) => Reply::Finding(*at),
            Some(Row::Holder(key)) => {
                focus.process = Some(*key);
                Reply::Go("processes")
            }
            Some(Row::Sum(_)) => Reply::Go("memory"),
            None => Reply::Redraw,
        }
    }

    fn copy(&self, view: &View) -> Reply {
        let words = match self.list.selected() {
            Some(Row::Gpu(key)) => Some(key.clone()),
            Some(Row::Finding(at)) => view.findings.get(*at).map(crate::dialog::finding_text),
            Some(Row::Holder(key)) => Some(key.pid.to_string()),
            _ => None,
        };
        words.map_or(Reply::Redraw, Reply::Copy)
    }
}

/// How many rows GPUs, findings and holders get. All GPUs first, as long as the worst finding and a
/// third of the rows for holders remain; then findings; then holders.
fn share_rows(room: usize, gpus: usize, found: usize, holders: usize) -> (usize, usize, usize) {
    let least_found = found.min(2).min(room / 4 + usize::from(room > 1));
    let least_holders = holders.min(room / 3);
    let gpus = gpus.min(room.saturating_sub(least_found + least_holders));
    let rest = room - gpus;
    let found = found.min(least_found.max(rest.saturating_sub(holders.min(8)))).min(6).min(rest);
    (gpus, found, holders.min(rest - found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_gpus_and_eight_holders_fit_into_twenty_four_rows() {
        // 24 rows less header, bar and two heads.
        assert_eq!(share_rows(20, 8, 2, 20), (8, 2, 10));
        assert_eq!(share_rows(20, 8, 9, 20), (8, 4, 8));
    }

    #[test]
    fn sixty_four_gpus_leave_rows_for_findings_and_holders() {
        let (gpus, found, holders) = share_rows(20, 64, 3, 64);
        assert!(gpus >= 10 && found >= 2 && holders >= 6);
        assert_eq!(share_rows(0, 64, 3, 64), (0, 0, 0));
        let (gpus, found, holders) = share_rows(1, 64, 3, 64);
        assert_eq!(gpus + found + holders, 1);
    }
}
