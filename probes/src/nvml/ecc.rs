//! Memory errors by place, row remapping, retired pages, recovery action.
//!
//! H100, H200 and L40S fill only DRAM, SRAM and the totals; L1, L2 and the others are unsupported
//! there. L2 errors of Ampere and newer are a bucket of the SRAM status, for root alone. Retired
//! pages exist up to Turing, row remapping from Ampere on. With ECC off the driver may leave fields
//! 1 to 31 untouched: a field whose time stamp is 0 is unsupported.

use std::time::Instant;

use nvml_wrapper_sys::bindings as sys;
use serde::{Deserialize, Serialize};

use super::fields::FieldSet;
use super::session::{Device, Zeroed, call, version_word};
use crate::metric::Metric;
use crate::reading::Reading;
use crate::snapshot::{Gpu, Stamp};

/// Memory health.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ecc {
    /// When it was read.
    pub read: Stamp,
    /// Whether ECC is on.
    pub enabled: Reading<bool>,
    /// Whether it will be on after the next restart.
    pub enabled_pending: Reading<bool>,
    /// Corrected errors since the driver was loaded.
    pub corrected_volatile_total: Reading<u64>,
    /// Uncorrected errors since the driver was loaded.
    pub uncorrected_volatile_total: Reading<u64>,
    /// Corrected errors in the GPU's life.
    pub corrected_lifetime_total: Reading<u64>,
    /// Uncorrected errors in the GPU's life.
    pub uncorrected_lifetime_total: Reading<u64>,
    /// Errors by place, since the driver was loaded.
    pub locations: Vec<EccLocation>,
    /// SRAM errors by bucket, lifetime (Ampere and newer, root).
    pub sram: Reading<Vec<SramBucket>>,
    /// The SRAM error threshold was exceeded (root).
    pub sram_threshold_exceeded: Reading<bool>,
    /// Rows remapped for corrected errors.
    pub remapped_corrected_total: Reading<u64>,
    /// Rows remapped for uncorrected errors.
    pub remapped_uncorrected_total: Reading<u64>,
    /// Rows wait for a reset to be remapped.
    pub remap_pending: Reading<bool>,
    /// Remapping failed: replace the GPU.
    pub remap_failed: Reading<bool>,
    /// Banks by spare rows left: max, high, partial, low, none.
    pub remap_banks: Reading<Vec<u32>>,
    /// Pages retired for corrected errors.
    pub retired_corrected_total: Reading<u64>,
    /// Pages retired for uncorrected errors.
    pub retired_uncorrected_total: Reading<u64>,
    /// Pages wait for a restart to be retired.
    pub retirement_pending: Reading<bool>,
    /// A memory channel repair waits for a reset.
    pub channel_repair_pending: Reading<bool>,
    /// What the driver asks for, NVML's number; 0 is nothing. See [`RECOVERY_ACTIONS`].
    pub recovery_action: Reading<u32>,
}

/// Errors at one place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EccLocation {
    /// `dram`, `sram`, `l1`, `l2`, `register_file`, `texture`, `cbu`.
    pub place: String,
    /// Corrected.
    pub corrected_total: Reading<u64>,
    /// Uncorrected.
    pub uncorrected_total: Reading<u64>,
}

/// Uncorrected SRAM errors of one unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SramBucket {
    /// `l2`, `sm`, `pcie`, `mcu`, `other`.
    pub unit: String,
    /// Errors in the GPU's life.
    pub uncorrected_total: u64,
}

/// What the recovery action's numbers ask for.
pub const RECOVERY_ACTIONS: &[&str] = &[
    "none",
    "GPU reset",
    "node reboot",
    "drain peer-to-peer",
    "drain and reset",
    "recover the IMEX domain",
    "bus reset",
    "system reboot",
];

/// Rows of the metric table.
pub const METRICS: &[Metric<Gpu>] = &[
    Metric::counter(
        "infertop_gpu_ecc_corrected_total",
        "Corrected memory errors since the driver was loaded.",
        |g| g.ecc.corrected_volatile_total.number(),
    ),
    Metric::counter(
        "infertop_gpu_ecc_uncorrected_total",
        "Uncorrected memory errors since the driver was loaded.",
        |g| g.ecc.uncorrected_volatile_total.number(),
    ),
    Metric::counter(
        "infertop_gpu_ecc_lifetime_uncorrected_total",
        "Uncorrected memory errors in the GPU's life.",
        |g| g.ecc.uncorrected_lifetime_total.number(),
    ),
    Metric::counter_each(
        "infertop_gpu_ecc_location_uncorrected_total",
        "Uncorrected memory errors by place since the driver was loaded.",
        "place",
        |g| {
            g.ecc
                .locations
                .iter()
                .map(|l| (l.place.clone(), l.uncorrected_total.number()))
                .collect()
        },
    ),
    Metric::counter(
        "infertop_gpu_remapped_rows_corrected_total",
        "Rows remapped for corrected errors.",
        |g| g.ecc.remapped_corrected_total.number(),
    ),
    Metric::counter(
        "infertop_gpu_remapped_rows_uncorrected_total",
        "Rows remapped for uncorrected errors.",
        |g| g.ecc.remapped_uncorrected_total.number(),
    ),
    Metric::gauge(
        "infertop_gpu_row_remap_pending",
        "1 when rows wait for a reset to be remapped.",
        |g| g.ecc.remap_pending.number(),
    ),
    Metric::gauge(
        "infertop_gpu_row_remap_failed",
        "1 when remapping failed and the GPU must be replaced.",
        |g| g.ecc.remap_failed.number(),
    ),
    Metric::gauge(
        "infertop_gpu_recovery_action",
        "Recovery that the driver asks for, NVML's number, 0 for none.",
        |g| g.ecc.recovery_action.number(),
    ),
];

