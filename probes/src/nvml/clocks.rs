//! Clocks, P-state and the reasons that hold the clocks down.
//!
//! The reasons mask is read raw: wrappers drop the bits they do not know. The time spent under each
//! reason (fields 74 to 79 and 269 to 271, cumulative) cannot be missed between ticks. `idle` is not
//! throttling, and `power_cap` alone is normal under full load on power-limited parts.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::fields::{FieldSet, reason_time_ids};
use super::session::{Device, call};
use crate::metric::Metric;
use crate::reading::{Absence, Reading};
use crate::snapshot::{Gpu, Stamp};

/// Clocks in MHz, and what slows them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clocks {
    /// When it was read.
    pub read: Stamp,
    /// Multiprocessor clock.
    pub sm_mhz: Reading<u32>,
    /// Graphics clock.
    pub graphics_mhz: Reading<u32>,
    /// Memory clock.
    pub memory_mhz: Reading<u32>,
    /// Video clock.
    pub video_mhz: Reading<u32>,
    /// The most of the multiprocessor clock.
    pub sm_max_mhz: Reading<u32>,
    /// The most of the memory clock.
    pub memory_max_mhz: Reading<u32>,
    /// P-state: 0 is the fastest, 15 the slowest.
    pub performance_state: Reading<u32>,
    /// Active reasons, NVML's bit mask.
    pub reasons: Reading<u64>,
    /// Reasons that this GPU can report.
    pub reasons_supported: Reading<u64>,
    /// Time under the power cap, nanoseconds.
    pub power_cap_ns_total: Reading<u64>,
    /// Time under a thermal limit, nanoseconds.
    pub thermal_ns_total: Reading<u64>,
    /// Time under the board limit, nanoseconds.
    pub board_limit_ns_total: Reading<u64>,
    /// Time under the reliability limit, nanoseconds.
    pub reliability_ns_total: Reading<u64>,
    /// Time under software thermal slowdown, nanoseconds.
    pub software_thermal_ns_total: Reading<u64>,
    /// Time under hardware thermal slowdown, nanoseconds.
    pub hardware_thermal_ns_total: Reading<u64>,
    /// Time under the hardware power brake, nanoseconds.
    pub power_brake_ns_total: Reading<u64>,
}

/// Reasons with their bit and name, in the order of the bits.
pub const REASONS: &[(u64, &str)] = &[
    (0x1, "idle"),
    (0x2, "application clocks"),
    (0x4, "power cap"),
    (0x8, "hardware slowdown"),
    (0x10, "sync boost"),
    (0x20, "software thermal"),
    (0x40, "hardware thermal"),
    (0x80, "power brake"),
    (0x100, "display clock"),
    (0x200, "board limit"),
    (0x400, "reliability"),
];

/// Bits that mean that the GPU is slower than it could be, for a fault or a limit other than the
/// power cap.
pub const SLOWDOWN_MASK: u64 = 0x8 | 0x20 | 0x40 | 0x80 | 0x200 | 0x400;

/// The names of a mask's reasons; a bit without a name is written as its number.
pub fn reason_names(mask: u64) -> Vec<String> {
    let known = REASONS.iter().fold(0, |all, (bit, _)| all | bit);
    let mut names: Vec<String> =
        REASONS.iter().filter(|(bit, _)| mask & bit != 0).map(|(_, name)| (*name).into()).collect();
    if mask & !known != 0 {
        names.push(format!("{:#x}", mask & !known));
    }
    names
}

fn seconds(ns: &Reading<u64>) -> Reading<f64> {
    ns.number().map(|ns| ns / 1e9)
}

/// Rows of the metric table.
pub const METRICS: &[Metric<Gpu>] = &[
    Metric::gauge("infertop_gpu_sm_clock_hertz", "Multiprocessor clock.", |g| {
        g.clocks.sm_mhz.number().map(|m| m * 1e6)
    }),
    Metric::gauge("infertop_gpu_memory_clock_hertz", "Clock of the device memory.", |g| {
        g.clocks.memory_mhz.number().map(|m| m * 1e6)
    }),
    Metric::gauge("infertop_gpu_sm_clock_max_hertz", "Highest multiprocessor clock.", |g| {
        g.clocks.sm_max_mhz.number().map(|m| m * 1e6)
    }),
    Metric::gauge("infertop_gpu_performance_state", "P-state, 0 is the fastest.", |g| {
        g.clocks.performance_state.number()
    }),
    Metric::gauge(
        "infertop_gpu_clock_reasons_mask",
        "Active clock reasons as NVML's bit mask.",
        |g| g.clocks.reasons.number(),
    ),
    Metric::counter("infertop_gpu_power_cap_seconds_total", "Time under the power cap.", |g| {
        seconds(&g.clocks.power_cap_ns_total)
    }),
    Metric::counter(
        "infertop_gpu_thermal_limit_seconds_total",
        "Time under a thermal limit.",
        |g| seconds(&g.clocks.thermal_ns_total),
    ),
    Metric::counter(
        "infertop_gpu_software_thermal_seconds_total",
        "Time under software thermal slowdown.",
        |g| seconds(&g.clocks.software_thermal_ns_total),
    ),
    Metric::counter(
        "infertop_gpu_hardware_thermal_seconds_total",
        "Time under hardware thermal slowdown.",
        |g| seconds(&g.clocks.hardware_thermal_ns_total),
    ),
    Metric::counter(
        "infertop_gpu_power_brake_seconds_total",
        "Time under the hardware power brake.",
        |g| seconds(&g.clocks.power_brake_ns_total),
    ),
];

