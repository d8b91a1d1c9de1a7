//! A metric: a row that says what a number is called, what it means and how to pick it.
//!
//! Each group of readings keeps its rows in its own file; exporter, history, rules and the
//! documentation walk them. Names follow Prometheus: base units, counters end in `_total`.

use crate::reading::Reading;

/// Whether a number goes up and down, or only up until its source restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A level.
    Gauge,
    /// A sum since some start; only differences mean something.
    Counter,
}

/// How a row takes its numbers from a subject.
pub enum Pick<S: 'static> {
    /// One number a subject.
    One(fn(&S) -> Reading<f64>),
    /// One number for each value of a label, such as a link or an ECC location.
    Each {
        /// The label's name.
        label: &'static str,
        /// Label values and numbers; few, and bounded by the hardware.
        pick: PickEach<S>,
    },
}

/// Takes a number for each value of a label.
pub type PickEach<S> = fn(&S) -> Vec<(String, Reading<f64>)>;

/// One row of the table. `S` is what it is about: a GPU, the host, a process.
pub struct Metric<S: 'static> {
    /// The exported name, `infertop_<subject>_<what>_<unit>`.
    pub name: &'static str,
    /// Level or sum.
    pub kind: Kind,
    /// One sentence for people.
    pub help: &'static str,
    /// How to take it.
    pub pick: Pick<S>,
}

impl<S> Metric<S> {
    /// A level with one number a subject.
    pub const fn gauge(
        name: &'static str,
        help: &'static str,
        pick: fn(&S) -> Reading<f64>,
    ) -> Self {
        Self { name, kind: Kind::Gauge, help, pick: Pick::One(pick) }
    }

    /// A sum with one number a subject.
    pub const fn counter(
        name: &'static str,
        help: &'static str,
        pick: fn(&S) -> Reading<f64>,
    ) -> Self {
        Self { name, kind: Kind::Counter, help, pick: Pick::One(pick) }
    }

    /// A sum for each value of a label.
    pub const fn counter_each(
        name: &'static str,
        help: &'static str,
        label: &'static str,
        pick: PickEach<S>,
    ) -> Self {
        Self { name, kind: Kind::Counter, help, pick: Pick::Each { label, pick } }
    }
}
