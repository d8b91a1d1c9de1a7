//! Device memory: what the driver keeps for itself, what is used, what is free.
//!
//! From `nvmlDeviceGetMemoryInfo_v2`, where total = reserved + used + free on every capture we have
//! (the header says otherwise). Drivers before R510 have only v1, whose `used` includes the
//! reserve. Parts without memory of their own (GB10, Jetson) answer NOT_SUPPORTED, a total of 0 or
//! the system's total: they are told by comparing with `MemTotal`, not by name or code.

use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::reading::Reading;
use crate::snapshot::{Gpu, Stamp};

/// Device memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// When it was read.
    pub read: Stamp,
    /// The GPU has no memory of its own and shares the system's; the figures below are then the
    /// system's, and `reserved_bytes` is unsupported.
    pub unified: bool,
    /// All of it.
    pub total_bytes: Reading<u64>,
    /// Kept by driver and firmware; absent where only the older call exists.
    pub reserved_bytes: Reading<u64>,
    /// Held by processes or by nobody visible, without the reserve.
    pub used_bytes: Reading<u64>,
    /// What a new process could have.
    pub free_bytes: Reading<u64>,
    /// Window through which CPUs and other devices reach the memory.
    pub bar1_total_bytes: Reading<u64>,
    /// That window in use.
    pub bar1_used_bytes: Reading<u64>,
}

/// Rows of the metric table.
pub const METRICS: &[Metric<Gpu>] = &[
    Metric::gauge(
        "infertop_gpu_memory_total_bytes",
        "Device memory, the driver's reserve included.",
        |g| g.memory.total_bytes.number(),
    ),
    Metric::gauge(
        "infertop_gpu_memory_reserved_bytes",
        "Device memory kept by driver and firmware.",
        |g| g.memory.reserved_bytes.number(),
    ),
    Metric::gauge(
        "infertop_gpu_memory_used_bytes",
        "Device memory in use, without the driver's reserve.",
        |g| g.memory.used_bytes.number(),
    ),
    Metric::gauge(
        "infertop_gpu_memory_free_bytes",
        "Device memory that a new process could have.",
        |g| g.memory.free_bytes.number(),
    ),
    Metric::gauge("infertop_gpu_bar1_total_bytes", "Size of the BAR1 window.", |g| {
        g.memory.bar1_total_bytes.number()
    }),
    Metric::gauge("infertop_gpu_bar1_used_bytes", "BAR1 window in use.", |g| {
        g.memory.bar1_used_bytes.number()
    }),
];
