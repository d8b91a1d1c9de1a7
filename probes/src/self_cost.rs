//! What looking costs: the sampler's own calls, time and memory, and what it had to drop.

use serde::{Deserialize, Serialize};

use crate::reading::Reading;

/// The sampler's cost, part of each snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SelfCost {
    /// The sampler's process number.
    pub pid: u32,
    /// Calls into the driver's library since start.
    pub nvml_calls_total: u64,
    /// Time spent inside those calls, all threads, in seconds.
    pub nvml_seconds_total: f64,
    /// Driver calls in the last interval, for the GPU that had the most.
    pub nvml_calls_per_gpu: u32,
    /// Values that could not be and were dropped.
    pub dropped_values_total: u64,
    /// Own user and system time, in seconds.
    pub cpu_seconds_total: Reading<f64>,
    /// Own share of one core over the last interval.
    pub cpu_ratio: Reading<f64>,
    /// Own resident memory.
    pub rss_bytes: Reading<u64>,
    /// Own threads.
    pub threads: Reading<u32>,
    /// Each source and how long its last read took.
    pub sources: Vec<Source>,
    /// The dearest driver calls of the last minute, dearest first.
    pub calls: Vec<CallCost>,
    /// How far apart in time the first and the last GPU's cheap counters were read.
    pub spread_us: u32,
}

/// One source of readings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Source {
    /// `host`, `driver`, `processes`, `descriptors`, `kernel_log`, …
    pub name: String,
    /// How long its last read took.
    pub took_us: u32,
    /// Why it gave nothing, where it did.
    pub absent: Option<String>,
}

/// What one kind of driver call costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallCost {
    /// The library's name of the call.
    pub call: String,
    /// How often it was made.
    pub count: u64,
    /// Mean duration.
    pub mean_us: f64,
    /// Longest duration.
    pub max_us: u32,
}
