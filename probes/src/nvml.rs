//! The driver's counters through `libnvidia-ml`: one file a group of readings.
//!
//! A group's file holds its struct, its rows of the metric table and what reads it. Calls go
//! through `session::Device`, which counts them, times them and turns return codes into reasons.
//! Outside this folder the product has no `unsafe`: the compiler refuses it.

#![allow(unsafe_code, reason = "the driver is a C library")]
#![allow(
    clippy::unsafe_derive_deserialize,
    reason = "groups are plain numbers; the calls in their methods hand none of them to the driver"
)]

pub mod calls;
pub mod clocks;
pub mod codes;
pub mod ecc;
pub mod events;
pub mod fabric;
mod fields;
pub mod gpm;
pub mod identity;
pub mod memory;
pub mod mig;
pub mod nvlink;
pub mod pcie;
pub mod power;
pub mod processes;
pub mod reader;
pub mod session;
pub mod temperature;
pub mod topology;
pub mod utilization;

use crate::metric::Metric;
use crate::snapshot::Gpu;

/// The rows of every group, in the order of the files.
pub fn metrics() -> impl Iterator<Item = &'static Metric<Gpu>> {
    [
        memory::METRICS,
        utilization::METRICS,
        gpm::METRICS,
        clocks::METRICS,
        power::METRICS,
        temperature::METRICS,
        ecc::METRICS,
        pcie::METRICS,
        nvlink::METRICS,
        fabric::METRICS,
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Kind;

    #[test]
    fn every_metric_is_named_and_explained_alike() {
        let mut names: Vec<&str> = Vec::new();
        for metric in metrics() {
            assert!(metric.name.starts_with("infertop_gpu_"), "{}", metric.name);
            assert_eq!(
                metric.name.ends_with("_total"),
                metric.kind == Kind::Counter,
                "{}",
                metric.name
            );
            assert!(metric.help.ends_with('.') && metric.help.len() > 15, "{}", metric.name);
            names.push(metric.name);
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "two metrics share a name");
    }
}
