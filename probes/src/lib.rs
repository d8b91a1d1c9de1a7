//! Reads the machine into a [`snapshot::Snapshot`]: driver counters, kernel log, `/proc`, host.
//!
//! No terminal, no async, no opinion: plain data with a reason for whatever is missing. Reading and
//! parsing are apart: `read_…` touches the machine, `parse_…` takes text.

#![deny(unsafe_code)]

pub mod driver;
#[cfg(test)]
mod fake_tree;
pub mod finding;
#[cfg(any(fuzzing, test))]
#[doc(hidden)]
pub mod fuzzing;
pub mod history;
pub mod host;
pub mod kernel_log;
pub mod ledger;
pub mod machine;
pub mod metric;
pub mod moment_text;
pub mod nvml;
pub mod past;
pub mod pci;
pub mod proc;
pub mod reading;
pub mod self_cost;
pub mod snapshot;
pub mod units;
