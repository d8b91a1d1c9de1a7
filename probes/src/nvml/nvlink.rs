//! NVLink: state, speed, traffic and errors of each link.
//!
//! Counters are per link through field values with the link as scope, which the wrapper cannot ask
//! for. `nvmlDeviceGetNvLinkVersion` is an enum and no generation, so it is not shown.

use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::reading::Reading;
use crate::snapshot::{Gpu, Stamp};

/// All NVLinks of a GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NvLinks {
    /// When it was read.
    pub read: Stamp,
    /// How many links the GPU has; unsupported for none.
    pub count: Reading<u32>,
    /// From the GPU over all links.
    pub tx_bytes_per_second: Reading<f64>,
    /// To the GPU over all links.
    pub rx_bytes_per_second: Reading<f64>,
    /// Each link.
    pub links: Vec<NvLink>,
}

/// One link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NvLink {
    /// Its number.
    pub link: u32,
    /// `active`, `inactive`, `sleep`, `traffic disabled`.
    pub state: Reading<String>,
    /// Speed of one direction.
    pub speed_bytes_per_second: Reading<f64>,
    /// Replays.
    pub replay_total: Reading<u64>,
    /// Recoveries.
    pub recovery_total: Reading<u64>,
    /// Checksum errors.
    pub crc_total: Reading<u64>,
}

impl NvLinks {
    /// Links that carry traffic.
    pub fn active(&self) -> usize {
        self.links.iter().filter(|link| link.state.text() == "active").count()
    }
}

fn sum(gpu: &Gpu, pick: fn(&NvLink) -> &Reading<u64>) -> Vec<(String, Reading<f64>)> {
    gpu.nvlink.links.iter().map(|link| (link.link.to_string(), pick(link).number())).collect()
}

/// Rows of the metric table.
pub const METRICS: &[Metric<Gpu>] = &[
    Metric::gauge("infertop_gpu_nvlink_links", "NVLinks that the GPU has.", |g| {
        g.nvlink.count.number()
    }),
    Metric::gauge("infertop_gpu_nvlink_links_active", "NVLinks that carry traffic.", |g| {
        g.nvlink.count.as_ref().map(|_| g.nvlink.active() as f64)
    }),
    Metric::gauge(
        "infertop_gpu_nvlink_tx_bytes_per_second",
        "Traffic from the GPU over all NVLinks.",
        |g| g.nvlink.tx_bytes_per_second.number(),
    ),
    Metric::gauge(
        "infertop_gpu_nvlink_rx_bytes_per_second",
        "Traffic to the GPU over all NVLinks.",
        |g| g.nvlink.rx_bytes_per_second.number(),
    ),
    Metric::counter_each(
        "infertop_gpu_nvlink_replays_total",
        "NVLink replays by link.",
        "link",
        |g| sum(g, |l| &l.replay_total),
    ),
    Metric::counter_each(
        "infertop_gpu_nvlink_recoveries_total",
        "NVLink recoveries by link.",
        "link",
        |g| sum(g, |l| &l.recovery_total),
    ),
    Metric::counter_each(
        "infertop_gpu_nvlink_crc_errors_total",
        "NVLink checksum errors by link.",
        "link",
        |g| sum(g, |l| &l.crc_total),
    ),
];
