//! A reading as it stands on the screen: the value, `–` for what this box does not have, `?` for
//! what should be known and is not.

use probes::finding::Severity;
use probes::reading::{Absence, Reading};
use probes::snapshot::{Gpu, Stamp};
use probes::units;
use ratatui::style::Style;

use crate::theme::Theme;
use crate::view::View;

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
    /// It is bad by itself.
    pub(crate) alarm: Option<Severity>,
    /// It is true and of no interest, or not from now.
    pub(crate) quiet: bool,
}

impl Value {
    /// A value that is known.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            known: Known::Yes,
            reason: String::new(),
            alarm: None,
            quiet: false,
        }
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

    /// Bytes as GiB.
    pub(crate) fn gib(reading: &Reading<u64>) -> Self {
        Self::of(reading, |bytes| units::gib(*bytes))
    }

    /// Bytes in the unit that fits.
    pub(crate) fn bytes(reading: &Reading<u64>) -> Self {
        Self::of(reading, |bytes| units::bytes(*bytes))
    }

    /// A ratio as per cent.
    pub(crate) fn percent(reading: &Reading<f64>) -> Self {
        Self::of(reading, |ratio| units::percent(*ratio))
    }

    /// Bytes a second as GB/s.
    pub(crate) fn rate(reading: &Reading<f64>) -> Self {
        Self::of(reading, |rate| units::gigabytes_per_second(*rate))
    }

    /// A whole number.
    pub(crate) fn whole(reading: &Reading<f64>) -> Self {
        Self::of(reading, |value| format!("{value:.0}"))
    }

    /// A count with thousands set apart.
    pub(crate) fn count(reading: &Reading<u64>) -> Self {
        Self::of(reading, |count| units::count(*count))
    }

    /// Yes or no.
    pub(crate) fn yes_no(reading: &Reading<bool>) -> Self {
        Self::of(reading, |yes| if *yes { "yes" } else { "no" }.into())
    }

    /// A dash or a question mark, with its reason.
    pub(crate) fn absent(why: &Absence) -> Self {
        let known = match why {
            Absence::Unsupported | Absence::TooOld | Absence::NoData => Known::Unsupported,
            _ => Known::Missing,
        };
        let text = if known == Known::Unsupported { "–" } else { "?" };
        Self { known, reason: why.to_string(), ..Self::plain(text) }
    }

    /// The same, bad by itself where `bad` holds.
    pub(crate) fn alarm_if(mut self, bad: bool, severity: Severity) -> Self {
        if bad {
            self.alarm = Some(severity);
        }
        self
    }

    /// The same, dim where `quiet` holds.
    pub(crate) fn quiet_if(mut self, quiet: bool) -> Self {
        self.quiet |= quiet;
        self
    }

    /// The same, dim when its group is not from now.
    pub(crate) fn read_at(self, stamp: Stamp, view: &View) -> Self {
        let fresh = crate::words::is_fresh(view, stamp);
        self.quiet_if(!fresh)
    }

    /// The value's style; what is stale, quiet or missing is dim.
    pub(crate) fn style(&self, theme: Theme, fresh: bool) -> Style {
        match self.alarm {
            Some(severity) if fresh => theme.severity(severity),
            _ if fresh && !self.quiet && self.known == Known::Yes => theme.text(),
            _ => theme.dim(),
        }
    }
}

/// The sum of two readings, or the reason why one is missing.
pub(crate) fn sum(a: &Reading<f64>, b: &Reading<f64>) -> Reading<f64> {
    match (a, b) {
        (Reading::Value(a), Reading::Value(b)) => Reading::Value(a + b),
        (Reading::Absent(why), _) | (_, Reading::Absent(why)) => Reading::Absent(why.clone()),
    }
}

/// A hardware counter of a GPU: on a part without them it is unsupported, not unread.
pub(crate) fn counter(gpu: &Gpu, reading: &Reading<f64>) -> Reading<f64> {
    match (&gpu.gpm.supported, reading) {
        (Reading::Value(false), Reading::Absent(_)) => Reading::UNSUPPORTED,
        (Reading::Absent(why), Reading::Absent(Absence::NotRead)) => Reading::Absent(why.clone()),
        _ => reading.clone(),
    }
}

/// NVLink traffic in both directions; unsupported on a part without links.
pub(crate) fn nvlink(gpu: &Gpu) -> Reading<f64> {
    match &gpu.nvlink.count {
        Reading::Absent(why) if why != &Absence::NotRead => Reading::Absent(why.clone()),
        Reading::Value(0) => Reading::UNSUPPORTED,
        _ => sum(&gpu.nvlink.tx_bytes_per_second, &gpu.nvlink.rx_bytes_per_second),
    }
}
