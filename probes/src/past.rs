//! What is known of the past, as plain data: the stretch that is recorded, a metric over time, and
//! what happened when. Read from a store or asked of a daemon; panels and programs cannot tell which.

use serde::{Deserialize, Serialize};

use crate::finding::Severity;

/// The stretch of time that something covers, milliseconds since 1970, both ends included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The oldest moment.
    pub from_ms: u64,
    /// The newest moment.
    pub to_ms: u64,
}

/// One metric over a stretch of time: a series for each subject.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MetricPast {
    /// Name of a row of the metric tables.
    pub metric: String,
    /// Begin of the first step.
    pub from_ms: u64,
    /// Length of a step.
    pub step_ms: u64,
    /// One for each subject, in the order of the GPUs; all of the same length.
    pub series: Vec<Series>,
}

/// The values of one subject, a step each. A step without a value is `None`, never 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// UUID of the GPU or MIG instance; empty for the host.
    pub subject: String,
    /// What people call it: `GPU 3`, `GPU 3/g1.c0`, `host`.
    pub name: String,
    /// Value of the metric's own label, such as a link's number; empty where it has none.
    pub label: String,
    /// Smallest value in each step.
    pub min: Vec<Option<f32>>,
    /// Mean value in each step.
    pub mean: Vec<Option<f32>>,
    /// Largest value in each step.
    pub max: Vec<Option<f32>>,
}

/// Something that happened, to be marked on a time axis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mark {
    /// When, or when it began, milliseconds since 1970.
    pub at_ms: u64,
    /// When it was over; `None` for an instant, or when it still lasts.
    pub until_ms: Option<u64>,
    /// What kind of thing it is.
    pub kind: MarkKind,
    /// How bad it is.
    pub severity: Severity,
    /// What it is about: `GPU 3`, `process 4711`; empty for the box.
    pub subject: String,
    /// What happened, in one line.
    pub text: String,
}

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// A finding was open from `at_ms` until `until_ms`.
    Finding,
    /// The driver or the kernel log told of an Xid.
    Xid,
    /// A daemon started.
    DaemonStart,
    /// A daemon ended.
    DaemonEnd,
    /// The sampler was started, or started again.
    SamplerStart,
    /// The sampler ended or went silent.
    SamplerEnd,
    /// Another driver version, another library on disk, or the driver taken anew.
    DriverChange,
    /// The GPUs were let go on request.
    Release,
    /// The GPUs were taken again.
    Resume,
    /// The configuration was read again.
    Reload,
    /// The wall clock was set.
    ClockSet,
    /// The machine slept.
    Suspended,
    /// Snapshots could not be stored.
    NotStored,
    /// Something that this version does not know, from a newer recording.
    #[default]
    #[serde(other)]
    Other,
}
