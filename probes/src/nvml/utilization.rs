//! How busy the engines were, from the driver's own sample periods (1/6 s to 1 s).
//!
//! `gpu` is the share of time in which any kernel ran, `memory` the share in which memory was
//! accessed: neither is occupancy, and `memory` is no capacity. Not supported while MIG is on.
//! 100 % right after start without a process is the ECC scrub; Blackwell can latch at 100 % after a
//! process was killed inside a kernel.

use std::time::Instant;

use nvml_wrapper_sys::bindings as sys;
use serde::{Deserialize, Serialize};

use super::session::{Device, Zeroed, call};
use crate::metric::Metric;
use crate::reading::Reading;
use crate::snapshot::{Gpu, Stamp};

/// Busy shares, 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Utilization {
    /// When it was read.
    pub read: Stamp,
    /// Share of time in which a kernel ran.
    pub gpu_ratio: Reading<f64>,
    /// Share of time in which memory was read or written.
    pub memory_ratio: Reading<f64>,
    /// Video encoder.
    pub encoder_ratio: Reading<f64>,
    /// Video decoder.
    pub decoder_ratio: Reading<f64>,
    /// JPEG engine (Turing and newer).
    pub jpeg_ratio: Reading<f64>,
    /// Optical flow engine (Turing and newer).
    pub optical_flow_ratio: Reading<f64>,
}

/// Rows of the metric table.
pub const METRICS: &[Metric<Gpu>] = &[
    Metric::gauge(
        "infertop_gpu_busy_ratio",
        "Share of the last sample period in which a kernel ran.",
        |g| g.utilization.gpu_ratio.number(),
    ),
    Metric::gauge(
        "infertop_gpu_memory_bandwidth_busy_ratio",
        "Share of the last sample period in which memory was accessed; not a capacity.",
        |g| g.utilization.memory_ratio.number(),
    ),
    Metric::gauge("infertop_gpu_encoder_busy_ratio", "Busy share of the video encoder.", |g| {
        g.utilization.encoder_ratio.number()
    }),
    Metric::gauge("infertop_gpu_decoder_busy_ratio", "Busy share of the video decoder.", |g| {
        g.utilization.decoder_ratio.number()
    }),
    Metric::gauge("infertop_gpu_jpeg_busy_ratio", "Busy share of the JPEG engine.", |g| {
        g.utilization.jpeg_ratio.number()
    }),
    Metric::gauge(
        "infertop_gpu_optical_flow_busy_ratio",
        "Busy share of the optical flow engine.",
        |g| g.utilization.optical_flow_ratio.number(),
    ),
];

impl Utilization {
    /// Reads the two busy shares.
    pub(crate) fn read(&mut self, device: &Device) {
        let start = Instant::now();
        let mut rates = sys::nvmlUtilization_t::zeroed();
        let answer: Reading<()> =
            call!(device, nvmlDeviceGetUtilizationRates(device.handle(), &raw mut rates)).into();
        self.gpu_ratio = answer.clone().and_then(|()| device.ratio(rates.gpu));
        self.memory_ratio = answer.and_then(|()| device.ratio(rates.memory));
        self.read = device.stamp(start);
    }

    /// Reads the media engines.
    pub(crate) fn read_media(&mut self, device: &Device) {
        let (mut busy, mut period) = (0, 0);
        self.encoder_ratio = Reading::from(call!(
            device,
            nvmlDeviceGetEncoderUtilization(device.handle(), &raw mut busy, &raw mut period)
        ))
        .and_then(|()| device.ratio(busy));
        self.decoder_ratio = Reading::from(call!(
            device,
            nvmlDeviceGetDecoderUtilization(device.handle(), &raw mut busy, &raw mut period)
        ))
        .and_then(|()| device.ratio(busy));
        self.jpeg_ratio = Reading::from(call!(
            device,
            nvmlDeviceGetJpgUtilization(device.handle(), &raw mut busy, &raw mut period)
        ))
        .and_then(|()| device.ratio(busy));
        self.optical_flow_ratio = Reading::from(call!(
            device,
            nvmlDeviceGetOfaUtilization(device.handle(), &raw mut busy, &raw mut period)
        ))
        .and_then(|()| device.ratio(busy));
    }
}
