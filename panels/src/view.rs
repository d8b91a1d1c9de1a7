//! All that a panel may look at.

use probes::finding::Finding;
use probes::history::History;
use probes::ledger::Ledger;
use probes::snapshot::Snapshot;

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
    /// Wall clock, milliseconds since 1970.
    pub now_ms: u64,
    /// Offset of local time from UTC, in seconds.
    pub utc_offset_seconds: i32,
}

impl View<'_> {
    /// The moment that the picture is of, from which ages count: now, or when the snapshot was taken
    /// where the picture is held or recorded.
    pub fn at_ms(&self) -> u64 {
        let still = self.feed.paused || self.feed.source == Source::Recording;
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
