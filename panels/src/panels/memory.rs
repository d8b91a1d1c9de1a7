//! One GPU's memory, split until it adds up: the sum in words, a bar with a scale, each holder, what
//! nobody visible holds, what a new process could have.
//!
//! Every part says how it is known. What happens inside a holder (weights, KV pool, graphs) only the
//! engine can tell; as long as none does, a holder is one part.

use std::fmt::Write;

use probes::finding::Subject;
use probes::ledger::{Holder, Ledger};
use probes::proc::Process;
use probes::reading::{Absence, Reading};
use probes::snapshot::Gpu;
use probes::units;
use ratatui::layout::Position;

use crate::canvas::Canvas;
use crate::keys::Command;
use crate::list::List;
use crate::panels::{Entry, Focus, Panel, Reply};
use crate::view::View;
use crate::words::{self, ProcessKey};

mod notes;
mod picture;

/// This panel in the list.
pub(super) const ENTRY: Entry = Entry {
    name: "memory",
    purpose: "One GPU's memory, split until it adds up.",
    answers: &[Command::Left, Command::EndProcess, Command::Open, Command::Copy],
    explains: &[
        ("reserved", "Kept by driver and firmware; no process can have it."),
        (
            "held",
            "What the driver counts for the processes that it lists: context, weights, KV \
                  pool, all together.",
        ),
        (
            "nobody",
            "In use, and in no visible process's account: a process of another PID \
                    namespace, a context left by one that ended, managed memory, the driver's own.",
        ),
        (
            "free",
            "What a new process could have. One allocation may get less: memory can be in \
                  pieces.",
        ),
        (
            "counted twice",
            "Memory that several processes share (CUDA IPC) is in each one's account, \
                           so that the accounts together may exceed what is in use.",
        ),
        ("measured", "The driver said so. Estimated: computed from what it said."),
        ("BAR1", "The window through which CPUs and other devices reach the memory."),
        (
            "unified",
            "The GPU has no memory of its own and takes the system's; free is then what \
                     the system has left.",
        ),
    ],
    make: || Box::<Memory>::default(),
};

#[derive(Default)]
struct Memory {
    list: List<ProcessKey>,
}

/// Columns before the parts of a row: glyph and amount.
const LEFT: u16 = 11;
/// Beyond this the eye loses the row between its ends.
const WIDEST: u16 = 132;

impl Panel for Memory {
    fn subject(&self, view: &View, focus: &Focus) -> String {
        subject("memory", view, focus)
    }

    fn draw(&mut self, view: &View, focus: &Focus, canvas: &mut Canvas) {
        let Some(at) = focus.gpu_place(view) else {
            self.list.set(Vec::new());
            canvas.text(1, 1, "no GPU to show; the overview says why", canvas.theme.dim());
            return;
        };
        let gpu = &view.snapshot.gpus[at];
        let empty = Ledger::default();
        let ledger = view.ledgers.get(at).unwrap_or(&empty);
        let theme = canvas.theme;
        let mut y = sum(canvas, 0, gpu, ledger);
        if let Some(words) = words::silence(gpu, view.at_ms()) {
            let words = format!("● {words}{}", words::standing(gpu));
            canvas.text(1, y, &words, theme.warning());
            y += 1;
        }
        let roomy = canvas.height() >= 18;
        y = picture::bar(canvas, y + u16::from(roomy), view, at) + u16::from(roomy);

        let tail = notes::lines(view, gpu, ledger, canvas.width().saturating_sub(2));
        // The holders get what the notes leave, and at least a few rows.
        let count = u16::try_from(ledger.holders.len()).unwrap_or(u16::MAX);
        let rest = canvas.height().saturating_sub(y + 1);
        let notes = u16::try_from(tail.len()).unwrap_or(0) + 1;
        let sums = 2 + u16::from(ledger.unattributed_bytes.value() != Some(&0));
        // On a low terminal one holder is worth more than the rows that it is added to.
        let most = rest.saturating_sub(sums).max(1);
        let rows = count.min(rest.saturating_sub(sums + notes).max(3)).min(most);
        y = self.holders(canvas, y, rows, view, gpu, ledger);
        for (line, style) in tail {
            if line.is_empty() && !roomy {
                continue;
            }
            let style = if style { theme.text() } else { theme.dim() };
            canvas.text(1, y, &line, style);
            y += 1;
        }
        y += u16::from(roomy);
        picture::trend(canvas, y, view, gpu);
        picture::all(canvas, y + 2, view, at);
    }

