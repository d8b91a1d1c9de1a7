//! NVLink: state, speed, traffic and errors of each link.
//!
//! Counters are per link through field values with the link as scope, which the wrapper cannot ask
//! for. `nvmlDeviceGetNvLinkVersion` is an enum and no generation, so it is not shown.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::fields::{ALL_LINKS, FieldSet};
use super::gpm::Gpm;
use super::pcie::counter_rate;
use super::session::Device;
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
    /// Data from the GPU over all links since some start, KiB (up to NVLink 4).
    pub tx_kib_total: Reading<u64>,
    /// Data to the GPU over all links since some start, KiB (up to NVLink 4).
    pub rx_kib_total: Reading<u64>,
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

/// Field of the number of links.
pub(crate) const COUNT_FIELD: (u32, u32) = (91, 0);
/// More links than any GPU has.
const MOST_LINKS: u32 = 72;

/// Fields of traffic for GPUs without GPM: data in KiB over all links up to NVLink 4.
pub(crate) const FAST_FIELDS: [(u32, u32); 2] = [(138, ALL_LINKS), (139, ALL_LINKS)];

/// Fields of each link: speed, state, and errors under their names of either generation.
pub(crate) fn link_fields(count: u32) -> Vec<(u32, u32)> {
    const EACH: [u32; 8] = [164, 165, 161, 162, 163, 295, 215, 219];
    let links = 0..count.min(MOST_LINKS);
    links.flat_map(|link| EACH.into_iter().map(move |id| (id, link))).collect()
}

impl NvLinks {
    /// Reads the traffic.
    pub(crate) fn read(&mut self, device: &Device, fields: &FieldSet, gpm: &Gpm) {
        let start = Instant::now();
        if self.count.value().is_none() {
            self.tx_bytes_per_second = self.count.clone().map(f64::from);
            self.rx_bytes_per_second = self.tx_bytes_per_second.clone();
            self.tx_kib_total = self.count.clone().map(u64::from);
            self.rx_kib_total = self.tx_kib_total.clone();
            return;
        }
        let before = (self.read.at_ms, self.tx_kib_total.get(), self.rx_kib_total.get());
        self.tx_kib_total = fields.unsigned(138, ALL_LINKS);
        self.rx_kib_total = fields.unsigned(139, ALL_LINKS);
        self.read = device.stamp(start);
        let seconds = self.read.at_ms.saturating_sub(before.0) as f64 / 1000.0;
        let rate = |gpm: &Reading<f64>, before, now: &Reading<u64>| {
            gpm.clone()
                .or_else(|| counter_rate(before, now, seconds).map(|kib| kib * 1024.0))
                .and_then(|rate| device.in_range(rate, 0.0..=10e12))
        };
        self.tx_bytes_per_second =
            rate(&gpm.nvlink_tx_bytes_per_second, before.1, &self.tx_kib_total);
        self.rx_bytes_per_second =
            rate(&gpm.nvlink_rx_bytes_per_second, before.2, &self.rx_kib_total);
    }

    /// Takes the number of links; 0 is none.
    pub(crate) fn set_count(&mut self, device: &Device, count: Reading<u32>) {
        self.count = count.and_then(|count| match count {
            0 => Reading::UNSUPPORTED,
            _ => device.in_range(count, 1..=MOST_LINKS),
        });
    }

    /// Reads each link.
    pub(crate) fn read_slow(&mut self, fields: &FieldSet) {
        let count = self.count.get().unwrap_or(0);
        self.links = (0..count)
            .map(|link| {
                let either = |older, newer| {
                    fields.unsigned(older, link).or_else(|| fields.unsigned(newer, link))
                };
                NvLink {
                    link,
                    state: fields.small(165, link).map(state_name),
                    speed_bytes_per_second: fields.unsigned(164, link).map(|mb| mb as f64 * 1e6),
                    replay_total: either(161, 295),
                    recovery_total: either(162, 215),
                    crc_total: either(163, 219),
                }
            })
            .collect();
    }
}

fn state_name(state: u32) -> String {
    match state {
        0 => "inactive".into(),
        1 => "active".into(),
        2 => "sleep".into(),
        3 => "traffic disabled".into(),
        other => format!("state {other}"),
    }
}
