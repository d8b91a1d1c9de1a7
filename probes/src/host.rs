//! The box itself: CPUs, memory, load, NUMA nodes, huge pages, `/dev/shm`, kernel.
//!
//! Truth: `stat`, `meminfo`, `loadavg` and `uptime` of procfs at each tick; everything that costs
//! more or hardly changes is read again every ten seconds. Parsed here and not by the `procfs`
//! crate: that one refuses a whole file for one missing or odd line (containers with lxcfs have
//! such), keeps load averages as 32-bit floats, and reads all of `stat`.
//!
//! On Grace the kernel manages GPU memory as NUMA nodes without CPUs and counts it in `MemTotal`.
//! Such nodes are marked and taken out of the host's figures.

mod cpu;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
mod memory;
mod namespace;
mod numa;
mod probe;

use serde::{Deserialize, Serialize};

use crate::metric::{Kind, Metric, Pick};
use crate::reading::Reading;
use crate::snapshot::Stamp;

pub(crate) use namespace::{is_wsl_kernel, read_container};
pub use probe::{HostProbe, read_boot_id};

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
    /// Physical cores; absent where the kernel does not tell which CPUs share one.
    pub cpu_cores: Reading<u32>,
    /// CPU model.
    pub cpu_model: Reading<String>,
    /// Busy share of all CPUs since the last tick, 0 to 1. Waiting for storage is not busy; time
    /// that a hypervisor gave to others is.
    pub cpu_ratio: Reading<f64>,
    /// Share of time in which CPUs waited for storage, 0 to 1.
    pub iowait_ratio: Reading<f64>,
    /// Runnable and uninterruptible tasks, averaged over 1, 5 and 15 minutes.
    pub load: Reading<Vec<f64>>,
    /// Main memory, without GPU memory that the kernel manages.
    pub memory_total_bytes: Reading<u64>,
    /// What could be allocated without swapping, without GPU memory that the kernel manages.
    pub memory_available_bytes: Reading<u64>,
    /// Page cache.
    pub memory_cached_bytes: Reading<u64>,
    /// Shared memory and tmpfs.
    pub memory_shared_bytes: Reading<u64>,
    /// GPU memory that the kernel manages as NUMA nodes (Grace); 0 on other boxes.
    pub memory_device_bytes: Reading<u64>,
    /// Swap.
    pub swap_total_bytes: Reading<u64>,
    /// Swap in use.
    pub swap_used_bytes: Reading<u64>,
    /// Size of `/dev/shm`; NCCL and data loaders fail when it is small. Absent where nothing is mounted
    /// there.
    pub shm_total_bytes: Reading<u64>,
    /// `/dev/shm` in use.
    pub shm_used_bytes: Reading<u64>,
    /// Huge pages reserved, of all sizes, in bytes.
    pub hugepages_total_bytes: Reading<u64>,
    /// Huge pages free, of all sizes, in bytes.
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

/// Values of a label, each with its number.
type Labelled = Vec<(String, Reading<f64>)>;

const fn each(
    name: &'static str,
    help: &'static str,
    label: &'static str,
    pick: fn(&Host) -> Labelled,
) -> Metric<Host> {
    Metric { name, kind: Kind::Gauge, help, pick: Pick::Each { label, pick } }
}

