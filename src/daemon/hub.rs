//! What the parts of the daemon know of each other: the newest moment, how sampling stands, how the
//! store stands, and requests that change something.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot, watch};

use crate::moment::Moment;

/// How sampling stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub(crate) enum Sampling {
    /// The sampler was started and has not sent a snapshot.
    #[default]
    Starting,
    /// Snapshots come.
    Running,
    /// None has come for several intervals.
    Silent {
        /// Since when, milliseconds since 1970.
        since_ms: u64,
    },
    /// The sampler has ended and will be started again.
    Ended {
        /// Since when, milliseconds since 1970.
        since_ms: u64,
        /// What it said last.
        why: String,
    },
    /// The GPUs were let go on request.
    Released {
        /// Since when, milliseconds since 1970.
        since_ms: u64,
        /// When they are taken again by itself; absent: on request alone.
        until_ms: Option<u64>,
    },
}

/// What a client asks to be changed, with the way back for the answer.
pub(crate) enum Request {
    /// Let go of every device file; take them again by itself at this time, if any.
    Release { until_ms: Option<u64>, answer: oneshot::Sender<Released> },
    /// Take the GPUs again. The answer: whether they were released.
    Resume { answer: oneshot::Sender<bool> },
    /// Read the configuration again. The answer: what changed, or why it was refused.
    Reload { answer: oneshot::Sender<Result<Vec<String>, String>> },
}

/// What letting go came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Released {
    /// Whether our own sampler is gone; false while a driver call holds it.
    pub(crate) released: bool,
    /// How long it took.
    pub(crate) took_ms: u64,
    /// Who else has a device file of the driver open.
    pub(crate) holders: Vec<DeviceHolder>,
    /// Processes whose descriptors could not be looked at for lack of rights.
    pub(crate) denied_processes: u32,
}

/// A process with a device file of the driver open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeviceHolder {
    /// Its number.
    pub(crate) pid: u32,
    /// Its name.
    pub(crate) name: String,
    /// The device files, such as `/dev/nvidia3`.
    pub(crate) devices: Vec<String>,
}

/// Shared by supervisor, server, exporter and store.
pub(crate) struct Hub {
    /// The newest moment. A reader that is late sees the newest and misses those between.
    pub(crate) newest: watch::Sender<Option<Arc<Moment>>>,
    /// How sampling stands.
    pub(crate) sampling: watch::Sender<Sampling>,
    /// Where requests go.
    pub(crate) requests: mpsc::Sender<Request>,
    /// When this daemon started, milliseconds since 1970.
    pub(crate) started_ms: u64,
    /// Times that a sampler was started.
    pub(crate) sampler_starts: std::sync::atomic::AtomicU64,
}
