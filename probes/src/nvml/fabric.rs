//! The NVSwitch fabric as the GPU sees it (Hopper and newer on boards with switches).
//!
//! Stuck in progress means that the fabric manager is not running or is of another version. The
//! health mask packs several two-bit answers: 0 not applicable, 1 true, 2 false.

use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::reading::Reading;
use crate::snapshot::{Gpu, Stamp};

/// Fabric registration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fabric {
    /// When it was read.
    pub read: Stamp,
    /// `not started`, `in progress`, `completed`; unsupported where there is no fabric.
    pub state: Reading<String>,
    /// Result of the registration, NVML's number; only once completed.
    pub status: Reading<u32>,
    /// Clique number.
    pub clique: Reading<u32>,
    /// Raw health mask.
    pub health_mask: Reading<u32>,
    /// `healthy`, `unhealthy`, `limited capacity`.
    pub health: Reading<String>,
    /// What the mask complains about, in words.
    pub complaints: Vec<String>,
}

/// Rows of the metric table.
pub const METRICS: &[Metric<Gpu>] = &[
    Metric::gauge(
        "infertop_gpu_fabric_ready",
        "1 when the GPU has joined the NVSwitch fabric.",
        |g| g.fabric.state.as_ref().map(|state| f64::from(state == "completed")),
    ),
    Metric::gauge(
        "infertop_gpu_fabric_health_mask",
        "Health of the NVSwitch fabric as NVML's bit mask.",
        |g| g.fabric.health_mask.number(),
    ),
];
