//! Processes as the driver lists them: compute, graphics and MPS, merged by pid.
//!
//! One row a pid whatever number of contexts it has. Memory shared between processes counts in each
//! of them, managed memory in none. u64::MAX stands for "not available".

use serde::{Deserialize, Serialize};

use crate::reading::Reading;
use crate::snapshot::Stamp;

/// The driver's lists of one GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuProcesses {
    /// When the compute list was read.
    pub read: Stamp,
    /// Processes, merged over the lists; absent where none of them could be read.
    pub list: Reading<Vec<GpuProcess>>,
}

/// One process in the driver's lists.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuProcess {
    /// Its number as the driver gives it: the host's, or translated to our namespace.
    pub pid: u32,
    /// `compute`, `graphics`, `mps`, joined by `+`.
    pub kind: String,
    /// Memory that the driver counts for it.
    pub used_bytes: Reading<u64>,
    /// MIG GPU instance.
    pub gpu_instance: Option<u32>,
    /// MIG compute instance.
    pub compute_instance: Option<u32>,
    /// Share of the last sample period with a kernel of its own.
    pub sm_ratio: Reading<f64>,
    /// The same for memory accesses.
    pub memory_ratio: Reading<f64>,
    /// The same for the encoder.
    pub encoder_ratio: Reading<f64>,
    /// The same for the decoder.
    pub decoder_ratio: Reading<f64>,
}
