//! Temperatures and fans.
//!
//! Up to Ampere thresholds are absolute; from Ada on they are margins to the limit (T.Limit), which
//! is another scale: the two are never mixed here. Fan figures are what is intended, not measured.

use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::reading::Reading;
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
