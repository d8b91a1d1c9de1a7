//! Clocks and why they are what they are.

use nvml_wrapper_sys::bindings::nvmlViolationTime_t;

use crate::call::{Ask, put, put_list, supported};
use crate::codes::{Answer, DEPRECATED, INVALID_ARGUMENT, NOT_SUPPORTED};

fn now(ask: &Ask, kind: u32) -> Answer<u32> {
    match kind {
        0 | 1 => Ok(ask.sm_clock() as u32),
        2 => {
            supported(ask.gpu.spec.clocks.memory > 0)?;
            Ok(ask.memory_clock() as u32)
        }
        3 => Ok(ask.video_clock() as u32),
        _ => Err(INVALID_ARGUMENT),
    }
}

fn most(ask: &Ask, kind: u32) -> Answer<u32> {
    let clocks = ask.gpu.spec.clocks;
    match kind {
        0 | 1 => Ok(clocks.graphics),
        2 => {
            supported(clocks.memory > 0)?;
            Ok(clocks.memory)
        }
        3 => Ok(clocks.video),
        _ => Err(INVALID_ARGUMENT),
    }
}

fn supported_reasons(ask: &Ask) -> u64 {
    // Sync boost and brake exist on data-centre boards only.
    if ask.gpu.spec.datacenter { 0x1FF } else { 0x16F }
}

device_calls! {
    fn nvmlDeviceGetClockInfo(ask, kind: u32, clock: *mut u32) { ask.put(clock, now(ask, kind)?) }
    fn nvmlDeviceGetMaxClockInfo(ask, kind: u32, clock: *mut u32) { ask.put(clock, most(ask, kind)?) }
    fn nvmlDeviceGetMaxCustomerBoostClock(ask, kind: u32, clock: *mut u32) {
        supported(ask.gpu.spec.datacenter)?;
        ask.put(clock, most(ask, kind)?)
    }
    fn nvmlDeviceGetClock(ask, kind: u32, which: u32, clock: *mut u32) {
        match which {
            0 => ask.put(clock, now(ask, kind)?),
            1 | 2 => Err(DEPRECATED),
            3 => ask.put(clock, most(ask, kind)?),
            _ => Err(INVALID_ARGUMENT),
        }
    }
    fn nvmlDeviceGetApplicationsClock(_ask, _kind: u32, _clock: *mut u32) { Err(DEPRECATED) }
    fn nvmlDeviceGetDefaultApplicationsClock(_ask, _kind: u32, _clock: *mut u32) { Err(DEPRECATED) }
    fn nvmlDeviceGetSupportedMemoryClocks(ask, count: *mut u32, clocks: *mut u32) {
        supported(ask.gpu.spec.clocks.memory > 0)?;
        put_list(count, clocks, &[ask.gpu.spec.clocks.memory])
    }
    fn nvmlDeviceGetSupportedGraphicsClocks(ask, _memory: u32, count: *mut u32, clocks: *mut u32) {
        let steps: Vec<u32> = (0..1000)
            .map(|step| ask.gpu.spec.clocks.graphics.saturating_sub(step * 15))
            .take_while(|clock| *clock > 0 && *clock >= ask.gpu.spec.clocks.idle)
            .collect();
        put_list(count, clocks, &steps)
    }
    fn nvmlDeviceGetCurrentClocksEventReasons(ask, reasons: *mut u64) {
        ask.put(reasons, ask.reasons())
    }
    fn nvmlDeviceGetCurrentClocksThrottleReasons(ask, reasons: *mut u64) {
        ask.put(reasons, ask.reasons())
    }
    fn nvmlDeviceGetSupportedClocksEventReasons(ask, reasons: *mut u64) {
        ask.put(reasons, supported_reasons(ask))
    }
    fn nvmlDeviceGetSupportedClocksThrottleReasons(ask, reasons: *mut u64) {
        ask.put(reasons, supported_reasons(ask))
    }
    fn nvmlDeviceGetPerformanceState(ask, state: *mut u32) { ask.put(state, ask.pstate()) }
    fn nvmlDeviceGetPowerState(ask, state: *mut u32) { ask.put(state, ask.pstate()) }
    fn nvmlDeviceGetSupportedPerformanceStates(ask, states: *mut u32, size: u32) {
        let known: &[u32] = if ask.gpu.spec.datacenter { &[0] } else { &[0, 2, 3, 5, 8] };
        for position in 0..(size as usize / 4).min(16) {
            // The rest is filled with "unknown".
            let state = known.get(position).copied().unwrap_or(32);
            put(states.wrapping_add(position), state)?;
        }
        Ok(())
    }
    fn nvmlDeviceGetAutoBoostedClocksEnabled(_ask, _on: *mut u32, _default: *mut u32) {
        Err(NOT_SUPPORTED)
    }
    fn nvmlDeviceGetAdaptiveClockInfoStatus(ask, status: *mut u32) { ask.put(status, 1) }
    fn nvmlDeviceGetViolationStatus(ask, policy: u32, time: *mut nvmlViolationTime_t) {
        let bits = match policy {
            0 => 0x4,
            1 => 0x60,
            2 => 0x10,
            3..=5 | 10 | 11 => 0,
            _ => return Err(INVALID_ARGUMENT),
        };
        put(time, nvmlViolationTime_t {
            referenceTime: ask.site.unix_us(ask.t),
            violationTime: ask.reason_nanoseconds(bits),
        })
    }
}
