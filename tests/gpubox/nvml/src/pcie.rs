//! The host link.

use crate::call::{Ask, put, supported};
use crate::codes::{Answer, INVALID_ARGUMENT};

/// MB/s of one lane by generation.
const LANE: [u32; 7] = [0, 250, 500, 985, 1969, 3938, 7563];
/// Mbps of one lane by generation, as `nvmlDeviceGetPcieSpeed` counts.
const SPEED: [u32; 7] = [0, 2500, 5000, 8000, 16000, 32000, 64000];

fn linked(ask: &Ask) -> Answer {
    supported(ask.gpu.spec.pcie.width > 0)
}

device_calls! {
    fn nvmlDeviceGetMaxPcieLinkGeneration(ask, generation: *mut u32) {
        linked(ask)?;
        ask.put(generation, ask.pcie_generation_max())
    }
    fn nvmlDeviceGetGpuMaxPcieLinkGeneration(ask, generation: *mut u32) {
        linked(ask)?;
        ask.put(generation, ask.gpu.spec.pcie.generation)
    }
    fn nvmlDeviceGetMaxPcieLinkWidth(ask, width: *mut u32) {
        linked(ask)?;
        ask.put(width, ask.gpu.spec.pcie.width)
    }
    fn nvmlDeviceGetCurrPcieLinkGeneration(ask, generation: *mut u32) {
        linked(ask)?;
        ask.put(generation, ask.pcie_generation())
    }
    fn nvmlDeviceGetCurrPcieLinkWidth(ask, width: *mut u32) {
        linked(ask)?;
        ask.put(width, ask.pcie_width())
    }
    fn nvmlDeviceGetPcieSpeed(ask, speed: *mut u32) {
        linked(ask)?;
        ask.put(speed, SPEED[ask.pcie_generation().min(6) as usize])
    }
    fn nvmlDeviceGetPcieLinkMaxSpeed(ask, speed: *mut u32) {
        linked(ask)?;
        // An enum: 1 is 2.5 GT/s, 5 is 32 GT/s.
        ask.put(speed, ask.pcie_generation_max().min(6))
    }
    fn nvmlDeviceGetPcieThroughput(ask, counter: u32, value: *mut u32) {
        linked(ask)?;
        // Not for a guest, whose link belongs to the host.
        supported(ask.gpu.spec.virtualization != 2)?;
        let rate = match counter {
            0 => ask.pcie_tx(),
            1 => ask.pcie_rx(),
            _ => return Err(INVALID_ARGUMENT),
        };
        let most = LANE[ask.pcie_generation().min(6) as usize] * ask.pcie_width();
        ask.put(value, ((rate * 1024.0) as u32).min(most * 1000))
    }
    fn nvmlDeviceGetPcieReplayCounter(ask, value: *mut u32) {
        linked(ask)?;
        put(value, ask.lie.map_or(ask.pcie_replays() as u32, |lie| lie as u32))
    }
}
