//! A reading as it stands on the screen: the value, `–` for what this box does not have, `?` for
//! what should be known and is not.

use probes::reading::{Absence, Reading};
use ratatui::style::Style;

use crate::theme::Theme;

/// What is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// A value.
    Yes,
    /// There is none here, and that is fine.
    Unsupported,
    /// There should be one.
    Missing,
}

/// A reading as text.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    /// What to write.
    pub(crate) text: String,
    /// What is known.
    pub(crate) known: Known,
    /// Why not, in words; empty for a value.
    pub(crate) reason: String,
}

impl Value {
    /// A value that is known.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), known: Known::Yes, reason: String::new() }
    }

    /// The reading, written by `write`.
    pub(crate) fn of<T>(reading: &Reading<T>, write: impl FnOnce(&T) -> String) -> Self {
        match reading {
            Reading::Value(value) => Self::plain(write(value)),
            Reading::Absent(why) => Self::absent(why),
        }
    }

    /// The reading with its own text.
    pub(crate) fn shown<T: ToString>(reading: &Reading<T>) -> Self {
        Self::of(reading, ToString::to_string)
    }

    /// A dash or a question mark, with its reason.
    pub(crate) fn absent(why: &Absence) -> Self {
        let known = match why {
            Absence::Unsupported | Absence::TooOld | Absence::NoData => Known::Unsupported,
            _ => Known::Missing,
        };
        let text = if known == Known::Unsupported { "–" } else { "?" };
        Self { text: text.into(), known, reason: why.to_string() }
    }

    /// The value's style; what is stale or missing is dim.
    pub(crate) fn style(&self, theme: Theme, fresh: bool) -> Style {
        if fresh && self.known == Known::Yes { theme.text() } else { theme.dim() }
    }
}

/// The sum of two readings, or the reason why one is missing.
pub(crate) fn sum(a: &Reading<f64>, b: &Reading<f64>) -> Reading<f64> {
    match (a, b) {
        (Reading::Value(a), Reading::Value(b)) => Reading::Value(a + b),
        (Reading::Absent(why), _) | (_, Reading::Absent(why)) => Reading::Absent(why.clone()),
    }
}
