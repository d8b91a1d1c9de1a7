//! Processes that use or hold a GPU, from `/proc` and from what the driver lists.
//!
//! `read_…` touches files, `parse_…` takes text. Command lines are redacted in the function that
//! reads them; no other code sees the original.

mod ancestors;
mod blocking;
mod cgroup;
mod cmdline;
mod container_name;
mod engine;
mod fds;
mod front_ends;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
mod holders;
mod maps;
mod namespace;
mod not_here;
pub mod redact;
mod sockets;
mod stat;
mod status;
mod sweep;
pub mod table;
mod task;
#[cfg(test)]
mod testing;
mod tracked;
mod users;
mod uses;

use serde::{Deserialize, Serialize};

pub use holders::{Holder, Holders, find_holders};

use crate::reading::{Absence, Reading};
use crate::snapshot::Stamp;

/// One process with what it has to do with the GPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Its number in the PID namespace of our `/proc`.
    pub pid: u32,
    /// When the fast part was read.
    pub read: Stamp,
    /// Whether our `/proc` knows it. `Absent(Gone)`: the driver lists it and it has ended.
    /// `Absent(NotHere)`: the driver lists it and it was never seen here, because it had ended before
    /// or because it lives in another PID namespace.
    pub exists: Reading<bool>,
    /// Parent's number.
    pub parent: Reading<u32>,
    /// From the parent up to init: number and short name.
    pub ancestors: Vec<Ancestor>,
    /// User name, or the number where no name is known.
    pub user: Reading<String>,
    /// Effective user number.
    pub uid: Reading<u32>,
    /// Short name, cut to 15 bytes by the kernel.
    pub comm: Reading<String>,
    /// Command line, redacted, arguments joined by spaces; falls back to `[comm]`.
    pub command: Reading<String>,
    /// A secret stands in its command line, where every user of the box can read it.
    pub secret_exposed: Reading<bool>,
    /// One letter: R, S, D, Z, T, …
    pub state: Reading<String>,
    /// Since when it has been seen in this state, milliseconds since 1970.
    pub state_since_ms: Reading<u64>,
    /// The kernel function it waits in, where it may be read.
    pub wchan: Reading<String>,
    /// Start in clock ticks after boot; with the pid this names a process for good.
    pub start_ticks: Reading<u64>,
    /// Start as wall clock, milliseconds since 1970.
    pub started_at_ms: Reading<u64>,
    /// User and system time, in seconds.
    pub cpu_seconds_total: Reading<f64>,
    /// Share of one core since the last tick, 0 and up.
    pub cpu_ratio: Reading<f64>,
    /// Resident memory.
    pub rss_bytes: Reading<u64>,
    /// Memory pinned for devices (`VmPin`).
    pub pinned_bytes: Reading<u64>,
    /// Memory locked by the process (`VmLck`).
    pub locked_bytes: Reading<u64>,
    /// Swapped out memory.
    pub swap_bytes: Reading<u64>,
    /// Threads.
    pub threads: Reading<u32>,
    /// Its numbers from our namespace inwards; more than one in a container.
    pub namespace_pids: Reading<Vec<u32>>,
    /// Control group path.
    pub cgroup: Reading<String>,
    /// Container id, 12 digits, with its runtime: `docker 4f5c…`.
    pub container: Reading<String>,
    /// The container's name, from files that its runtime leaves on the host; `namespace/pod/container`
    /// in Kubernetes.
    pub container_name: Reading<String>,
    /// Pod uid.
    pub pod: Reading<String>,
    /// systemd unit.
    pub unit: Reading<String>,
    /// Slurm job.
    pub slurm_job: Reading<String>,
    /// What the command looks like: `vLLM engine core`, `SGLang scheduler`, …; unsupported for none.
    pub engine: Reading<String>,
    /// TCP ports on which it listens.
    pub listening_ports: Reading<Vec<u16>>,
    /// Open device files, `nvidia0` → how many.
    pub device_files: Reading<Vec<DeviceCount>>,
    /// Mapped device files, `nvidiactl` → how many mappings.
    pub device_maps: Reading<Vec<DeviceCount>>,
    /// Mapped NVIDIA libraries.
    pub libraries: Reading<Vec<Library>>,
    /// What it does on each GPU; empty for a server whose workers are on them, and for a holder of
    /// nodes that belong to no GPU.
    pub gpus: Vec<GpuUse>,
}

/// A process above another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ancestor {
    /// Its number.
    pub pid: u32,
    /// Its short name.
    pub comm: String,
}

/// How often a process has a device node open or mapped.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceCount {
    /// Node below `/dev`: `nvidia0`, `nvidiactl`, `nvidia-uvm`, `nvidia-caps/nvidia-cap3`.
    pub node: String,
    /// How many descriptors or mappings.
    pub count: u32,
}

/// A mapped library of the driver or of CUDA.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Library {
    /// `libcuda`, `libnvidia-ml`, `libcudart`, `libnccl`, `libnvinfer`, …
    pub name: String,
    /// Version in its file name; empty where the name has none.
    pub version: String,
    /// The file was replaced since: the process runs the old one.
    pub deleted: bool,
}

/// A process on one GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuUse {
    /// The GPU's number.
    pub gpu_index: u32,
    /// UUID of the MIG instance, where it runs in one.
    pub mig_uuid: Option<String>,
    /// `compute`, `graphics`, `mps`, joined by `+`; `open` for a holder of the device file only.
    pub kind: String,
    /// Memory that the driver counts for it; shared memory counts in each sharer.
    pub gpu_bytes: Reading<u64>,
    /// Share of the last sample period with a kernel of its own, 0 to 1.
    pub sm_ratio: Reading<f64>,
    /// The same for memory accesses.
    pub memory_ratio: Reading<f64>,
    /// The same for the encoder.
    pub encoder_ratio: Reading<f64>,
    /// The same for the decoder.
    pub decoder_ratio: Reading<f64>,
}

impl Process {
    /// Whether the driver lists it and our `/proc` has no such process.
    pub fn is_gone(&self) -> bool {
        matches!(self.exists.absence(), Some(Absence::Gone | Absence::NotHere { .. }))
    }

    /// Memory on all GPUs, as far as the driver says.
    pub fn gpu_bytes(&self) -> u64 {
        self.gpus.iter().filter_map(|gpu| gpu.gpu_bytes.get()).fold(0, u64::saturating_add)
    }
}

/// When a process started, in clock ticks after boot; `None` when there is no such process. With
/// the pid this names a process for good.
pub fn read_start_ticks(machine: &crate::machine::Machine, pid: u32) -> Option<u64> {
    let line = crate::machine::read_bytes(&machine.proc(pid.to_string()).join("stat")).ok()?;
    stat::parse_stat(&line).map(|stat| stat.start_ticks)
}
