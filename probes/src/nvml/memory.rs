//! Device memory: what the driver keeps for itself, what is used, what is free.
//!
//! From `nvmlDeviceGetMemoryInfo_v2`, where total = reserved + used + free on every capture we have
//! (the header says otherwise). Drivers before R510 have only v1, whose `used` includes the
//! reserve. Parts without memory of their own (GB10, Jetson) answer `NOT_SUPPORTED`, a total of 0 or
//! the system's total: they are told by comparing with `MemTotal`, not by name or code.

use std::time::Instant;

use nvml_wrapper_sys::bindings as sys;
use serde::{Deserialize, Serialize};

use super::session::{Device, Zeroed, call, version_word};
use crate::metric::Metric;
use crate::reading::{Absence, Reading};
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

impl Memory {
    /// Reads what changes. `system` is the box's main memory (total, available), for parts that
    /// have none of their own.
    pub(crate) fn read(&mut self, device: &Device, system: Option<(u64, u64)>) {
        let start = Instant::now();
        let mut info = sys::nvmlMemory_v2_t::zeroed();
        info.version = version_word::<sys::nvmlMemory_v2_t>(2);
        match call!(device, nvmlDeviceGetMemoryInfo_v2(device.handle(), &raw mut info)) {
            Ok(()) if !is_system_memory(info.total, system) => {
                self.unified = false;
                let total = device.in_range(info.total, 1..=MOST_BYTES);
                let part = |value| total.as_ref().and_then(|all| device.in_range(value, 0..=*all));
                self.reserved_bytes = part(info.reserved);
                self.used_bytes = part(info.used);
                self.free_bytes = part(info.free);
                self.total_bytes = total;
            }
            Ok(()) | Err(Absence::Unsupported) => self.share_system(system),
            Err(Absence::TooOld) => self.read_v1(device, system),
            Err(absence) => self.set_absent(&absence),
        }
        self.read = device.stamp(start);
    }

    fn read_v1(&mut self, device: &Device, system: Option<(u64, u64)>) {
        let mut info = sys::nvmlMemory_t::zeroed();
        match call!(device, nvmlDeviceGetMemoryInfo(device.handle(), &raw mut info)) {
            Ok(()) if !is_system_memory(info.total, system) => {
                self.unified = false;
                let total = device.in_range(info.total, 1..=MOST_BYTES);
                let part = |value| total.as_ref().and_then(|all| device.in_range(value, 0..=*all));
                self.reserved_bytes = Reading::Absent(Absence::TooOld);
                self.used_bytes = part(info.used);
                self.free_bytes = part(info.free);
                self.total_bytes = total;
            }
            Ok(()) | Err(Absence::Unsupported) => self.share_system(system),
            Err(absence) => self.set_absent(&absence),
        }
    }

    fn share_system(&mut self, system: Option<(u64, u64)>) {
        self.unified = true;
        self.reserved_bytes = Reading::UNSUPPORTED;
        let system: Reading<(u64, u64)> =
            system.map_or(Reading::Absent(Absence::NoData), Reading::Value);
        self.total_bytes = system.clone().map(|(total, _)| total);
        self.free_bytes = system.clone().map(|(_, available)| available);
        self.used_bytes = system.map(|(total, available)| total.saturating_sub(available));
    }

    fn set_absent(&mut self, absence: &Absence) {
        for reading in [
            &mut self.total_bytes,
            &mut self.reserved_bytes,
            &mut self.used_bytes,
            &mut self.free_bytes,
        ] {
            *reading = Reading::Absent(absence.clone());
        }
    }

    /// Reads the BAR1 window, which changes seldom.
    pub(crate) fn read_bar1(&mut self, device: &Device) {
        let mut info = sys::nvmlBAR1Memory_t::zeroed();
        let answer = call!(device, nvmlDeviceGetBAR1MemoryInfo(device.handle(), &raw mut info));
        self.bar1_total_bytes = answer.clone().map(|()| info.bar1Total).into();
        self.bar1_used_bytes = answer.map(|()| info.bar1Used).into();
    }
}

/// No GPU has a pebibyte; a total above it is a sentinel.
pub(crate) const MOST_BYTES: u64 = 1 << 50;

/// GB10 and its kin answer 0, the system's total, or not at all: within a percent of `MemTotal`
/// is the system's memory. A dedicated part of exactly that size has never been seen.
fn is_system_memory(total: u64, system: Option<(u64, u64)>) -> bool {
    total == 0 || system.is_some_and(|(all, _)| total.abs_diff(all) < all / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_memory_is_told_by_its_size() {
        let system = Some((128_000_000_000, 90_000_000_000));
        assert!(is_system_memory(0, None));
        assert!(is_system_memory(127_900_000_000, system));
        assert!(!is_system_memory(85_000_000_000, system));
        assert!(!is_system_memory(85_000_000_000, None));
    }
}
