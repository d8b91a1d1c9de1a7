//! Power, its limits, energy.

use crate::call::{Ask, supported};
use crate::codes::Answer;

fn limited(ask: &Ask) -> Answer {
    supported(ask.gpu.spec.power_watts.max > 0.0)
}

fn milliwatts(watts: f64) -> u32 {
    (watts * 1000.0) as u32
}

device_calls! {
    fn nvmlDeviceGetPowerUsage(ask, power: *mut u32) { ask.put(power, milliwatts(ask.power())) }
    fn nvmlDeviceGetPowerManagementMode(ask, mode: *mut u32) {
        limited(ask)?;
        ask.put(mode, 1)
    }
    fn nvmlDeviceGetPowerManagementLimit(ask, limit: *mut u32) {
        limited(ask)?;
        ask.put(limit, milliwatts(ask.power_limit()))
    }
    fn nvmlDeviceGetEnforcedPowerLimit(ask, limit: *mut u32) {
        limited(ask)?;
        ask.put(limit, milliwatts(ask.power_limit()))
    }
    fn nvmlDeviceGetPowerManagementDefaultLimit(ask, limit: *mut u32) {
        limited(ask)?;
        ask.put(limit, milliwatts(ask.gpu.spec.power_watts.max))
    }
    fn nvmlDeviceGetPowerManagementLimitConstraints(ask, min: *mut u32, max: *mut u32) {
        limited(ask)?;
        ask.put(min, milliwatts(ask.gpu.spec.power_watts.min))?;
        ask.put(max, milliwatts(ask.gpu.spec.power_watts.max))
    }
    fn nvmlDeviceGetTotalEnergyConsumption(ask, energy: *mut u64) {
        supported(ask.gpu.spec.architecture >= 5)?;
        ask.put(energy, (ask.energy() * 1000.0) as u64)
    }
    fn nvmlDeviceGetPowerSource(ask, source: *mut u32) { ask.put(source, 0) }
}
