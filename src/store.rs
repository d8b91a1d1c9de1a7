//! What the daemon remembers, in one SQLite file that outlives it; recordings are files of the same
//! kind.
//!
//! | table | a row is |
//! |---|---|
//! | `tail` | a snapshot of the running minute: zstd of its MessagePack, with the minute's first one as dictionary |
//! | `chunks` | the snapshots of a whole minute, see [`chunk`], with their times beside them |
//! | `marks`, `findings` | what happened, and what was wrong from when to when |
//! | `starts` | a daemon: version, boot, begin, and its end if that was clean |
//! | `fingerprints` | what the box was made of at a time |
//!
//! A snapshot is committed as soon as it comes, so a daemon that is killed loses none that was handed
//! over. Moving a minute into its chunk is one transaction. The log of a transaction is not forced to
//! the disk: when the power goes, what came after the last checkpoint (about a minute) is lost, and
//! nothing else.
//!
//! One thread writes. Whoever hands something over never waits for it: the queue is short, and what
//! does not fit is counted and told as a mark. A file that cannot be used is a state with a reason,
//! and tried again every minute. Readers open the file for themselves.

mod chunk;
mod clock;
mod events;
mod file;
mod findings;
mod handle;
mod keeper;
mod marks;
mod minute;
mod open;
mod queue;
mod reader;
mod recording;
mod retention;
mod rollup;
mod schema;
mod values;
mod words;

use serde::{Deserialize, Serialize};

use probes::past::Span;

#[cfg(any(fuzzing, test))]
pub(crate) use chunk::fuzzing;
pub(crate) use handle::StoreHandle;
pub(crate) use reader::{Reader, Stored};
pub(crate) use recording::Recording;

/// Name of the file in its folder.
pub(crate) const FILE: &str = "infertop.db";

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Days of whole snapshots.
    pub(crate) raw_days: u32,
    /// Days of minimum, mean and maximum of each minute.
    pub(crate) rollup_days: u32,
    /// Size of the file.
    pub(crate) max_bytes: u64,
}

/// A daemon, as it starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Start {
    /// Its version.
    pub(crate) version: String,
    /// Changes with every boot; empty where it is not known.
    pub(crate) boot_id: String,
    /// Its number.
    pub(crate) pid: u32,
    /// When, milliseconds since 1970.
    pub(crate) at_ms: u64,
}

/// How the store stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoreStatus {
    /// Whether it takes what it is given.
    pub(crate) state: StoreState,
    /// The file.
    pub(crate) path: String,
    /// Its size, without free pages.
    pub(crate) bytes: u64,
    /// The stretch of whole snapshots.
    pub(crate) span: Option<Span>,
    /// Snapshots stored by this daemon.
    pub(crate) frames_kept: u64,
    /// Snapshots that could not be stored.
    pub(crate) frames_lost: u64,
    /// How long the last write took.
    pub(crate) last_write_ms: f64,
    /// How long the longest write took.
    pub(crate) longest_write_ms: f64,
    /// Where a damaged file was moved, if one was.
    pub(crate) moved_aside: Option<String>,
}

/// Whether the store takes what it is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub(crate) enum StoreState {
    /// The file is being opened.
    #[default]
    Opening,
    /// It does.
    Ok,
    /// It does not, and is tried again.
    Unavailable {
        /// What failed on what.
        why: String,
        /// What to do.
        help: String,
        /// Since when, milliseconds since 1970.
        since_ms: u64,
    },
    /// It was finished.
    Closed,
}

#[cfg(test)]
mod tests;
