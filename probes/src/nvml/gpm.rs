//! GPU performance monitoring: hardware counters averaged between two samples, without blocking.
//!
//! Hopper and newer data centre parts; GeForce from the 50 series on. Whether a part answers is
//! asked (`nvmlGpmQueryDeviceSupport`) and tried. The ids 160 to 165 are the L2 figures: the share
//! of accesses to host, peer and local memory that the cache served. Where they are missing no hit
//! rate is made up from anything else.

use std::time::{Duration, Instant};

use nvml_wrapper_sys::bindings as sys;
use serde::{Deserialize, Serialize};

use super::session::{Device, Zeroed, call};
use crate::metric::Metric;
use crate::reading::{Absence, Reading};
use crate::snapshot::{Gpu, Stamp};

/// Averages between the last two samples; ratios are 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpm {
    /// When the later sample was taken.
    pub read: Stamp,
    /// Whether this GPU has it.
    pub supported: Reading<bool>,
    /// Graphics or compute engine active.
    pub graphics_ratio: Reading<f64>,
    /// Multiprocessors with at least one warp.
    pub sm_active_ratio: Reading<f64>,
    /// Warps resident, of the most that fit.
    pub sm_occupancy_ratio: Reading<f64>,
    /// Integer pipe.
    pub integer_ratio: Reading<f64>,
    /// Any tensor pipe.
    pub tensor_ratio: Reading<f64>,
    /// Tensor pipe, FP64.
    pub tensor_dfma_ratio: Reading<f64>,
    /// Tensor pipe, FP16 and BF16.
    pub tensor_hmma_ratio: Reading<f64>,
    /// Tensor pipe, FP64 matrix.
    pub tensor_dmma_ratio: Reading<f64>,
    /// Tensor pipe, integer.
    pub tensor_imma_ratio: Reading<f64>,
    /// DRAM bandwidth used, of the peak.
    pub dram_bandwidth_ratio: Reading<f64>,
    /// FP64 pipe.
    pub fp64_ratio: Reading<f64>,
    /// FP32 pipe.
    pub fp32_ratio: Reading<f64>,
    /// FP16 pipe.
    pub fp16_ratio: Reading<f64>,
    /// From the GPU over PCIe.
    pub pcie_tx_bytes_per_second: Reading<f64>,
    /// To the GPU over PCIe.
    pub pcie_rx_bytes_per_second: Reading<f64>,
    /// From the GPU over all NVLinks.
    pub nvlink_tx_bytes_per_second: Reading<f64>,
    /// To the GPU over all NVLinks.
    pub nvlink_rx_bytes_per_second: Reading<f64>,
    /// L2: accesses to host memory that the cache served.
    pub l2_host_hit_ratio: Reading<f64>,
    /// L2: accesses to host memory that it did not.
    pub l2_host_miss_ratio: Reading<f64>,
    /// L2: accesses to another GPU's memory that the cache served.
    pub l2_peer_hit_ratio: Reading<f64>,
    /// L2: accesses to another GPU's memory that it did not.
    pub l2_peer_miss_ratio: Reading<f64>,
    /// L2: accesses to local memory that the cache served: the L2 hit rate.
    pub l2_dram_hit_ratio: Reading<f64>,
    /// L2: accesses to local memory that it did not.
    pub l2_dram_miss_ratio: Reading<f64>,
}

