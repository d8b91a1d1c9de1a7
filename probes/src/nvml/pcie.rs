//! The PCIe link: generation, width, traffic, errors.
//!
//! Generation and width drop at idle on many parts, so they are judged only under load. Traffic comes
//! from the first of GPM, byte counters (fields 197/198) and `nvmlDeviceGetPcieThroughput` that this
//! GPU has; the last one blocks for 20 ms a direction and so runs on a thread of its own. TX is from
//! the GPU, RX is to it.

use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::reading::Reading;
use crate::snapshot::{Gpu, Stamp};

/// The PCIe link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pcie {
    /// When errors and traffic were read.
    pub read: Stamp,
    /// Generation now.
    pub generation: Reading<u32>,
    /// Lanes now.
    pub width: Reading<u32>,
    /// The most that GPU and slot can do together.
    pub max_generation: Reading<u32>,
    /// The most lanes.
    pub max_width: Reading<u32>,
    /// What the GPU alone could do; more than `max_generation` means that the slot limits.
    pub gpu_max_generation: Reading<u32>,
    /// From the GPU.
    pub tx_bytes_per_second: Reading<f64>,
    /// To the GPU.
    pub rx_bytes_per_second: Reading<f64>,
    /// `gpm`, `counters` or `window`.
    pub rate_source: Reading<String>,
    /// Bytes from the GPU since some start; may wrap.
    pub tx_bytes_total: Reading<u64>,
    /// Bytes to the GPU since some start; may wrap.
    pub rx_bytes_total: Reading<u64>,
    /// Replays since the last reset; a rate tells, a level does not.
    pub replay_total: Reading<u64>,
    /// Error counters that this GPU has: name and count.
    pub errors: Vec<PcieErrors>,
}

/// One kind of link error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PcieErrors {
    /// `correctable`, `bad_tlp`, `fatal`, …
    pub kind: String,
    /// How many.
    pub total: u64,
}

/// Rows of the metric table.
pub const METRICS: &[Metric<Gpu>] = &[
    Metric::gauge("infertop_gpu_pcie_generation", "PCIe generation of the link now.", |g| {
        g.pcie.generation.number()
    }),
    Metric::gauge("infertop_gpu_pcie_width_lanes", "PCIe lanes of the link now.", |g| {
        g.pcie.width.number()
    }),
    Metric::gauge(
        "infertop_gpu_pcie_generation_max",
        "Highest PCIe generation of GPU and slot.",
        |g| g.pcie.max_generation.number(),
    ),
    Metric::gauge("infertop_gpu_pcie_width_max_lanes", "Most PCIe lanes of GPU and slot.", |g| {
        g.pcie.max_width.number()
    }),
    Metric::gauge("infertop_gpu_pcie_tx_bytes_per_second", "PCIe traffic from the GPU.", |g| {
        g.pcie.tx_bytes_per_second.number()
    }),
    Metric::gauge("infertop_gpu_pcie_rx_bytes_per_second", "PCIe traffic to the GPU.", |g| {
        g.pcie.rx_bytes_per_second.number()
    }),
    Metric::counter("infertop_gpu_pcie_replays_total", "PCIe replays since the last reset.", |g| {
        g.pcie.replay_total.number()
    }),
    Metric::counter_each(
        "infertop_gpu_pcie_errors_total",
        "PCIe link errors by kind.",
        "kind",
        |g| {
            g.pcie.errors.iter().map(|e| (e.kind.clone(), Reading::Value(e.total as f64))).collect()
        },
    ),
];
