//! The driver: kernel module, library, their versions, and why it does not work.
//!
//! Truth: `module/nvidia` of sysfs, `driver/nvidia` and `modules` of procfs, the device nodes and
//! the library file. No driver call is made here; how the library answers is filled in by its
//! caller, and [`diagnose`] puts both together. Nothing here asks what a message says: causes are
//! told by numbers, files and rights.

mod diagnose;
mod files;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
mod library;
mod nodes;
mod probe;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::finding::Severity;
pub use crate::pci::PciGpu;
use crate::reading::Reading;
use crate::snapshot::Stamp;

pub use diagnose::diagnose;
pub use files::{Built, parse_module_version, parse_modules, parse_params, read_module_version};
pub(crate) use library::cut_off;
pub use library::{Found, find_library, library_candidates, library_places};
pub use probe::DriverProbe;

/// The driver and its library.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Driver {
    /// When the files were read.
    pub read: Stamp,
    /// Version of the loaded kernel module; `NoDriver` where none is loaded.
    pub module_version: Reading<String>,
    /// `open` or `proprietary`.
    pub module_flavour: Reading<String>,
    /// Users of the module (`refcnt`).
    pub module_users: Reading<u32>,
    /// Version that the library reports as the driver's.
    pub version: Reading<String>,
    /// Version of the library itself, `13.590.48.01`.
    pub nvml_version: Reading<String>,
    /// Newest CUDA that this driver runs, `13.1`.
    pub cuda_version: Reading<String>,
    /// Release branch.
    pub branch: Reading<String>,
    /// The library that is found, with symbolic links followed; absent with the reason why the file
    /// cannot be used.
    pub library_path: Reading<String>,
    /// Version in the name of the library file on disk, which the next process will load. Absent
    /// where the name carries none.
    pub library_on_disk: Reading<String>,
    /// Whether the GPUs' system processors run firmware: the module's parameter where it decides,
    /// else what the GPUs say.
    pub gsp_enabled: Reading<bool>,
    /// Only root may use the profiling counters (`RmProfilingAdminOnly`).
    pub profiling_admin_only: Reading<bool>,
    /// Loaded NVIDIA modules, and nouveau.
    pub modules: Reading<Vec<String>>,
    /// NVIDIA display and 3D controllers on the PCI bus, driver or not.
    pub pci_gpus: Reading<Vec<PciGpu>>,
    /// Device nodes below `/dev`.
    pub device_nodes: Reading<Vec<DeviceNode>>,
    /// How the library answers.
    pub session: Session,
    /// GPUs that the library counts.
    pub gpu_count: Reading<u32>,
    /// Kernel release, which a module must be built for.
    pub kernel: Reading<String>,
    /// What is on disk for loading a module; read only while none is loaded.
    pub built: Option<Built>,
    /// The GPUs are Windows' and are reached through WSL: no module, no device nodes of our own.
    pub wsl: bool,
    /// The kind of container that we run in: `docker`, `podman`, `kubernetes`, …
    pub container: Option<String>,
    /// What is wrong with the driver as a whole.
    pub problem: Option<DriverProblem>,
}

/// How the library answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Session {
    /// It is being loaded or initialised.
    #[default]
    Starting,
    /// It answers.
    Open,
    /// Loading or initialising it failed; it is tried again.
    Failed {
        /// NVML's number; 0 where the library could not be loaded at all.
        code: u32,
        /// The answer in words.
        answer: String,
    },
    /// Initialising it has not returned.
    NoAnswer {
        /// The call that is stuck.
        call: String,
        /// Since when, milliseconds since 1970.
        since_ms: u64,
    },
}

/// A device node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceNode {
    /// Name below `/dev`.
    pub node: String,
    /// Permission bits, octal as in `ls`: `666`.
    pub mode: String,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Name of the group, where the box's group file has one.
    pub group: String,
    /// Whether we may open it for reading and writing.
    pub usable: bool,
    /// Why not: `mode` for owner and permission bits, `cgroup` for the device rules of a container,
    /// otherwise the kernel's answer; empty where it is usable.
    pub refused_by: String,
}

/// One thing that keeps the whole driver from answering.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DriverProblem {
    /// Stable id of the cause, such as `driver_library_mismatch`.
    pub cause: String,
    /// What is wrong, in one line.
    pub title: String,
    /// The figures that show it.
    pub evidence: Vec<String>,
    /// The next step.
    pub help: String,
    /// Nothing can be read while it lasts; otherwise it will bite at the next restart.
    pub blocking: bool,
    /// Nothing is broken: the box is built this way (no such hardware, GPUs given to guests).
    pub by_design: bool,
}

impl DriverProblem {
    /// How bad it is: a box without GPUs is no fault, one whose driver answers nothing is.
    pub fn severity(&self) -> Severity {
        match (self.by_design, self.blocking) {
            (true, _) => Severity::Info,
            (false, true) => Severity::Critical,
            (false, false) => Severity::Warning,
        }
    }
}

impl fmt::Display for DriverProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match (self.by_design, self.blocking) {
            (true, _) => "note",
            (false, true) => "error",
            (false, false) => "warning",
        };
        write!(f, "{word}: {}", self.title)?;
        for line in &self.evidence {
            write!(f, "\n  found: {line}")?;
        }
        write!(f, "\n  help: {}", self.help)?;
        if !self.by_design {
            write!(f, "\n  cause: {}", self.cause)?;
        }
        Ok(())
    }
}