    fn command(&mut self, command: Command, view: &View, focus: &mut Focus) -> Reply {
        if self.list.command(command) {
            return Reply::Redraw;
        }
        let chosen = self.list.selected().copied();
        match (command, chosen) {
            (Command::Left | Command::Right, _) => {
                focus.step_gpu(view, command == Command::Right);
                Reply::Redraw
            }
            (Command::Open, Some(key)) => {
                focus.process = Some(key);
                Reply::Go("processes")
            }
            (Command::EndProcess, Some(key)) => Reply::EndProcess(key),
            (Command::Copy, Some(key)) => Reply::Copy(key.pid.to_string()),
            (Command::Open | Command::EndProcess | Command::Copy, None) => Reply::Redraw,
            _ => Reply::Ignored,
        }
    }

    fn click(&mut self, at: Position, _view: &View, focus: &mut Focus) -> Reply {
        match self.list.click(at.y) {
            Some(true) => {
                focus.process = self.list.selected().copied();
                Reply::Go("processes")
            }
            Some(false) => Reply::Redraw,
            None => Reply::Ignored,
        }
    }
}

/// `memory · GPU 4  H100 80GB HBM3` for panels that look at one GPU.
pub(super) fn subject(panel: &str, view: &View, focus: &Focus) -> String {
    let Some(at) = focus.gpu_place(view) else { return panel.into() };
    let gpu = &view.snapshot.gpus[at];
    format!("{panel} · GPU {}  {}", gpu.label(), gpu.name.value().map_or("?", String::as_str))
}

/// The closing sum in words.
fn sum(canvas: &mut Canvas, y: u16, gpu: &Gpu, ledger: &Ledger) -> u16 {
    let theme = canvas.theme;
    let fine = |reading: &Reading<u64>| match reading {
        Reading::Value(bytes) => units::gib_fine(*bytes),
        Reading::Absent(Absence::Unsupported | Absence::TooOld) => "–".into(),
        Reading::Absent(_) => "?".into(),
    };
    if let (Reading::Absent(why), Reading::Absent(_)) = (&ledger.total_bytes, &ledger.free_bytes) {
        let words = match words::silence_short(gpu) {
            Some(_) => "memory is not known".into(),
            None => format!("memory is not known: {why}"),
        };
        canvas.text(1, y, &words, theme.strong());
        return y + 1;
    }
    let mut words = format!("{} GiB = ", fine(&ledger.total_bytes));
    if gpu.memory.unified {
        let _ = write!(
            words,
            "{} in use by the system, {} of it for the GPU + {} free",
            fine(&gpu.memory.used_bytes),
            units::gib_fine(ledger.held_bytes()),
            fine(&ledger.free_bytes),
        );
    } else {
        let _ = write!(
            words,
            "{} reserved + {} held + {} nobody + {} free",
            fine(&ledger.reserved_bytes),
            units::gib_fine(ledger.held_bytes()),
            fine(&ledger.unattributed_bytes),
            fine(&ledger.free_bytes),
        );
    }
    if ledger.shared_bytes > 0 {
        let _ = write!(words, " − {} counted twice", units::gib_fine(ledger.shared_bytes));
    }
    canvas.text(1, y, &words, theme.strong());
    y + 1
}

