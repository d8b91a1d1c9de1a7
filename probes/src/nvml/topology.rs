//! The way from one GPU to the others, and to the CPUs near it. Read once a generation.

use serde::{Deserialize, Serialize};

use crate::reading::Reading;
use crate::snapshot::Stamp;

/// Where the GPU sits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Topology {
    /// When it was read.
    pub read: Stamp,
    /// CPUs near it, `0-31,64-95`.
    pub cpu_affinity: Reading<String>,
    /// NUMA nodes near it.
    pub memory_affinity: Reading<String>,
    /// The way to each other GPU.
    pub peers: Vec<Peer>,
}

/// The way to another GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Peer {
    /// The other GPU's number.
    pub gpu_index: u32,
    /// As in `nvidia-smi topo -m`: `PIX`, `PXB`, `PHB`, `NODE`, `SYS`.
    pub path: Reading<String>,
    /// Active NVLinks between the two, through switches or not; unsupported where it cannot be told.
    pub nvlinks: Reading<u32>,
    /// Whether one can read the other's memory: `ok`, or why not.
    pub peer_access: Reading<String>,
}
