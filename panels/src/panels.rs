//! The panels: one file each, and the list from which tabs, digits, help and goldens follow.
//!
//! To add one, write its file and one line in [`PANELS`].

use ratatui::layout::Position;

use crate::canvas::Canvas;
use crate::keys::Command;
use crate::ui::Travel;
use crate::view::{ChartRequest, View};
use crate::words::ProcessKey;

mod about;
mod bus;
mod gpu;
mod help;
mod history;
mod host;
mod memory;
mod memory_bar;
mod overview;
mod processes;

/// One panel in the list.
pub struct Entry {
    /// Its name, in the bottom bar and on the command line.
    pub name: &'static str,
    /// What it is for, in one sentence.
    pub purpose: &'static str,
    /// Commands that it answers beyond those which work everywhere.
    pub answers: &'static [Command],
    /// Its numbers in plain words: what is called how, and what it means.
    pub explains: &'static [(&'static str, &'static str)],
    /// Makes its state.
    pub(crate) make: fn() -> Box<dyn Panel>,
}

/// The panels in the order of their digits.
pub const PANELS: &[Entry] = &[
    overview::ENTRY,
    memory::ENTRY,
    processes::ENTRY,
    bus::ENTRY,
    host::ENTRY,
    gpu::ENTRY,
    history::ENTRY,
    about::ENTRY,
    help::ENTRY,
];

/// The place of a panel in the list.
pub fn place(name: &str) -> Option<usize> {
    PANELS.iter().position(|entry| entry.name == name)
}

/// What all panels look at: the GPU and the process that were selected last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Focus {
    /// Key of a GPU, see [`crate::words::gpu_key`].
    pub(crate) gpu: Option<String>,
    /// A process to open.
    pub(crate) process: Option<ProcessKey>,
}

impl Focus {
    /// The place of the GPU looked at: the one chosen, else the worst.
    pub(crate) fn gpu_place(&self, view: &View) -> Option<usize> {
        let gpus = &view.snapshot.gpus;
        let chosen = self
            .gpu
            .as_ref()
            .and_then(|key| gpus.iter().position(|gpu| crate::words::gpu_key(gpu) == *key));
        // Nobody chose: the one in the worst trouble, else the first.
        chosen.or_else(|| {
            let mut worst = None;
            for (at, gpu) in gpus.iter().enumerate() {
                let severity = crate::words::gpu_severity(view, gpu);
                if worst.is_none_or(|(_, known)| severity > known) {
                    worst = Some((at, severity));
                }
            }
            worst.map(|(at, _)| at)
        })
    }

    /// Goes to the GPU before or after, around the ends.
    pub(crate) fn step_gpu(&mut self, view: &View, forward: bool) {
        let count = view.snapshot.gpus.len();
        if let Some(at) = self.gpu_place(view) {
            let to = if forward { (at + 1) % count } else { (at + count - 1) % count };
            self.gpu = Some(crate::words::gpu_key(&view.snapshot.gpus[to]));
        }
    }
}

/// What a panel asks of the frame around it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    /// The command is none of the panel's.
    Ignored,
    /// Something changed.
    Redraw,
    /// Go to another panel, by name.
    Go(&'static str),
    /// Ask whether to end a process.
    EndProcess(ProcessKey),
    /// Open a finding, by its place.
    Finding(usize),
    /// Put a text on the clipboard.
    Copy(String),
    /// Show another moment.
    Travel(Travel),
}

/// A panel with its state: selection, scroll, sort. It never changes what it is shown.
pub(crate) trait Panel {
    /// What is looked at, for the header.
    fn subject(&self, view: &View, focus: &Focus) -> String;

    /// The commands that it answers now, where they are not those of its entry.
    fn answers(&self) -> Option<&'static [Command]> {
        None
    }

    /// Draws into the canvas.
    fn draw(&mut self, view: &View, focus: &Focus, canvas: &mut Canvas);

    /// Takes a command.
    fn command(&mut self, command: Command, view: &View, focus: &mut Focus) -> Reply;

    /// Takes a click on a cell of the screen.
    fn click(&mut self, _at: Position, _view: &View, _focus: &mut Focus) -> Reply {
        Reply::Ignored
    }

    /// Comes to the front.
    fn enter(&mut self, _focus: &Focus) {}

    /// Takes a press while it waits for text; `None` when it does not.
    fn typed(&mut self, _event: crossterm::event::KeyEvent) -> Option<Reply> {
        None
    }

    /// The metric over time that it needs, after it was drawn.
    fn wants(&self, _view: &View) -> Option<ChartRequest> {
        None
    }

    /// Why the selected row has a `?`, in one line.
    fn reason(&self, _view: &View) -> Option<String> {
        None
    }
}

/// Draws a long page from where it is scrolled to. When it does not fit, the last row says which
/// rows are shown.
fn paged(
    canvas: &mut Canvas,
    scroll: &mut crate::list::Scroll,
    rows: u16,
    draw: impl FnOnce(&mut Canvas),
) {
    let (width, height) = (canvas.width(), canvas.height());
    let fits = rows <= height;
    let shown = if fits { height } else { height.saturating_sub(1) };
    let from = scroll.set(rows, shown);
    let mut inside = canvas.part(1, 0, width.saturating_sub(1), shown);
    draw(&mut inside.scrolled(from));
    if let Some(note) = scroll.note(rows) {
        let style = canvas.theme.dim();
        canvas.right(0, height.saturating_sub(1), width.saturating_sub(1), &note, style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_panel_has_a_digit_a_name_of_its_own_and_explains_its_numbers() {
        assert!(PANELS.len() <= 9, "a digit a panel");
        for (at, entry) in PANELS.iter().enumerate() {
            assert_eq!(place(entry.name), Some(at), "{} is there twice", entry.name);
            assert!(entry.purpose.ends_with('.'), "{}", entry.name);
            assert!(entry.explains.len() >= 4, "{} explains too little", entry.name);
            for (name, words) in entry.explains {
                assert!(words.ends_with('.') && words.len() > 15, "{}: {name}", entry.name);
            }
        }
    }

    #[test]
    fn every_command_that_a_panel_answers_has_a_key() {
        for entry in PANELS {
            for command in entry.answers {
                let has = |key: &crate::keys::Key| key.chords.iter().any(|(_, c)| c == command);
                assert!(crate::keys::KEYS.iter().any(has), "{}: {command:?}", entry.name);
            }
        }
    }
}
