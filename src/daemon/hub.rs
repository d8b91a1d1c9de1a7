//! What the parts of the daemon know of each other: the newest moment, how sampling stands, how the
//! store stands, and requests that change something.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use probes::finding::Severity;
use probes::machine::Machine;
use probes::past::{Mark, MarkKind};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot, watch};

use super::listen::Exposition;
use crate::moment::Moment;
use crate::store::StoreHandle;

use super::server::Counters;

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
    /// The GPUs are being let go; for longer than a moment only while a driver call holds the
    /// sampler.
    Releasing {
        /// Since when, milliseconds since 1970.
        since_ms: u64,
    },
    /// The GPUs were let go on request.
    Released {
        /// Since when, milliseconds since 1970.
        since_ms: u64,
        /// When they are taken again by itself; absent: on request alone.
        until_ms: Option<u64>,
    },
    /// A word of a later version; only ever heard.
    #[serde(other)]
    Unknown,
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
    #[serde(rename = "released")]
    pub(crate) let_go: bool,
    /// How long it took.
    pub(crate) took_ms: u64,
    /// Who else has a device file of the driver open.
    pub(crate) holders: Vec<DeviceHolder>,
    /// Processes whose descriptors could not be looked at for lack of rights.
    pub(crate) denied_processes: u32,
    /// Whether everybody was looked at in the time there was.
    #[serde(default)]
    pub(crate) searched_all: bool,
    /// Why the GPUs are not let go; empty when they are.
    #[serde(default)]
    pub(crate) why: String,
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
    /// What is wrong with the configuration on disk, while an older one holds.
    pub(crate) config_trouble: watch::Sender<Option<String>>,
    /// How serving metrics stands.
    pub(crate) exposition: watch::Sender<Exposition>,
    /// When this daemon started, milliseconds since 1970.
    pub(crate) started_ms: u64,
    /// Times that a sampler was started.
    pub(crate) sampler_starts: AtomicU64,
    /// What is remembered.
    pub(crate) store: StoreHandle,
    /// What the socket has served.
    pub(crate) served: Arc<Counters>,
}

/// Where a daemon keeps its files.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    /// The socket that it serves on.
    pub(crate) socket: PathBuf,
    /// The folder of the history.
    pub(crate) state: PathBuf,
}

/// Requests that wait; each is answered before its sender asks for more.
const WAITING_REQUESTS: usize = 16;

impl Hub {
    /// A hub, and where its requests come out.
    pub(crate) fn new(store: StoreHandle, started_ms: u64) -> (Self, mpsc::Receiver<Request>) {
        let (requests, asked) = mpsc::channel(WAITING_REQUESTS);
        let hub = Self {
            newest: watch::Sender::new(None),
            sampling: watch::Sender::new(Sampling::default()),
            requests,
            config_trouble: watch::Sender::new(None),
            exposition: watch::Sender::new(Exposition::default()),
            started_ms,
            sampler_starts: AtomicU64::new(0),
            store,
            served: Arc::default(),
        };
        (hub, asked)
    }

    /// Remembers that something happened now.
    pub(crate) fn mark(&self, kind: MarkKind, severity: Severity, text: &str) {
        let at_ms = Machine::default().now_ms();
        self.store.mark(Mark { at_ms, kind, severity, text: text.into(), ..Mark::default() });
    }
}
