//! The line in which a time is typed, to be shown next.

use crossterm::event::KeyEvent;
use probes::moment_text;
use probes::units;

use super::{Closing, Lines, Role};
use crate::input::{Input, Typed};
use crate::ui::{Action, Travel};
use crate::view::View;

/// The keys of this window.
pub(super) const FOOT: &str = "enter goes there   esc leaves";

/// What is typed, and why it cannot be gone to.
#[derive(Default)]
pub(super) struct Asked {
    input: Input,
    refused: Option<String>,
}

impl Asked {
    /// Takes a press.
    pub(super) fn key(&mut self, event: KeyEvent, view: &View) -> Closing {
        match self.input.key(event) {
            Typed::Dropped => Closing::Close,
            Typed::Done => match moment(&self.input.text, view) {
                Ok(ms) => Closing::Do(Action::Travel(Travel::To { ms })),
                Err(why) => {
                    self.refused = Some(why);
                    Closing::Stay
                }
            },
            Typed::Text => {
                self.refused = None;
                Closing::Stay
            }
            Typed::Other => Closing::Stay,
        }
    }

    /// Writes the question.
    pub(super) fn lines(&self, view: &View, lines: &mut Lines) {
        lines.put(0, Role::Strong, format!("show the moment {}▏", self.input.text));
        lines.put(0, Role::Text, "");
        match &self.refused {
            Some(why) => lines.put(0, Role::Text, format!("cannot go there: {why}")),
            None => lines.put(0, Role::Dim, moment_text::EXAMPLES),
        }
        if let Some(span) = view.past.span {
            let write = |at| units::moment(at, view.now_ms, view.utc_offset_seconds);
            let words = format!("recorded: {} to {}", write(span.from_ms), write(span.to_ms));
            lines.put(0, Role::Dim, words);
        }
    }
}

/// The moment that is meant, when it can be shown.
fn moment(text: &str, view: &View) -> Result<u64, String> {
    let ms = moment_text::parse_moment(text, view.newest_ms(), view.utc_offset_seconds)?;
    let oldest = view.past.span.map_or(0, |span| span.from_ms);
    if ms < oldest {
        let from = units::moment(oldest, view.now_ms, view.utc_offset_seconds);
        return Err(format!("what is recorded begins {from}"));
    }
    Ok(ms)
}
