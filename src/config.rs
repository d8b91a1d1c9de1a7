//! The configuration: defaults, files, environment, flags, the later one counting more.
//!
//! Every key stands once, in the table of [`keys`]: from there come its name in a file and in the
//! environment, its check, the commented default and what a reload says of it. What is not in the
//! table is refused, with the file, the line and what was likely meant.

mod document;
mod file;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
pub(crate) mod keys;
pub(crate) mod layers;
pub(crate) mod problem;
mod suggestion;

use crate::store::Limits;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use probes::machine::Machine;

use crate::cli::Roots;
use crate::daemon::log::Level;

pub(crate) use document::commented_default;
pub(crate) use layers::Layers;

/// What can be told to a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) interval_ms: u64,
    pub(crate) log_level: Level,
    /// Absent: the usual place.
    pub(crate) socket: Option<PathBuf>,
    pub(crate) group: String,
    pub(crate) store: Store,
    pub(crate) metrics: Metrics,
    pub(crate) machine: MachineRoots,
}

/// What is kept, where, for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Store {
    /// Absent: the usual place.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) raw_days: u64,
    pub(crate) rollup_days: u64,
    pub(crate) max_mib: u64,
}

/// Metrics over TCP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Metrics {
    /// Absent: not served.
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) tls_certificate_file: Option<PathBuf>,
    pub(crate) tls_key_file: Option<PathBuf>,
}

/// Where the machine's files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MachineRoots {
    pub(crate) procfs: PathBuf,
    pub(crate) sysfs: PathBuf,
    pub(crate) rootfs: PathBuf,
    /// Absent: searched for.
    pub(crate) nvml_lib: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        let Machine { procfs, sysfs, rootfs, .. } = Machine::default();
        Self {
            interval_ms: 1000,
            log_level: Level::Info,
            socket: None,
            group: "infertop".into(),
            store: Store { folder: None, raw_days: 7, rollup_days: 90, max_mib: 2048 },
            metrics: Metrics::default(),
            machine: MachineRoots { procfs, sysfs, rootfs, nvml_lib: None },
        }
    }
}

impl Config {
    /// How much is remembered.
    pub(crate) fn limits(&self) -> Limits {
        let days = |days: u64| u32::try_from(days).unwrap_or(u32::MAX);
        Limits {
            raw_days: days(self.store.raw_days),
            rollup_days: days(self.store.rollup_days),
            max_bytes: self.store.max_mib << 20,
        }
    }

    /// Time between two snapshots.
    pub(crate) fn interval(&self) -> Duration {
        Duration::from_millis(self.interval_ms)
    }

    /// The machine's roots as flags of a sampler.
    pub(crate) fn roots(&self) -> Roots {
        let MachineRoots { procfs, sysfs, rootfs, nvml_lib } = self.machine.clone();
        Roots {
            procfs: Some(procfs),
            sysfs: Some(sysfs),
            rootfs: Some(rootfs),
            nvml_lib,
            interval: Some(self.interval()),
        }
    }
}
