//! Fans: what is intended, not what turns. Passive and SXM parts have none.

use nvml_wrapper_sys::bindings::nvmlFanSpeedInfo_v1_t;

use crate::call::{Ask, edit, get, put, supported, versioned};
use crate::codes::{Answer, INVALID_ARGUMENT};

fn percent(ask: &Ask) -> f64 {
    match &ask.gpu.spec.fan {
        Some(series) => series.at(ask.t),
        None => (30.0 + (ask.temperature() - 40.0).max(0.0) * 1.6).min(100.0),
    }
}

fn present(ask: &Ask, fan: u32) -> Answer {
    supported(ask.gpu.spec.fans > 0)?;
    if fan < ask.gpu.spec.fans { Ok(()) } else { Err(INVALID_ARGUMENT) }
}

device_calls! {
    fn nvmlDeviceGetNumFans(ask, fans: *mut u32) {
        ask.put_if(ask.gpu.spec.fans > 0, fans, ask.gpu.spec.fans)
    }
    fn nvmlDeviceGetFanSpeed(ask, speed: *mut u32) {
        present(ask, 0)?;
        ask.put(speed, percent(ask) as u32)
    }
    fn nvmlDeviceGetFanSpeed_v2(ask, fan: u32, speed: *mut u32) {
        present(ask, fan)?;
        ask.put(speed, percent(ask) as u32)
    }
    fn nvmlDeviceGetTargetFanSpeed(ask, fan: u32, speed: *mut u32) {
        present(ask, fan)?;
        ask.put(speed, percent(ask) as u32)
    }
    fn nvmlDeviceGetFanSpeedRPM(ask, info: *mut nvmlFanSpeedInfo_v1_t) {
        versioned(info, 1)?;
        present(ask, get(info)?.fan)?;
        let turns = ask.lie.unwrap_or_else(|| percent(ask) * 31.0);
        edit(info, |info| info.speed = turns as u32)
    }
    fn nvmlDeviceGetMinMaxFanSpeed(ask, min: *mut u32, max: *mut u32) {
        present(ask, 0)?;
        put(min, 30)?;
        put(max, 100)
    }
    fn nvmlDeviceGetFanControlPolicy_v2(ask, fan: u32, policy: *mut u32) {
        present(ask, fan)?;
        put(policy, 0)
    }
}