/// Rows of the metric table.
pub const HOST_METRICS: &[Metric<Host>] = &[
    Metric::gauge("infertop_host_uptime_seconds", "Time since the box was booted.", |h| {
        h.uptime_seconds.number()
    }),
    Metric::gauge("infertop_host_cpus", "Logical CPUs that are online.", |h| h.cpus.number()),
    Metric::gauge("infertop_host_cpu_busy_ratio", "Busy share of all CPUs.", |h| {
        h.cpu_ratio.number()
    }),
    Metric::gauge(
        "infertop_host_cpu_iowait_ratio",
        "Share of CPU time spent waiting for storage.",
        |h| h.iowait_ratio.number(),
    ),
    each(
        "infertop_host_load_tasks",
        "Runnable and uninterruptible tasks, averaged.",
        "minutes",
        |h| {
            let load = h.load.value().map_or(&[][..], Vec::as_slice);
            let minutes = ["1", "5", "15"].into_iter().map(String::from);
            minutes.zip(load.iter().map(|tasks| Reading::Value(*tasks))).collect()
        },
    ),
    Metric::gauge(
        "infertop_host_memory_total_bytes",
        "Main memory, without GPU memory that the kernel manages.",
        |h| h.memory_total_bytes.number(),
    ),
    Metric::gauge(
        "infertop_host_memory_available_bytes",
        "Main memory that could be allocated without swapping.",
        |h| h.memory_available_bytes.number(),
    ),
    Metric::gauge("infertop_host_memory_cached_bytes", "Page cache.", |h| {
        h.memory_cached_bytes.number()
    }),
    Metric::gauge("infertop_host_memory_shared_bytes", "Shared memory and tmpfs.", |h| {
        h.memory_shared_bytes.number()
    }),
    Metric::gauge(
        "infertop_host_memory_device_bytes",
        "GPU memory that the kernel manages as NUMA nodes.",
        |h| h.memory_device_bytes.number(),
    ),
    Metric::gauge("infertop_host_swap_total_bytes", "Size of the swap space.", |h| {
        h.swap_total_bytes.number()
    }),
    Metric::gauge("infertop_host_swap_used_bytes", "Swap space in use.", |h| {
        h.swap_used_bytes.number()
    }),
    Metric::gauge("infertop_host_shm_total_bytes", "Size of /dev/shm.", |h| {
        h.shm_total_bytes.number()
    }),
    Metric::gauge("infertop_host_shm_used_bytes", "Part of /dev/shm in use.", |h| {
        h.shm_used_bytes.number()
    }),
    Metric::gauge("infertop_host_hugepages_total_bytes", "Huge pages reserved.", |h| {
        h.hugepages_total_bytes.number()
    }),
    Metric::gauge("infertop_host_hugepages_free_bytes", "Huge pages reserved and free.", |h| {
        h.hugepages_free_bytes.number()
    }),
    each(
        "infertop_host_numa_memory_total_bytes",
        "Memory of a NUMA node, GPU memory left out.",
        "node",
        |h| host_nodes(h, |node| node.total_bytes),
    ),
    each(
        "infertop_host_numa_memory_free_bytes",
        "Free memory of a NUMA node, GPU memory left out.",
        "node",
        |h| host_nodes(h, |node| node.free_bytes),
    ),
    Metric::gauge("infertop_host_processes", "Processes that our /proc shows.", |h| {
        h.processes.number()
    }),
];

fn host_nodes(host: &Host, bytes: fn(&NumaNode) -> u64) -> Labelled {
    let nodes = host.numa.value().map_or(&[][..], Vec::as_slice);
    nodes
        .iter()
        .filter(|node| !node.is_device)
        .map(|node| (node.node.to_string(), Reading::Value(bytes(node)).number()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_named_and_explained_alike() {
        let mut names: Vec<&str> = Vec::new();
        for metric in HOST_METRICS {
            assert!(metric.name.starts_with("infertop_host_"), "{}", metric.name);
            assert_eq!(
                metric.name.ends_with("_total"),
                metric.kind == Kind::Counter,
                "{}",
                metric.name
            );
            assert!(metric.help.ends_with('.') && metric.help.len() > 10, "{}", metric.name);
            names.push(metric.name);
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "two metrics share a name");
    }

    #[test]
    fn what_was_not_read_is_no_sample() {
        for metric in HOST_METRICS {
            match &metric.pick {
                Pick::One(pick) => assert!(pick(&Host::default()).value().is_none()),
                Pick::Each { pick, .. } => assert!(pick(&Host::default()).is_empty()),
            }
        }
    }
}