impl Memory {
    /// The parts of the sum, one row each.
    fn holders(
        &mut self,
        canvas: &mut Canvas,
        mut y: u16,
        rows: u16,
        view: &View,
        gpu: &Gpu,
        ledger: &Ledger,
    ) -> u16 {
        let theme = canvas.theme;
        let glyphs = theme.glyphs();
        let found: Vec<(&Holder, &Process)> = ledger
            .holders
            .iter()
            .filter_map(|holder| Some((holder, view.snapshot.processes.get(holder.process)?)))
            .collect();
        self.list.set(found.iter().map(|(_, process)| ProcessKey::of(process)).collect());
        let range = self.list.window(rows);
        let hidden = found.len() - range.len();
        let low = canvas.height().saturating_sub(y) < 5;
        if !gpu.memory.unified && !low {
            let part = Part { glyph: glyphs.reserved, known: "measured", dim: true };
            amount(canvas, y, &part, &ledger.reserved_bytes, "driver reserved");
            y += 1;
        }
        for at in range {
            let (holder, process) = found[at];
            let glyph = if at == 0 { glyphs.held } else { glyphs.others };
            let part = Part { glyph, known: "measured", dim: false };
            amount(canvas, y, &part, &holder.bytes, "");
            Self::who(canvas, y, view, process);
            self.list.drawn(canvas.screen_row(y), at);
            if self.list.is_at(at) {
                canvas.select(y);
            }
            y += 1;
        }
        if hidden > 0 && !low {
            canvas.text(LEFT, y, &format!("{hidden} more"), theme.dim());
            y += 1;
        }
        if !gpu.memory.unified && ledger.unattributed_bytes.value() != Some(&0) {
            let part = Part { glyph: glyphs.nobody, known: "measured", dim: false };
            let since = since(view, gpu);
            let name = format!("held by nobody visible{since}");
            amount(canvas, y, &part, &ledger.unattributed_bytes, &name);
            y += 1;
        }
        let part = Part { glyph: glyphs.free, known: "measured", dim: false };
        // While MIG is on, a process gets memory of an instance alone.
        let cut = gpu.mig.is_none() && gpu.identity.mig_enabled.get() == Some(true);
        let name =
            if cut { "free, inside and outside of instances" } else { "free for a new process" };
        amount(canvas, y, &part, &ledger.free_bytes, name);
        y + 1
    }

    fn who(canvas: &mut Canvas, y: u16, view: &View, process: &Process) {
        let theme = canvas.theme;
        let width = canvas.width().min(WIDEST);
        let known = 10;
        let owner = match width {
            0..72 => 0,
            72..110 => 18,
            _ => 32,
        };
        let pid_x = width.saturating_sub(known + owner + 12 + 9);
        let severity = words::process_severity(view, process);
        let style = severity.map_or(theme.text(), |severity| theme.severity(severity));
        let mut x = LEFT;
        if let Some(severity) = severity {
            canvas.glyph(x, y, theme.severity_glyph(severity), style);
            x += 2;
        }
        let room = pid_x.saturating_sub(x);
        canvas.text_in(x, y, room, &words::who(view.snapshot, process), theme.text());
        canvas.right(pid_x, y, 8, &process.pid.to_string(), theme.text());
        let quiet = if severity.is_some() { style } else { theme.dim() };
        canvas.text_in(pid_x + 10, y, 11, &words::state(process, view.at_ms()), quiet);
        if owner > 0 {
            let words = words::owner(process, owner - 1);
            canvas.text_in(pid_x + 22, y, owner - 1, &words, theme.dim());
        }
    }
}

struct Part {
    glyph: char,
    known: &'static str,
    dim: bool,
}

/// Glyph, amount, name at the left; how it is known at the right.
fn amount(canvas: &mut Canvas, y: u16, part: &Part, bytes: &Reading<u64>, name: &str) {
    let theme = canvas.theme;
    let style = if part.dim { theme.dim() } else { theme.text() };
    canvas.glyph(1, y, part.glyph, style);
    let (words, known) = match bytes {
        Reading::Value(bytes) => (units::gib_fine(*bytes), part.known.to_string()),
        Reading::Absent(Absence::Unsupported | Absence::TooOld) => ("–".into(), "not told".into()),
        Reading::Absent(_) => ("?".into(), "unknown".into()),
    };
    canvas.right(2, y, 7, &words, style);
    let x = canvas.width().min(WIDEST).saturating_sub(10);
    canvas.text_in(LEFT, y, x.saturating_sub(LEFT + 1), name, style);
    canvas.right(x, y, 10, &known, theme.dim());
}

/// Since when memory is held by nobody, where a finding says so.
fn since(view: &View, gpu: &Gpu) -> String {
    view.findings
        .iter()
        .find(|finding| {
            finding.subject == Subject::Gpu(gpu.index)
                && finding.cause == "memory_held_no_visible_process"
                && finding.since_ms > 0
        })
        .map(|finding| {
            let at = units::moment(finding.since_ms, view.at_ms(), view.utc_offset_seconds);
            format!("  since {at}")
        })
        .unwrap_or_default()
}
