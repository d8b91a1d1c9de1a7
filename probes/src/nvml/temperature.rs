//! Temperatures and fans.
//!
//! Up to Ampere thresholds are absolute; from Ada on they are margins to the limit (T.Limit), which
//! is another scale: the two are never mixed here. Fan figures are what is intended, not measured.

use std::time::Instant;

use nvml_wrapper_sys::bindings as sys;
use serde::{Deserialize, Serialize};

use super::fields::FieldSet;
use super::session::{Device, Zeroed, call, version_word};
use crate::metric::Metric;
use crate::reading::{Absence, Reading};
use crate::snapshot::{Gpu, Stamp};

/// Temperatures in degrees Celsius.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Temperature {
    /// When it was read.
    pub read: Stamp,
    /// The GPU.
    pub gpu_celsius: Reading<i32>,
    /// Its memory; data centre parts with HBM.
    pub memory_celsius: Reading<i32>,
    /// Degrees left to the nearest slowdown (T.Limit); newer parts.
    pub margin_celsius: Reading<i32>,
    /// Slowdown starts here; parts up to Ampere.
    pub slowdown_celsius: Reading<i32>,
    /// The GPU shuts down here; parts up to Ampere.
    pub shutdown_celsius: Reading<i32>,
    /// Slowdown starts at this margin, signed (Ada and newer, where margins are used).
    pub slowdown_margin_celsius: Reading<i32>,
    /// The GPU shuts down at this margin.
    pub shutdown_margin_celsius: Reading<i32>,
    /// Fans, intended speed, 0 to 1; unsupported on passively cooled parts.
    pub fan_ratios: Reading<Vec<f64>>,
}

/// Rows of the metric table.
pub const METRICS: &[Metric<Gpu>] = &[
    Metric::gauge("infertop_gpu_temperature_celsius", "Temperature of the GPU.", |g| {
        g.temperature.gpu_celsius.number()
    }),
    Metric::gauge(
        "infertop_gpu_memory_temperature_celsius",
        "Temperature of the GPU's memory.",
        |g| g.temperature.memory_celsius.number(),
    ),
    Metric::gauge(
        "infertop_gpu_temperature_margin_celsius",
        "Degrees left to the nearest slowdown.",
        |g| g.temperature.margin_celsius.number(),
    ),
];

/// Field of the memory's temperature.
pub(crate) const FAST_FIELDS: [(u32, u32); 1] = [(82, 0)];
/// Fields of the signed margins: shutdown, slowdown.
pub(crate) const SLOW_FIELDS: [(u32, u32); 2] = [(193, 0), (194, 0)];

/// What is believed of a temperature or a margin.
const RANGE: std::ops::RangeInclusive<i32> = -50..=200;

impl Temperature {
    /// Reads the temperatures.
    pub(crate) fn read(&mut self, device: &Device, fields: &FieldSet) {
        let start = Instant::now();
        let mut newer = sys::nvmlTemperature_t::zeroed();
        newer.version = version_word::<sys::nvmlTemperature_t>(1);
        let mut older = 0;
        self.gpu_celsius = Reading::from(call!(
            device,
            nvmlDeviceGetTemperatureV(device.handle(), &raw mut newer)
        ))
        .map(|()| newer.temperature)
        .or_else(|| {
            call!(device, nvmlDeviceGetTemperature(device.handle(), 0, &raw mut older))
                .map(|()| older.cast_signed())
                .into()
        })
        .and_then(|celsius| device.in_range(celsius, RANGE));
        // 0 is what parts without a memory sensor answer.
        self.memory_celsius = fields.small(82, 0).and_then(|celsius| match celsius {
            0 => Reading::UNSUPPORTED,
            _ => device.in_range(celsius.cast_signed(), RANGE),
        });
        self.read = device.stamp(start);
    }

    /// Reads the margin, the thresholds and the fans.
    pub(crate) fn read_slow(&mut self, device: &Device, fields: &FieldSet) {
        let limit = |field| {
            fields.signed(field, 0).and_then(|margin| {
                i32::try_from(margin)
                    .map_or(Reading::Absent(Absence::OutOfRange), |m| device.in_range(m, RANGE))
            })
        };
        self.shutdown_margin_celsius = limit(193);
        self.slowdown_margin_celsius = limit(194);
        let mut margin = sys::nvmlMarginTemperature_t::zeroed();
        margin.version = version_word::<sys::nvmlMarginTemperature_t>(1);
        self.margin_celsius = Reading::from(call!(
            device,
            nvmlDeviceGetMarginTemperature(device.handle(), &raw mut margin)
        ))
        .and_then(|()| device.in_range(margin.marginTemperature, RANGE));
        self.fan_ratios = fans(device);
    }

    /// Reads the absolute thresholds.
    pub(crate) fn read_once(&mut self, device: &Device) {
        self.shutdown_celsius = threshold(device, 0);
        self.slowdown_celsius = threshold(device, 1);
    }
}

fn threshold(device: &Device, kind: u32) -> Reading<i32> {
    let mut celsius = 0;
    Reading::from(call!(
        device[kind],
        nvmlDeviceGetTemperatureThreshold(device.handle(), kind, &raw mut celsius)
    ))
    .and_then(|()| device.in_range(celsius.cast_signed(), RANGE))
}

fn fans(device: &Device) -> Reading<Vec<f64>> {
    let mut count = 0;
    let count = Reading::from(call!(device, nvmlDeviceGetNumFans(device.handle(), &raw mut count)))
        .and_then(
            |()| if count == 0 { Reading::UNSUPPORTED } else { device.in_range(count, 1..=16) },
        );
    count.and_then(|count| {
        (0..count)
            .map(|fan| {
                let mut percent = 0;
                call!(device[fan], nvmlDeviceGetFanSpeed_v2(device.handle(), fan, &raw mut percent))
                    // Fans may be driven above their nominal speed.
                    .map(|()| f64::from(percent.min(200)) / 100.0)
            })
            .collect::<Result<Vec<f64>, _>>()
            .into()
    })
}
