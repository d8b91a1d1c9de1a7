//! The PCIe link: generation, width, traffic, errors.
//!
//! Generation and width drop at idle on many parts, so they are judged only under load. Traffic comes
//! from the first of GPM, byte counters (fields 197/198) and `nvmlDeviceGetPcieThroughput` that this
//! GPU has; the last one blocks for 20 ms a direction and so runs on a thread of its own. TX is from
//! the GPU, RX is to it.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::fields::FieldSet;
use super::gpm::Gpm;
use super::session::{Device, call};
use crate::metric::Metric;
use crate::reading::{Absence, Reading};
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

/// Fields of replay, byte counters and link errors.
pub(crate) fn fast_fields() -> Vec<(u32, u32)> {
    [94, 197, 198].into_iter().chain(ERRORS.iter().map(|(id, _)| *id)).map(|id| (id, 0)).collect()
}

/// Error counters with their field.
const ERRORS: [(u32, &str); 11] = [
    (169, "recovery"),
    (173, "correctable"),
    (174, "nak_received"),
    (175, "receiver"),
    (176, "bad_tlp"),
    (177, "nak_sent"),
    (178, "bad_dllp"),
    (179, "nonfatal"),
    (180, "fatal"),
    (181, "unsupported_request"),
    (182, "lcrc"),
];

/// The fastest link that is believed, both directions apart: generation 7 with 16 lanes.
const MOST_BYTES_PER_SECOND: f64 = 260e9;

impl Pcie {
    /// Reads errors and traffic. `window` is the latest answer of the blocking call, if one runs.
    pub(crate) fn read(
        &mut self,
        device: &Device,
        fields: &FieldSet,
        gpm: &Gpm,
        window: Option<(Reading<f64>, Reading<f64>)>,
    ) {
        let start = Instant::now();
        self.replay_total = fields.unsigned(94, 0);
        self.errors = ERRORS
            .iter()
            .filter_map(|(id, kind)| {
                let total = fields.unsigned(*id, 0).get()?;
                Some(PcieErrors { kind: (*kind).into(), total })
            })
            .collect();
        let before = (self.read.at_ms, self.tx_bytes_total.get(), self.rx_bytes_total.get());
        self.tx_bytes_total = fields.unsigned(197, 0);
        self.rx_bytes_total = fields.unsigned(198, 0);
        self.read = device.stamp(start);
        let seconds = self.read.at_ms.saturating_sub(before.0) as f64 / 1000.0;
        let (source, tx, rx) = if gpm.pcie_tx_bytes_per_second.value().is_some() {
            let (tx, rx) = (&gpm.pcie_tx_bytes_per_second, &gpm.pcie_rx_bytes_per_second);
            ("gpm", tx.clone(), rx.clone())
        } else if self.tx_bytes_total.value().is_some() {
            let rate = |before, now: &Reading<u64>| counter_rate(before, now, seconds);
            ("counters", rate(before.1, &self.tx_bytes_total), rate(before.2, &self.rx_bytes_total))
        } else if let Some((tx, rx)) = window {
            ("window", tx, rx)
        } else {
            // The blocking call, where it is the only way, answers a moment later.
            let reason = match gpm.supported.get() {
                Some(false) => Absence::NotRead,
                _ => gpm.pcie_tx_bytes_per_second.absence().cloned().unwrap_or_default(),
            };
            self.rate_source = Reading::Absent(reason.clone());
            self.tx_bytes_per_second = Reading::Absent(reason.clone());
            self.rx_bytes_per_second = Reading::Absent(reason);
            return;
        };
        let believed = |rate: Reading<f64>| {
            rate.and_then(|rate| device.in_range(rate, 0.0..=MOST_BYTES_PER_SECOND))
        };
        self.rate_source = source.to_string().into();
        self.tx_bytes_per_second = believed(tx);
        self.rx_bytes_per_second = believed(rx);
    }

    /// Whether traffic can be had without the blocking call.
    pub(crate) fn has_cheap_rate(&self) -> bool {
        matches!(self.rate_source.text(), "gpm" | "counters")
    }

    /// Reads generation and width.
    pub(crate) fn read_slow(&mut self, device: &Device) {
        let mut value = 0;
        self.generation = Reading::from(call!(
            device,
            nvmlDeviceGetCurrPcieLinkGeneration(device.handle(), &raw mut value)
        ))
        .and_then(|()| device.in_range(value, 1..=10));
        self.width = Reading::from(call!(
            device,
            nvmlDeviceGetCurrPcieLinkWidth(device.handle(), &raw mut value)
        ))
        .and_then(|()| device.in_range(value, 1..=32));
    }

    /// Reads what the link could be.
    pub(crate) fn read_once(&mut self, device: &Device) {
        let mut value = 0;
        self.max_generation = Reading::from(call!(
            device,
            nvmlDeviceGetMaxPcieLinkGeneration(device.handle(), &raw mut value)
        ))
        .and_then(|()| device.in_range(value, 1..=10));
        self.max_width = Reading::from(call!(
            device,
            nvmlDeviceGetMaxPcieLinkWidth(device.handle(), &raw mut value)
        ))
        .and_then(|()| device.in_range(value, 1..=32));
        self.gpu_max_generation = Reading::from(call!(
            device,
            nvmlDeviceGetGpuMaxPcieLinkGeneration(device.handle(), &raw mut value)
        ))
        .and_then(|()| device.in_range(value, 1..=10));
    }
}

/// Both directions over 20 ms windows, one after the other: blocks for 40 ms.
pub fn read_window(device: &Device) -> (Reading<f64>, Reading<f64>) {
    let direction = |counter: u32| {
        let mut kilobytes = 0;
        call!(
            device[counter],
            nvmlDeviceGetPcieThroughput(device.handle(), counter, &raw mut kilobytes)
        )
        .map(|()| f64::from(kilobytes) * 1000.0)
        .into()
    };
    (direction(0), direction(1))
}

/// A counter's rate; a counter that went back has wrapped or restarted and gives none.
pub(crate) fn counter_rate(before: Option<u64>, now: &Reading<u64>, seconds: f64) -> Reading<f64> {
    now.as_ref().and_then(|now| match before {
        Some(before) if *now >= before && seconds > 0.0 => {
            Reading::Value((now - before) as f64 / seconds)
        }
        Some(_) => Reading::Absent(Absence::NoData),
        None => Reading::Absent(Absence::NotRead),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_wrapped_gives_no_rate() {
        assert_eq!(counter_rate(Some(100), &300.into(), 2.0), Reading::Value(100.0));
        assert_eq!(counter_rate(Some(300), &100.into(), 2.0).value(), None);
        assert_eq!(counter_rate(None, &100.into(), 2.0).value(), None);
    }
}
