//! All that a panel may look at.

use probes::finding::Finding;
use probes::history::History;
use probes::ledger::Ledger;
use probes::past::{Mark, MetricPast, Span};
use probes::snapshot::Snapshot;

use crate::keys::Tense;

/// One moment, as the panels see it.
pub struct View<'a> {
    /// What was read.
    pub snapshot: &'a Snapshot,
    /// The memory sums, in the order of the snapshot's GPUs.
    pub ledgers: &'a [Ledger],
    /// What the last snapshots said.
    pub history: &'a History,
    /// What is wrong, worst first.
    pub findings: &'a [Finding],
    /// Where snapshots come from and how they arrive.
    pub feed: &'a Feed,
    /// What is known of the past, as far as it was asked for.
    pub past: &'a Past,
    /// Wall clock, milliseconds since 1970.
    pub now_ms: u64,
    /// Offset of local time from UTC, in seconds.
    pub utc_offset_seconds: i32,
}

/// What is known of the past, as far as it was asked for.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// The stretch that is recorded; `None` where nothing is, or where it is not known yet.
    pub span: Option<Span>,
    /// Why there is no past to travel to, where there is none: no daemon, no right, an error.
    pub trouble: Option<String>,
    /// The moment that is shown, milliseconds since 1970; `None` while the picture is live.
    pub cursor_ms: Option<u64>,
    /// The cursor moves by itself, at the pace of the clock.
    pub playing: bool,
    /// What happened in the stretch of the chart, or in all that is recorded, oldest first.
    pub marks: Vec<Mark>,
    /// The metric over time that was asked for last.
    pub chart: Option<Chart>,
}

/// A metric over a stretch of time, asked for and, after a moment, answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What was asked last.
    pub request: ChartRequest,
    /// What came back: the values, or why there are none; `None` while it is on its way. While the
    /// same metric is read anew, the answer before may stay.
    pub answer: Option<Result<MetricPast, String>>,
}

/// What a chart shall show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartRequest {
    /// Name of a row of the metric tables.
    pub metric: String,
    /// Begin, milliseconds since 1970.
    pub from_ms: u64,
    /// End.
    pub to_ms: u64,
    /// Points that can be drawn; the step is chosen so that no more come.
    pub points: u32,
}

impl View<'_> {
    /// Whether the picture is of the past: a recording, or a daemon's history.
    pub fn travels(&self) -> bool {
        self.feed.source == Source::Recording || self.past.cursor_ms.is_some()
    }

    /// Of which time the picture is, for what keys mean.
    pub(crate) fn tense(&self) -> Tense {
        match (self.feed.source == Source::Recording, self.past.cursor_ms, self.past.span) {
            (true, ..) => Tense::Recording,
            (_, Some(_), _) => Tense::Past,
            (_, None, Some(_)) => Tense::LiveWithPast,
            (_, None, None) => Tense::Live,
        }
    }

    /// The newest moment that can be shown: now, where the picture is held, or the end of the
    /// recording.
    pub(crate) fn newest_ms(&self) -> u64 {
        match (&self.feed.source, self.past.span) {
            (Source::Recording, Some(span)) => span.to_ms,
            (Source::Recording, None) => self.at_ms(),
            _ if self.feed.paused => self.at_ms(),
            _ => self.now_ms,
        }
    }

    /// The moment that the picture is of, from which ages count: now, or when the snapshot was taken
    /// where the picture is held or recorded.
    pub fn at_ms(&self) -> u64 {
        let still = self.feed.paused || self.travels();
        match self.snapshot.taken_at_ms {
            taken if still && taken > 0 => taken,
            _ => self.now_ms,
        }
    }
}

/// Where snapshots come from and how they arrive.
#[derive(Clone, Debug, Default)]
pub struct Feed {
    /// What delivers them.
    pub source: Source,
    /// The nominal distance between two.
    pub interval_ms: u64,
    /// When the last one arrived, milliseconds since 1970; `None` before the first.
    pub last_ms: Option<u64>,
    /// Snapshots that never arrived.
    pub lost: u64,
    /// The picture is held.
    pub paused: bool,
    /// Why nothing comes any more, if so.
    pub trouble: Option<String>,
    /// Own share of one core of the process that draws, and of its sampler.
    pub own_cpu_ratio: Option<f64>,
    /// Own resident memory of the process that draws.
    pub own_rss_bytes: Option<u64>,
}

/// What delivers snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// An own sampler child.
    #[default]
    Live,
    /// A daemon's socket.
    Daemon,
    /// A recording.
    Recording,
}