/// Rows of the metric table.
pub const METRICS: &[Metric<Gpu>] = &[
    Metric::gauge(
        "infertop_gpu_graphics_active_ratio",
        "Share of time with the graphics or compute engine active.",
        |g| g.gpm.graphics_ratio.number(),
    ),
    Metric::gauge(
        "infertop_gpu_sm_active_ratio",
        "Share of multiprocessors with a warp resident.",
        |g| g.gpm.sm_active_ratio.number(),
    ),
    Metric::gauge(
        "infertop_gpu_sm_occupancy_ratio",
        "Warps resident, of the most that fit.",
        |g| g.gpm.sm_occupancy_ratio.number(),
    ),
    Metric::gauge("infertop_gpu_integer_pipe_ratio", "Busy share of the integer pipe.", |g| {
        g.gpm.integer_ratio.number()
    }),
    Metric::gauge("infertop_gpu_tensor_pipe_ratio", "Busy share of the tensor pipes.", |g| {
        g.gpm.tensor_ratio.number()
    }),
    Metric::gauge(
        "infertop_gpu_tensor_fp64_pipe_ratio",
        "Busy share of the tensor pipe with FP64 work.",
        |g| g.gpm.tensor_dfma_ratio.number(),
    ),
    Metric::gauge(
        "infertop_gpu_tensor_fp16_pipe_ratio",
        "Busy share of the tensor pipe with FP16 or BF16 work.",
        |g| g.gpm.tensor_hmma_ratio.number(),
    ),
    Metric::gauge(
        "infertop_gpu_tensor_fp64_matrix_pipe_ratio",
        "Busy share of the tensor pipe with FP64 matrix work.",
        |g| g.gpm.tensor_dmma_ratio.number(),
    ),
    Metric::gauge(
        "infertop_gpu_tensor_integer_pipe_ratio",
        "Busy share of the tensor pipe with integer work.",
        |g| g.gpm.tensor_imma_ratio.number(),
    ),
    Metric::gauge("infertop_gpu_dram_bandwidth_ratio", "DRAM bandwidth used, of the peak.", |g| {
        g.gpm.dram_bandwidth_ratio.number()
    }),
    Metric::gauge("infertop_gpu_fp64_pipe_ratio", "Busy share of the FP64 pipe.", |g| {
        g.gpm.fp64_ratio.number()
    }),
    Metric::gauge("infertop_gpu_fp32_pipe_ratio", "Busy share of the FP32 pipe.", |g| {
        g.gpm.fp32_ratio.number()
    }),
    Metric::gauge("infertop_gpu_fp16_pipe_ratio", "Busy share of the FP16 pipe.", |g| {
        g.gpm.fp16_ratio.number()
    }),
    Metric::gauge(
        "infertop_gpu_l2_host_hit_ratio",
        "Accesses to host memory that the L2 cache served.",
        |g| g.gpm.l2_host_hit_ratio.number(),
    ),
    Metric::gauge(
        "infertop_gpu_l2_host_miss_ratio",
        "Accesses to host memory that the L2 cache did not serve.",
        |g| g.gpm.l2_host_miss_ratio.number(),
    ),
    Metric::gauge(
        "infertop_gpu_l2_peer_hit_ratio",
        "Accesses to peer memory that the L2 cache served.",
        |g| g.gpm.l2_peer_hit_ratio.number(),
    ),
    Metric::gauge(
        "infertop_gpu_l2_peer_miss_ratio",
        "Accesses to peer memory that the L2 cache did not serve.",
        |g| g.gpm.l2_peer_miss_ratio.number(),
    ),
    Metric::gauge(
        "infertop_gpu_l2_dram_hit_ratio",
        "Accesses to local memory that the L2 cache served.",
        |g| g.gpm.l2_dram_hit_ratio.number(),
    ),
    Metric::gauge(
        "infertop_gpu_l2_dram_miss_ratio",
        "Accesses to local memory that the L2 cache did not serve.",
        |g| g.gpm.l2_dram_miss_ratio.number(),
    ),
];

/// NVML's number of each metric, and where it goes. Rates come in MiB/s, shares in per cent.
const WANTED: &[(u32, Scale, Place)] = &[
    (1, Scale::Percent, |g| &mut g.graphics_ratio),
    (2, Scale::Percent, |g| &mut g.sm_active_ratio),
    (3, Scale::Percent, |g| &mut g.sm_occupancy_ratio),
    (4, Scale::Percent, |g| &mut g.integer_ratio),
    (5, Scale::Percent, |g| &mut g.tensor_ratio),
    (6, Scale::Percent, |g| &mut g.tensor_dfma_ratio),
    (7, Scale::Percent, |g| &mut g.tensor_hmma_ratio),
    (8, Scale::Percent, |g| &mut g.tensor_dmma_ratio),
    (9, Scale::Percent, |g| &mut g.tensor_imma_ratio),
    (10, Scale::Percent, |g| &mut g.dram_bandwidth_ratio),
    (11, Scale::Percent, |g| &mut g.fp64_ratio),
    (12, Scale::Percent, |g| &mut g.fp32_ratio),
    (13, Scale::Percent, |g| &mut g.fp16_ratio),
    (20, Scale::MebibytesPerSecond, |g| &mut g.pcie_tx_bytes_per_second),
    (21, Scale::MebibytesPerSecond, |g| &mut g.pcie_rx_bytes_per_second),
    (60, Scale::MebibytesPerSecond, |g| &mut g.nvlink_rx_bytes_per_second),
    (61, Scale::MebibytesPerSecond, |g| &mut g.nvlink_tx_bytes_per_second),
    (160, Scale::Percent, |g| &mut g.l2_host_hit_ratio),
    (161, Scale::Percent, |g| &mut g.l2_host_miss_ratio),
    (162, Scale::Percent, |g| &mut g.l2_peer_hit_ratio),
    (163, Scale::Percent, |g| &mut g.l2_peer_miss_ratio),
    (164, Scale::Percent, |g| &mut g.l2_dram_hit_ratio),
    (165, Scale::Percent, |g| &mut g.l2_dram_miss_ratio),
];

type Place = fn(&mut Gpm) -> &mut Reading<f64>;

#[derive(Clone, Copy)]
enum Scale {
    Percent,
    MebibytesPerSecond,
}

/// Two samples closer than this give the last values again: the driver refuses them.
const NEAREST: Duration = Duration::from_millis(100);
/// Two samples farther apart than this say nothing about now.
const FARTHEST: Duration = Duration::from_mins(1);

