//! The NVSwitch fabric as the GPU sees it (Hopper and newer on boards with switches).
//!
//! Stuck in progress means that the fabric manager is not running or is of another version. The
//! health mask packs several two-bit answers: 0 not applicable, 1 true, 2 false.

use std::time::Instant;

use nvml_wrapper_sys::bindings as sys;
use serde::{Deserialize, Serialize};

use super::session::{Device, Zeroed, call, version_word};
use crate::metric::Metric;
use crate::reading::{Absence, Reading};
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

/// Two-bit answers of the health mask with their shift: 1 is a complaint.
const COMPLAINTS: [(u32, &str); 4] = [
    (0, "degraded bandwidth"),
    (2, "route recovery in progress"),
    (4, "route unhealthy"),
    (6, "access timeout recovery"),
];

/// What the four bits from shift 8 say of the configuration; 0 and 1 are no complaint.
const MISCONFIGURED: [&str; 9] = [
    "",
    "",
    "system GUID differs",
    "chassis serial differs",
    "no partition",
    "too few NVLinks",
    "firmware does not fit",
    "wrong location",
    "GPU state does not fit",
];

impl Fabric {
    /// Reads the registration.
    pub(crate) fn read_slow(&mut self, device: &Device) {
        let start = Instant::now();
        let mut info = sys::nvmlGpuFabricInfoV_t::zeroed();
        info.version = version_word::<sys::nvmlGpuFabricInfoV_t>(3);
        let mut answer =
            call!(device[3], nvmlDeviceGetGpuFabricInfoV(device.handle(), &raw mut info));
        let mut summary = Some(u32::from(info.healthSummary));
        if answer == Err(Absence::TooOld) {
            // Drivers before the summary existed know version 2, whose fields come first in 3.
            info = sys::nvmlGpuFabricInfoV_t::zeroed();
            info.version = version_word::<sys::nvmlGpuFabricInfo_v2_t>(2);
            answer = call!(device[2], nvmlDeviceGetGpuFabricInfoV(device.handle(), &raw mut info));
            summary = None;
        }
        let state: Reading<u32> =
            Reading::from(answer).and_then(|()| match u32::from(info.state) {
                0 => Reading::UNSUPPORTED,
                state => state.into(),
            });
        let ready = state.get() == Some(3);
        let once_ready = |value: u32| {
            state.as_ref().and_then(|_| {
                if ready { Reading::Value(value) } else { Reading::Absent(Absence::NoData) }
            })
        };
        self.status = once_ready(info.status);
        self.clique = once_ready(info.cliqueId);
        self.health_mask = once_ready(info.healthMask);
        self.complaints = self.health_mask.value().map_or_else(Vec::new, |mask| complaints(*mask));
        self.health = match summary {
            Some(summary) => once_ready(summary).map(summary_name),
            None => Reading::Absent(Absence::TooOld),
        };
        self.state = state.map(state_name);
        self.read = device.stamp(start);
    }
}

fn state_name(state: u32) -> String {
    match state {
        1 => "not started".into(),
        2 => "in progress".into(),
        3 => "completed".into(),
        other => format!("state {other}"),
    }
}

fn summary_name(summary: u32) -> String {
    match summary {
        0 => "not told".into(),
        1 => "healthy".into(),
        2 => "unhealthy".into(),
        3 => "limited capacity".into(),
        other => format!("summary {other}"),
    }
}

fn complaints(mask: u32) -> Vec<String> {
    let mut found: Vec<String> = COMPLAINTS
        .iter()
        .filter(|(shift, _)| mask >> shift & 3 == 1)
        .map(|(_, words)| (*words).into())
        .collect();
    let configuration = (mask >> 8 & 0xF) as usize;
    match MISCONFIGURED.get(configuration) {
        Some(&"") => {}
        Some(words) => found.push((*words).into()),
        None => found.push(format!("configuration {configuration}")),
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_health_mask_is_put_into_words() {
        assert_eq!(complaints(0b10_10_10_10), Vec::<String>::new());
        assert_eq!(complaints(0b01 | 1 << 8), ["degraded bandwidth"]);
        assert_eq!(complaints(5 << 8), ["too few NVLinks"]);
        assert_eq!(complaints(0xF << 8), ["configuration 15"]);
    }
}
