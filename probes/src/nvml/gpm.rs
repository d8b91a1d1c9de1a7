//! GPU performance monitoring: hardware counters averaged between two samples, without blocking.
//!
//! Hopper and newer data centre parts; GeForce from the 50 series on. Whether a part answers is
//! asked (`nvmlGpmQueryDeviceSupport`) and tried. The ids 160 to 165 are the L2 figures: the share
//! of accesses to host, peer and local memory that the cache served. Where they are missing no hit
//! rate is made up from anything else.

use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::reading::Reading;
use crate::snapshot::{Gpu, Stamp};

/// Averages between the last two samples; ratios are 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpm {
    /// When the later sample was taken.
    pub read: Stamp,
    /// Whether this GPU has it.
    pub supported: Reading<bool>,
    /// Graphics or compute engine active.
    pub graphics_ratio: Reading<f64>,
    /// Multiprocessors with at least one warp.
    pub sm_active_ratio: Reading<f64>,
    /// Warps resident, of the most that fit.
    pub sm_occupancy_ratio: Reading<f64>,
    /// Integer pipe.
    pub integer_ratio: Reading<f64>,
    /// Any tensor pipe.
    pub tensor_ratio: Reading<f64>,
    /// Tensor pipe, FP64.
    pub tensor_dfma_ratio: Reading<f64>,
    /// Tensor pipe, FP16 and BF16.
    pub tensor_hmma_ratio: Reading<f64>,
    /// Tensor pipe, integer.
    pub tensor_imma_ratio: Reading<f64>,
    /// DRAM bandwidth used, of the peak.
    pub dram_bandwidth_ratio: Reading<f64>,
    /// FP64 pipe.
    pub fp64_ratio: Reading<f64>,
    /// FP32 pipe.
    pub fp32_ratio: Reading<f64>,
    /// FP16 pipe.
    pub fp16_ratio: Reading<f64>,
    /// From the GPU over PCIe.
    pub pcie_tx_bytes_per_second: Reading<f64>,
    /// To the GPU over PCIe.
    pub pcie_rx_bytes_per_second: Reading<f64>,
    /// From the GPU over all NVLinks.
    pub nvlink_tx_bytes_per_second: Reading<f64>,
    /// To the GPU over all NVLinks.
    pub nvlink_rx_bytes_per_second: Reading<f64>,
    /// L2: accesses to host memory that the cache served.
    pub l2_host_hit_ratio: Reading<f64>,
    /// L2: accesses to host memory that it did not.
    pub l2_host_miss_ratio: Reading<f64>,
    /// L2: accesses to another GPU's memory that the cache served.
    pub l2_peer_hit_ratio: Reading<f64>,
    /// L2: accesses to another GPU's memory that it did not.
    pub l2_peer_miss_ratio: Reading<f64>,
    /// L2: accesses to local memory that the cache served: the L2 hit rate.
    pub l2_dram_hit_ratio: Reading<f64>,
    /// L2: accesses to local memory that it did not.
    pub l2_dram_miss_ratio: Reading<f64>,
}

/// Rows of the metric table.
pub const METRICS: &[Metric<Gpu>] = &[
    Metric::gauge(
        "infertop_gpu_graphics_active_ratio",
        "Share of time with the graphics or compute engine active.",
        |g| g.gpm.graphics_ratio.number(),
    ),
    Metric::gauge(
        "infertop_gpu_sm_active_ratio",
        "Share of multiprocessors with a warp resident.",
        |g| g.gpm.sm_active_ratio.number(),
    ),
    Metric::gauge(
        "infertop_gpu_sm_occupancy_ratio",
        "Warps resident, of the most that fit.",
        |g| g.gpm.sm_occupancy_ratio.number(),
    ),
    Metric::gauge("infertop_gpu_integer_pipe_ratio", "Busy share of the integer pipe.", |g| {
        g.gpm.integer_ratio.number()
    }),
    Metric::gauge("infertop_gpu_tensor_pipe_ratio", "Busy share of the tensor pipes.", |g| {
        g.gpm.tensor_ratio.number()
    }),
    Metric::gauge(
        "infertop_gpu_tensor_fp64_pipe_ratio",
        "Busy share of the tensor pipe with FP64 work.",
        |g| g.gpm.tensor_dfma_ratio.number(),
    ),
    Metric::gauge(
        "infertop_gpu_tensor_fp16_pipe_ratio",
        "Busy share of the tensor pipe with FP16 or BF16 work.",
        |g| g.gpm.tensor_hmma_ratio.number(),
    ),
    Metric::gauge(
        "infertop_gpu_tensor_integer_pipe_ratio",
        "Busy share of the tensor pipe with integer work.",
        |g| g.gpm.tensor_imma_ratio.number(),
    ),
    Metric::gauge("infertop_gpu_dram_bandwidth_ratio", "DRAM bandwidth used, of the peak.", |g| {
        g.gpm.dram_bandwidth_ratio.number()
    }),
    Metric::gauge("infertop_gpu_fp64_pipe_ratio", "Busy share of the FP64 pipe.", |g| {
        g.gpm.fp64_ratio.number()
    }),
    Metric::gauge("infertop_gpu_fp32_pipe_ratio", "Busy share of the FP32 pipe.", |g| {
        g.gpm.fp32_ratio.number()
    }),
    Metric::gauge("infertop_gpu_fp16_pipe_ratio", "Busy share of the FP16 pipe.", |g| {
        g.gpm.fp16_ratio.number()
    }),
    Metric::gauge(
        "infertop_gpu_l2_host_hit_ratio",
        "Accesses to host memory that the L2 cache served.",
        |g| g.gpm.l2_host_hit_ratio.number(),
    ),
    Metric::gauge(
        "infertop_gpu_l2_host_miss_ratio",
        "Accesses to host memory that the L2 cache did not serve.",
        |g| g.gpm.l2_host_miss_ratio.number(),
    ),
    Metric::gauge(
        "infertop_gpu_l2_peer_hit_ratio",
        "Accesses to peer memory that the L2 cache served.",
        |g| g.gpm.l2_peer_hit_ratio.number(),
    ),
    Metric::gauge(
        "infertop_gpu_l2_peer_miss_ratio",
        "Accesses to peer memory that the L2 cache did not serve.",
        |g| g.gpm.l2_peer_miss_ratio.number(),
    ),
    Metric::gauge(
        "infertop_gpu_l2_dram_hit_ratio",
        "Accesses to local memory that the L2 cache served.",
        |g| g.gpm.l2_dram_hit_ratio.number(),
    ),
    Metric::gauge(
        "infertop_gpu_l2_dram_miss_ratio",
        "Accesses to local memory that the L2 cache did not serve.",
        |g| g.gpm.l2_dram_miss_ratio.number(),
    ),
];