/// Fields of row remapping and recovery, which must not be missed.
pub(crate) const FAST_FIELDS: [(u32, u32); 5] = [(142, 0), (143, 0), (144, 0), (145, 0), (230, 0)];

/// Places with their fields for corrected and uncorrected errors since the driver was loaded.
const PLACES: [(&str, Option<u32>, u32); 6] = [
    ("l1", Some(7), 8),
    ("l2", Some(9), 10),
    ("dram", Some(11), 12),
    ("register_file", Some(13), 14),
    ("texture", Some(15), 16),
    // Corrected errors are not told of the convergence barrier unit.
    ("cbu", None, 17),
];

/// Fields that [`Ecc::read_slow`] takes: modes, totals, places, retired pages.
pub(crate) fn slow_fields() -> Vec<(u32, u32)> {
    (1..=17).chain(29..=31).map(|id| (id, 0)).collect()
}

impl Ecc {
    /// Reads remapping and recovery.
    pub(crate) fn read(&mut self, device: &Device, fields: &FieldSet) {
        let start = Instant::now();
        self.remapped_corrected_total = fields.unsigned(142, 0);
        self.remapped_uncorrected_total = fields.unsigned(143, 0);
        self.remap_pending = fields.flag(144);
        self.remap_failed = fields.flag(145);
        self.recovery_action = fields.small(230, 0);
        self.read = device.stamp(start);
    }

    /// Reads error counts, retired pages and what waits for a reset.
    pub(crate) fn read_slow(&mut self, device: &Device, fields: &FieldSet) {
        self.enabled = fields.flag(1);
        self.enabled_pending = fields.flag(2);
        self.corrected_volatile_total = fields.unsigned(3, 0);
        self.uncorrected_volatile_total = fields.unsigned(4, 0);
        self.corrected_lifetime_total = fields.unsigned(5, 0);
        self.uncorrected_lifetime_total = fields.unsigned(6, 0);
        self.retired_corrected_total = fields.unsigned(29, 0);
        self.retired_uncorrected_total = fields.unsigned(30, 0);
        self.retirement_pending = fields.flag(31);
        self.locations = PLACES
            .iter()
            .map(|(place, corrected, uncorrected)| EccLocation {
                place: (*place).into(),
                corrected_total: corrected
                    .map_or(Reading::UNSUPPORTED, |field| fields.unsigned(field, 0)),
                uncorrected_total: fields.unsigned(*uncorrected, 0),
            })
            .chain([EccLocation {
                place: "sram".into(),
                corrected_total: sram_errors(device, 0),
                uncorrected_total: sram_errors(device, 1),
            }])
            .collect();
        self.read_sram(device);
        let mut banks = sys::nvmlRowRemapperHistogramValues_t::zeroed();
        self.remap_banks =
            call!(device, nvmlDeviceGetRowRemapperHistogram(device.handle(), &raw mut banks))
                .map(|()| vec![banks.max, banks.high, banks.partial, banks.low, banks.none])
                .into();
        let mut repair = sys::nvmlRepairStatus_t::zeroed();
        repair.version = version_word::<sys::nvmlRepairStatus_t>(1);
        self.channel_repair_pending =
            call!(device, nvmlDeviceGetRepairStatus(device.handle(), &raw mut repair))
                .map(|()| repair.bChannelRepairPending != 0)
                .into();
    }

    fn read_sram(&mut self, device: &Device) {
        let mut status = sys::nvmlEccSramErrorStatus_t::zeroed();
        status.version = version_word::<sys::nvmlEccSramErrorStatus_t>(1);
        let answer =
            call!(device, nvmlDeviceGetSramEccErrorStatus(device.handle(), &raw mut status));
        self.sram_threshold_exceeded =
            answer.clone().map(|()| status.bThresholdExceeded != 0).into();
        self.sram = answer
            .map(|()| {
                [
                    ("l2", status.aggregateUncBucketL2),
                    ("sm", status.aggregateUncBucketSm),
                    ("pcie", status.aggregateUncBucketPcie),
                    ("mcu", status.aggregateUncBucketMcu),
                    ("other", status.aggregateUncBucketOther),
                ]
                .into_iter()
                .map(|(unit, uncorrected_total)| SramBucket {
                    unit: unit.into(),
                    uncorrected_total,
                })
                .collect()
            })
            .into();
    }
}

/// SRAM errors since the driver was loaded; there is no field for them. `kind` 0 is corrected.
fn sram_errors(device: &Device, kind: u32) -> Reading<u64> {
    let mut count = 0;
    call!(
        device[kind],
        nvmlDeviceGetMemoryErrorCounter(device.handle(), kind, 0, 7, &raw mut count)
    )
    .map(|()| count)
    .into()
}
