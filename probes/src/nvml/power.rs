//! Power, limits, energy.
//!
//! Field 185 (average over 1 s) where the GPU has it, else field 186 (instant), else
//! `nvmlDeviceGetPowerUsage`, which averages over 1 s on Ampere (not GA100) and newer.

use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::reading::Reading;
use crate::snapshot::{Gpu, Stamp};

/// Power in watts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Power {
    /// When it was read.
    pub read: Stamp,
    /// Draw of the board.
    pub draw_watts: Reading<f64>,
    /// Draw of the whole module (Grace).
    pub module_watts: Reading<f64>,
    /// The limit in force.
    pub limit_watts: Reading<f64>,
    /// The limit from the factory.
    pub limit_default_watts: Reading<f64>,
    /// The lowest limit that may be set.
    pub limit_min_watts: Reading<f64>,
    /// The highest.
    pub limit_max_watts: Reading<f64>,
    /// Energy since the driver was loaded, joules; resets with it.
    pub energy_joules_total: Reading<f64>,
}

/// Rows of the metric table.
pub const METRICS: &[Metric<Gpu>] = &[
    Metric::gauge("infertop_gpu_power_draw_watts", "Power draw of the board.", |g| {
        g.power.draw_watts.number()
    }),
    Metric::gauge(
        "infertop_gpu_module_power_draw_watts",
        "Power draw of the module, CPU included.",
        |g| g.power.module_watts.number(),
    ),
    Metric::gauge("infertop_gpu_power_limit_watts", "Power limit in force.", |g| {
        g.power.limit_watts.number()
    }),
    Metric::gauge("infertop_gpu_power_limit_default_watts", "Power limit from the factory.", |g| {
        g.power.limit_default_watts.number()
    }),
    Metric::counter(
        "infertop_gpu_energy_joules_total",
        "Energy since the driver was loaded.",
        |g| g.power.energy_joules_total.number(),
    ),
];
