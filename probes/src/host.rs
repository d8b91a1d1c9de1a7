//! The box itself: CPUs, memory, load, NUMA nodes, huge pages, `/dev/shm`, kernel.

use serde::{Deserialize, Serialize};

use crate::reading::Reading;
use crate::snapshot::Stamp;

/// The box.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// When it was read.
    pub read: Stamp,
    /// Host name (`kernel/hostname` of procfs).
    pub name: Reading<String>,
    /// Kernel release.
    pub kernel: Reading<String>,
    /// Distribution, as it calls itself.
    pub os: Reading<String>,
    /// Changes with every boot.
    pub boot_id: Reading<String>,
    /// Seconds since boot.
    pub uptime_seconds: Reading<u64>,
    /// Logical CPUs that are online.
    pub cpus: Reading<u32>,
    /// CPU model.
    pub cpu_model: Reading<String>,
    /// Busy share of all CPUs since the last tick, 0 to 1.
    pub cpu_ratio: Reading<f64>,
    /// Share of time in which CPUs waited for storage, 0 to 1.
    pub iowait_ratio: Reading<f64>,
    /// Runnable and uninterruptible tasks, averaged over 1, 5 and 15 minutes.
    pub load: Reading<Vec<f64>>,
    /// Main memory.
    pub memory_total_bytes: Reading<u64>,
    /// What could be allocated without swapping.
    pub memory_available_bytes: Reading<u64>,
    /// Page cache.
    pub memory_cached_bytes: Reading<u64>,
    /// Shared memory and tmpfs.
    pub memory_shared_bytes: Reading<u64>,
    /// Swap.
    pub swap_total_bytes: Reading<u64>,
    /// Swap in use.
    pub swap_used_bytes: Reading<u64>,
    /// Size of `/dev/shm`; NCCL and PyTorch fail when it is small.
    pub shm_total_bytes: Reading<u64>,
    /// `/dev/shm` in use.
    pub shm_used_bytes: Reading<u64>,
    /// Huge pages reserved, in bytes.
    pub hugepages_total_bytes: Reading<u64>,
    /// Huge pages free, in bytes.
    pub hugepages_free_bytes: Reading<u64>,
    /// `always`, `madvise` or `never`.
    pub transparent_hugepages: Reading<String>,
    /// NUMA nodes; nodes without CPUs that are a GPU's memory are marked.
    pub numa: Reading<Vec<NumaNode>>,
    /// Processes in `/proc`.
    pub processes: Reading<u32>,
    /// What our `/proc` shows: `host`, or why it is likely not the whole host.
    pub pid_namespace: Reading<String>,
}

/// One NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NumaNode {
    /// Its number.
    pub node: u32,
    /// Its CPUs as the kernel lists them, `0-31,64-95`; empty for a node without CPUs.
    pub cpus: String,
    /// Memory.
    pub total_bytes: u64,
    /// Free memory.
    pub free_bytes: u64,
    /// A GPU's own memory shown as a node (Grace); never counted as host memory.
    pub is_device: bool,
}
