//! Temperatures and their thresholds: absolute up to Ampere, relative (T.Limit, see `fields.rs`)
//! from Ada on.

use nvml_wrapper_sys::bindings::{nvmlMarginTemperature_v1_t, nvmlTemperature_v1_t};

use crate::call::{edit, get, supported, versioned};
use crate::codes::{INVALID_ARGUMENT, NOT_SUPPORTED};

device_calls! {
    fn nvmlDeviceGetTemperature(ask, sensor: u32, temperature: *mut u32) {
        match sensor {
            0 => ask.put(temperature, ask.temperature() as u32),
            _ => Err(INVALID_ARGUMENT),
        }
    }
    fn nvmlDeviceGetTemperatureV(ask, temperature: *mut nvmlTemperature_v1_t) {
        versioned(temperature, 1)?;
        if get(temperature)?.sensorType != 0 {
            return Err(INVALID_ARGUMENT);
        }
        let degrees = ask.lie.unwrap_or_else(|| ask.temperature());
        edit(temperature, |temperature| temperature.temperature = degrees as i32)
    }
    fn nvmlDeviceGetMarginTemperature(ask, margin: *mut nvmlMarginTemperature_v1_t) {
        versioned(margin, 1)?;
        supported(ask.gpu.spec.architecture >= 8 && ask.gpu.spec.datacenter)?;
        let degrees = ask.lie.unwrap_or_else(|| ask.margin());
        edit(margin, |margin| margin.marginTemperature = degrees as i32)
    }
    fn nvmlDeviceGetTemperatureThreshold(ask, kind: u32, temperature: *mut u32) {
        let thresholds = ask.gpu.spec.thresholds.ok_or(NOT_SUPPORTED)?;
        match kind {
            0 => ask.put(temperature, thresholds.shutdown),
            1 => ask.put(temperature, thresholds.slowdown),
            2 => ask.put(temperature, thresholds.memory.ok_or(NOT_SUPPORTED)?),
            3 => ask.put(temperature, thresholds.gpu),
            4..=7 => Err(NOT_SUPPORTED),
            _ => Err(INVALID_ARGUMENT),
        }
    }
}
