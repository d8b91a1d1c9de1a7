//! One line of typed text, for filters and confirmations.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The text so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Input {
    /// What is typed.
    pub(crate) text: String,
}

/// What a press did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// The text changed, or could have.
    Text,
    /// Enter.
    Done,
    /// Esc.
    Dropped,
    /// Not a key of text.
    Other,
}

/// The most that is kept; nobody types a longer filter, but a paste may be long.
const LONGEST: usize = 200;

impl Input {
    /// Takes a press.
    pub(crate) fn key(&mut self, event: KeyEvent) -> Typed {
        let control = event.modifiers.contains(KeyModifiers::CONTROL);
        match event.code {
            KeyCode::Enter => Typed::Done,
            KeyCode::Esc => Typed::Dropped,
            KeyCode::Backspace => {
                self.text.pop();
                Typed::Text
            }
            KeyCode::Char('u') if control => {
                self.text.clear();
                Typed::Text
            }
            KeyCode::Char('w') if control => {
                let kept = self.text.trim_end().rfind(' ').map_or(0, |at| at + 1);
                self.text.truncate(kept);
                Typed::Text
            }
            KeyCode::Char(c) if !control && !c.is_control() => {
                if self.text.len() < LONGEST {
                    self.text.push(c);
                }
                Typed::Text
            }
            _ => Typed::Other,
        }
    }
}
