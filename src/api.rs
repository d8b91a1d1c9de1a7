//! What passes over the daemon's socket, as plain data. Both ends know these types; neither knows
//! more of the other. Fields are only ever added, each with a default, because a dashboard and a
//! daemon may be of two versions while one of them is being upgraded.

mod told;

use serde::{Deserialize, Serialize};

use crate::daemon::hub::Sampling;
use crate::store::StoreStatus;

pub(crate) use told::{Pending, Told};

/// Media type of the stream of [`Told`], for programs.
pub(crate) const FRAMES_TYPE: &str = "application/vnd.infertop.frames";
/// Media type of the stream for people and scripts: a JSON document a line.
pub(crate) const LINES_TYPE: &str = "application/x-ndjson";
/// Media type of a snapshot or a history as it is stored.
pub(crate) const MESSAGEPACK_TYPE: &str = "application/vnd.msgpack";
/// Media type of everything else.
pub(crate) const JSON_TYPE: &str = "application/json";
/// Header that names the tick that an answer is of.
pub(crate) const NUMBER_HEADER: &str = "infertop-number";

/// Header that names the moment that an answer is of, milliseconds since 1970.
pub(crate) const AT_HEADER: &str = "infertop-at-ms";

/// Why a request was not done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Refused {
    /// What is wrong, and with what.
    pub(crate) error: String,
    /// What to do.
    pub(crate) help: String,
}

/// How the daemon is, in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// Snapshots come and are stored.
    Ok,
    /// Something of its own does not work; the reasons say what.
    Degraded,
    /// No snapshot has come yet.
    Starting,
    /// The GPUs were let go on request.
    Released,
    /// A word of a later version.
    #[default]
    #[serde(other)]
    Unknown,
}

/// How the daemon is. Says nothing of the GPUs: what is wrong with those are findings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Health {
    /// In one word.
    pub(crate) status: Status,
    /// Why it is not `ok`, and what else somebody should look at, in words.
    pub(crate) reasons: Vec<String>,
    /// How sampling stands.
    pub(crate) sampling: Sampling,
    /// Number of the newest tick; absent before the first.
    pub(crate) number: Option<u64>,
    /// Age of the newest snapshot; absent before the first.
    pub(crate) snapshot_age_ms: Option<u64>,
    /// Nominal distance of two snapshots; absent before the first.
    pub(crate) interval_ms: Option<u64>,
    /// How the store stands.
    pub(crate) store: StoreStatus,
    /// What the daemon cannot see for want of rights, each with what to grant.
    pub(crate) unseen: Vec<String>,
    /// Where metrics are served over TCP; absent where they are not.
    pub(crate) metrics_url: Option<String>,
    /// Version of the daemon.
    pub(crate) version: String,
    /// Its process number.
    pub(crate) pid: u32,
    /// When it started, milliseconds since 1970.
    pub(crate) started_ms: u64,
}

/// What the daemon costs and has served. A figure that could not be read is `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Own {
    /// The daemon's own process.
    pub(crate) daemon: ProcessCost,
    /// The sampler, as the newest snapshot tells; absent before the first.
    pub(crate) sampler: Option<SamplerCost>,
    /// Times that a sampler was started.
    pub(crate) sampler_starts: u64,
    /// What the socket has served.
    pub(crate) socket: SocketCounts,
    /// How the store stands.
    pub(crate) store: StoreStatus,
}

/// What a process costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ProcessCost {
    /// Its number.
    pub(crate) pid: u32,
    /// User and system time since its start.
    pub(crate) cpu_seconds_total: Option<f64>,
    /// Resident memory.
    pub(crate) rss_bytes: Option<u64>,
    /// The same with shared pages counted in parts.
    pub(crate) pss_bytes: Option<u64>,
    /// Threads.
    pub(crate) threads: Option<u32>,
}

/// What the sampler costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SamplerCost {
    /// Its number.
    pub(crate) pid: u32,
    /// User and system time since its start.
    pub(crate) cpu_seconds_total: Option<f64>,
    /// Share of one core over the last interval.
    pub(crate) cpu_ratio: Option<f64>,
    /// Resident memory.
    pub(crate) rss_bytes: Option<u64>,
    /// Threads.
    pub(crate) threads: Option<u32>,
    /// Calls into the driver's library since its start.
    pub(crate) nvml_calls_total: u64,
    /// Time spent inside those calls.
    pub(crate) nvml_seconds_total: f64,
}

/// What the socket has served since the daemon started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SocketCounts {
    /// Connections that are open.
    pub(crate) connections: u64,
    /// Connections taken.
    pub(crate) connections_total: u64,
    /// Connections ended early to make room for others.
    pub(crate) sent_away_total: u64,
    /// Connections ended because the other side did not read.
    pub(crate) stalled_total: u64,
    /// Requests.
    pub(crate) requests_total: u64,
    /// Readers of the stream of frames.
    pub(crate) readers: u64,
    /// Frames handed to them.
    pub(crate) frames_total: u64,
    /// Frames that readers missed because they were late.
    pub(crate) frames_lost_total: u64,
}