/// Fields that [`Clocks::read`] takes: time under each reason.
pub(crate) fn fast_fields(driver_version: &str) -> Vec<(u32, u32)> {
    [74, 75, 77, 79].into_iter().chain(reason_time_ids(driver_version)).map(|id| (id, 0)).collect()
}

/// The largest clock that is believed.
const MOST_MHZ: u32 = 20_000;

fn clock(device: &Device, kind: u32) -> Reading<u32> {
    let mut mhz = 0;
    Reading::from(call!(device[kind], nvmlDeviceGetClockInfo(device.handle(), kind, &raw mut mhz)))
        .and_then(|()| device.in_range(mhz, 0..=MOST_MHZ))
}

fn max_clock(device: &Device, kind: u32) -> Reading<u32> {
    let mut mhz = 0;
    Reading::from(call!(
        device[kind],
        nvmlDeviceGetMaxClockInfo(device.handle(), kind, &raw mut mhz)
    ))
    .and_then(|()| device.in_range(mhz, 0..=MOST_MHZ))
}

impl Clocks {
    /// Reads what changes from tick to tick.
    pub(crate) fn read(&mut self, device: &Device, fields: &FieldSet, driver_version: &str) {
        let start = Instant::now();
        self.sm_mhz = clock(device, 1);
        let mut mask = 0;
        self.reasons = Reading::from(call!(
            device,
            nvmlDeviceGetCurrentClocksEventReasons(device.handle(), &raw mut mask)
        ))
        .or_else(|| {
            // The name before R535.
            call!(device, nvmlDeviceGetCurrentClocksThrottleReasons(device.handle(), &raw mut mask))
                .into()
        })
        .map(|()| mask);
        self.power_cap_ns_total = fields.unsigned(74, 0);
        self.thermal_ns_total = fields.unsigned(75, 0);
        self.board_limit_ns_total = fields.unsigned(77, 0);
        self.reliability_ns_total = fields.unsigned(79, 0);
        let [software, hardware, brake] = reason_time_ids(driver_version);
        self.software_thermal_ns_total = fields.unsigned(software, 0);
        self.hardware_thermal_ns_total = fields.unsigned(hardware, 0);
        self.power_brake_ns_total = fields.unsigned(brake, 0);
        self.read = device.stamp(start);
    }

    /// Reads the other clocks and the P-state.
    pub(crate) fn read_slow(&mut self, device: &Device) {
        self.graphics_mhz = clock(device, 0);
        self.memory_mhz = clock(device, 2);
        self.video_mhz = clock(device, 3);
        let mut state = 0;
        self.performance_state = Reading::from(call!(
            device,
            nvmlDeviceGetPerformanceState(device.handle(), &raw mut state)
        ))
        // 32 stands for unknown.
        .and_then(|()| {
            if state == 32 {
                Reading::Absent(Absence::NoData)
            } else {
                device.in_range(state, 0..=15)
            }
        });
    }

    /// Reads what stays while the driver is loaded.
    pub(crate) fn read_once(&mut self, device: &Device) {
        self.sm_max_mhz = max_clock(device, 1);
        self.memory_max_mhz = max_clock(device, 2);
        let mut mask = 0;
        self.reasons_supported = Reading::from(call!(
            device,
            nvmlDeviceGetSupportedClocksEventReasons(device.handle(), &raw mut mask)
        ))
        .or_else(|| {
            call!(
                device,
                nvmlDeviceGetSupportedClocksThrottleReasons(device.handle(), &raw mut mask)
            )
            .into()
        })
        .map(|()| mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_reason_bit_is_shown_not_dropped() {
        assert_eq!(reason_names(0x44), ["power cap", "hardware thermal"]);
        assert_eq!(reason_names(0x1001), ["idle", "0x1000"]);
    }
}