/// The two samples between which the averages are taken.
pub(crate) struct GpmPair<'d, 's> {
    device: &'d Device<'s>,
    /// Set for a MIG instance: the GPU's handle is asked with this number.
    gpu_instance: Option<u32>,
    older: sys::nvmlGpmSample_t,
    newer: sys::nvmlGpmSample_t,
    taken: Option<Instant>,
    request: Box<sys::nvmlGpmMetricsGet_t>,
    /// Why there are no samples.
    absence: Option<Absence>,
}

impl<'d, 's> GpmPair<'d, 's> {
    /// Asks whether the GPU has it, and takes buffers.
    pub(crate) fn new(device: &'d Device<'s>, gpu_instance: Option<u32>) -> Self {
        let mut pair = Self {
            device,
            gpu_instance,
            older: std::ptr::null_mut(),
            newer: std::ptr::null_mut(),
            taken: None,
            request: Box::new(sys::nvmlGpmMetricsGet_t::zeroed()),
            absence: None,
        };
        pair.absence = pair.prepare().err();
        pair
    }

    fn prepare(&mut self) -> Result<(), Absence> {
        let device = self.device;
        let mut support = sys::nvmlGpmSupport_t::zeroed();
        support.version = 1;
        call!(device, nvmlGpmQueryDeviceSupport(device.handle(), &raw mut support))?;
        if support.isSupportedDevice == 0 {
            return Err(Absence::Unsupported);
        }
        if !device.exports("nvmlGpmSampleFree") {
            return Err(Absence::TooOld);
        }
        call!(device, nvmlGpmSampleAlloc(&raw mut self.older))?;
        call!(device, nvmlGpmSampleAlloc(&raw mut self.newer))
    }

    /// Takes a sample and reads the averages since the one before.
    pub(crate) fn read(&mut self, gpm: &mut Gpm) {
        if let Some(absence) = &self.absence {
            let supported = match absence {
                Absence::Unsupported | Absence::TooOld => false.into(),
                other => Reading::Absent(other.clone()),
            };
            gpm.set_absent(absence, supported);
            return;
        }
        let start = Instant::now();
        if self.taken.is_some_and(|taken| taken.elapsed() < NEAREST) {
            return;
        }
        std::mem::swap(&mut self.older, &mut self.newer);
        let before = self.taken.take();
        if let Err(absence) = self.sample() {
            if matches!(absence, Absence::Unsupported | Absence::Denied { .. }) {
                self.absence = Some(absence.clone());
            }
            gpm.set_absent(&absence, Reading::Value(true));
            return;
        }
        self.taken = Some(start);
        match before {
            Some(before) if before.elapsed() < FARTHEST => self.averages(gpm, start),
            _ => gpm.set_absent(&Absence::NotRead, Reading::Value(true)),
        }
    }

    fn sample(&self) -> Result<(), Absence> {
        let (device, sample) = (self.device, self.newer);
        match self.gpu_instance {
            None => call!(device, nvmlGpmSampleGet(device.handle(), sample)),
            Some(instance) => {
                call!(device[instance], nvmlGpmMigSampleGet(device.handle(), instance, sample))
            }
        }
    }

    fn averages(&mut self, gpm: &mut Gpm, start: Instant) {
        let device = self.device;
        let request = &mut *self.request;
        request.version = 1;
        request.sample1 = self.older;
        request.sample2 = self.newer;
        request.numMetrics = 0;
        for ((id, ..), metric) in WANTED.iter().zip(&mut request.metrics) {
            metric.metricId = *id;
            metric.nvmlReturn = super::codes::NOT_SUPPORTED;
            metric.value = f64::NAN;
            request.numMetrics += 1;
        }
        if let Err(absence) = call!(device, nvmlGpmMetricsGet(request)) {
            gpm.set_absent(&absence, Reading::Value(true));
            return;
        }
        gpm.supported = true.into();
        for ((_, scale, place), metric) in WANTED.iter().zip(&self.request.metrics) {
            *place(gpm) = match metric.nvmlReturn {
                0 if metric.value.is_nan() => Reading::Absent(Absence::NoData),
                0 => match scale {
                    // Averages of counters overshoot by a hair.
                    Scale::Percent => {
                        device.in_range(metric.value, 0.0..=101.0).map(|p| (p / 100.0).min(1.0))
                    }
                    Scale::MebibytesPerSecond => {
                        device.in_range(metric.value * 1_048_576.0, 0.0..=10e12)
                    }
                },
                code => Reading::Absent(super::codes::absence(code)),
            };
        }
        gpm.read = device.stamp(start);
    }
}

impl Drop for GpmPair<'_, '_> {
    fn drop(&mut self) {
        let device = self.device;
        for sample in [self.older, self.newer] {
            if !sample.is_null() {
                // Nothing can be done about a sample that the library will not take back.
                let _ = call!(device, nvmlGpmSampleFree(sample));
            }
        }
    }
}

impl Gpm {
    fn set_absent(&mut self, absence: &Absence, supported: Reading<bool>) {
        self.supported = supported;
        for (_, _, place) in WANTED {
            *place(self) = Reading::Absent(absence.clone());
        }
    }
}
