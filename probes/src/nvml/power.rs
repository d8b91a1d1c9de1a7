//! Power, limits, energy.
//!
//! Field 185 (average over 1 s) where the GPU has it, else field 186 (instant), else
//! `nvmlDeviceGetPowerUsage`, which averages over 1 s on Ampere (not GA100) and newer.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::fields::FieldSet;
use super::session::{Device, call};
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

/// Fields that [`Power::read`] takes: energy, average and instant draw, module draw.
pub(crate) const FAST_FIELDS: [(u32, u32); 4] = [(83, 0), (185, 0), (186, 0), (186, 1)];
/// Fields that [`Power::read_slow`] takes: the limits.
pub(crate) const SLOW_FIELDS: [(u32, u32); 4] = [(187, 0), (188, 0), (189, 0), (190, 0)];

/// The largest draw of one module that is believed.
const MOST_MILLIWATTS: u64 = 20_000_000;

fn watts(device: &Device, milliwatts: Reading<u64>) -> Reading<f64> {
    milliwatts.and_then(|mw| device.in_range(mw, 0..=MOST_MILLIWATTS)).map(|mw| mw as f64 / 1000.0)
}

impl Power {
    /// Reads draw and energy.
    pub(crate) fn read(&mut self, device: &Device, fields: &FieldSet) {
        let start = Instant::now();
        let draw = fields.unsigned(185, 0).or_else(|| fields.unsigned(186, 0)).or_else(|| {
            let mut milliwatts = 0;
            call!(device, nvmlDeviceGetPowerUsage(device.handle(), &raw mut milliwatts))
                .map(|()| u64::from(milliwatts))
                .into()
        });
        self.draw_watts = watts(device, draw);
        self.module_watts = watts(device, fields.unsigned(186, 1));
        self.energy_joules_total = fields.unsigned(83, 0).map(|mj| mj as f64 / 1000.0);
        self.read = device.stamp(start);
    }

    /// Reads the limits.
    pub(crate) fn read_slow(&mut self, device: &Device, fields: &FieldSet) {
        let mut milliwatts = 0;
        let enforced: Reading<u64> =
            call!(device, nvmlDeviceGetEnforcedPowerLimit(device.handle(), &raw mut milliwatts))
                .map(|()| u64::from(milliwatts))
                .into();
        self.limit_watts = watts(device, enforced.or_else(|| fields.unsigned(190, 0)));
        self.limit_min_watts = watts(device, fields.unsigned(187, 0));
        self.limit_max_watts = watts(device, fields.unsigned(188, 0));
        self.limit_default_watts = watts(device, fields.unsigned(189, 0));
    }
}
