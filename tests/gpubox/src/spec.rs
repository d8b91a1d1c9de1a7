//! The words of a scenario file, as serde reads them. What they come to is in `machine.rs`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use crate::series::Series;

/// A whole scenario file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// What the box as a whole answers.
    #[serde(rename = "box")]
    pub host: Host,
    /// The GPUs, each still a table: model and overrides are merged before reading it.
    pub gpu: Vec<toml::Table>,
    /// Who holds memory.
    pub process: Vec<Process>,
    /// What goes wrong.
    pub fault: Vec<Fault>,
    /// Driver reloads.
    pub reload: Vec<Reload>,
    /// XID events.
    pub xid: Vec<Xid>,
    /// Microseconds per call, by symbol; a trailing `*` matches the rest, `default` everything.
    pub latency_us: BTreeMap<String, f64>,
    /// What the CUDA stand-in does.
    pub cuda: Cuda,
}

/// `[box]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// The driver's version.
    pub driver_version: String,
    /// NVML's own version; made from the driver's when absent.
    pub nvml_version: Option<String>,
    /// As the driver counts it: 13010 is CUDA 13.1.
    pub cuda_version: i32,
    /// The branch's name.
    pub driver_branch: String,
    /// What every init answers; 0 is success.
    pub init_code: Series,
    /// Whether GPM and the root-only readings answer "insufficient permissions".
    pub unprivileged: bool,
    /// Confidential computing.
    pub confidential_compute: bool,
    /// Bytes of a `_v3` process row: 24, or 32 as early R535 drivers had it for a while.
    pub process_row_bytes: u32,
    /// Makes the identities of two boxes differ.
    pub seed: u64,
    /// Sockets the GPUs are spread over.
    pub numa_nodes: u32,
    /// Logical processors, for the affinity masks.
    pub cpus: u32,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            driver_version: "590.48.01".into(),
            nvml_version: None,
            cuda_version: 13010,
            driver_branch: "r590_00".into(),
            init_code: Series::Constant(0.0),
            unprivileged: false,
            confidential_compute: false,
            process_row_bytes: 24,
            seed: 0,
            numa_nodes: 2,
            cpus: 128,
        }
    }
}

/// `[[gpu]]` after its model's row was laid under it.
#[allow(clippy::struct_excessive_bools, reason = "facts of a product, independent of each other")]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Gpu {
    /// The row of `models.toml`.
    pub model: String,
    /// How many alike.
    pub count: Option<u32>,
    /// `nvmlDeviceGetName`.
    pub name: String,
    /// `nvmlBrandType_t`; 14 is "NVIDIA".
    pub brand: Option<u32>,
    /// `nvmlDeviceArchitecture_t`.
    pub architecture: u32,
    /// CUDA compute capability.
    pub compute_capability: [i32; 2],
    /// Streaming multiprocessors.
    pub sm_count: u32,
    /// CUDA cores.
    pub cores: u32,
    /// Device and vendor.
    pub pci_device_id: u32,
    /// Board and vendor.
    pub pci_subsystem_id: u32,
    /// Absent answers `NOT_SUPPORTED`.
    pub board_part: Option<String>,
    /// Absent answers `NOT_SUPPORTED`.
    pub vbios: Option<String>,
    /// Made up when absent.
    pub uuid: Option<String>,
    /// Made up when absent, for data-centre parts.
    pub serial: Option<String>,
    /// `00000000:83:00.0`; made up when absent.
    pub pci_bus_id: Option<String>,
    /// N of `/dev/nvidiaN`; the index when absent.
    pub minor: Option<u32>,
    /// `"unsupported"` where memory is shared with the host; else leave it out.
    pub memory: Option<String>,
    /// Total, as v2 reports it.
    pub memory_mib: u64,
    /// The driver's own share.
    pub reserved_mib: u64,
    /// BAR1 window.
    pub bar1_mib: u64,
    /// Memory bus.
    pub bus_width: u32,
    /// Level 2 cache, for CUDA.
    pub l2_mib: u32,
    /// Idle, lowest and highest limit.
    pub power_watts: Watts,
    /// Idle and load temperatures.
    pub celsius: Celsius,
    /// Absolute thresholds, up to Ampere.
    pub thresholds: Option<Thresholds>,
    /// Clocks in MHz.
    pub clocks: Clocks,
    /// Host link.
    pub pcie: Pcie,
    /// `NVLink`s.
    pub nvlink: NvLink,
    /// GPU performance monitoring.
    pub gpm: bool,
    /// Instances at most; 0 is not MIG-capable.
    pub mig_max: u32,
    /// Row remapper banks.
    pub remap_banks: u32,
    /// Page retirement (up to Turing).
    pub retired_pages: bool,
    /// Fabric manager registration.
    pub fabric: bool,
    /// Fabric state, 3 is completed.
    pub fabric_state: Option<Series>,
    /// ECC, serial, T.Limit and P0 at idle follow.
    pub datacenter: bool,
    /// ECC mode; on for data-centre parts.
    pub ecc: Option<bool>,
    /// Field 82.
    pub memory_temperature: bool,
    /// Fans; 0 is passive.
    pub fans: u32,
    /// JPEG and optical-flow engines.
    pub jpeg_ofa: Option<bool>,
    /// GSP firmware.
    pub gsp: Option<bool>,
    /// Persistence mode; on for data-centre parts.
    pub persistence: Option<bool>,
    /// Compute mode.
    pub compute_mode: u32,
    /// Virtualisation mode.
    pub virtualization: u32,
    /// 0 none, 1 HMM, 2 ATS.
    pub addressing: Option<u32>,
    /// MIG instances; any (or `mig_enabled`) turns MIG on.
    pub mig: Vec<MigInstance>,
    /// MIG on without instances.
    pub mig_enabled: bool,
    /// When the GPU falls off the bus.
    pub lost_at: Option<f64>,
    /// What a handle lookup of the lost GPU answers.
    pub lost_lookup: Option<u32>,

    /// Per cent of time a kernel ran; the sum of the processes' when absent.
    pub utilization: Option<Series>,
    /// Per cent of time memory was accessed.
    pub memory_utilization: Option<Series>,
    /// Per cent.
    pub encoder: Option<Series>,
    /// Per cent.
    pub decoder: Option<Series>,
    /// Memory held by nobody listed, on top of the processes'.
    pub unattributed: Option<Series>,
    /// Memory in use in all, whatever the processes say.
    pub used: Option<Series>,
    /// Watts.
    pub power: Option<Series>,
    /// The limit in force, watts.
    pub power_limit: Option<Series>,
    /// GPU core.
    pub temperature: Option<Series>,
    /// MHz.
    pub sm_clock: Option<Series>,
    /// MHz.
    pub memory_clock: Option<Series>,
    /// Clock reasons bit mask.
    pub reasons: Option<Series>,
    /// P-state.
    pub pstate: Option<Series>,
    /// Per cent.
    pub fan: Option<Series>,
    /// Link generation now.
    pub pcie_generation: Option<Series>,
    /// Link width now.
    pub pcie_width: Option<Series>,
    /// Device to host, MiB/s.
    pub pcie_tx: Option<Series>,
    /// Host to device, MiB/s.
    pub pcie_rx: Option<Series>,
    /// Replay counter.
    pub pcie_replays: Option<Series>,
    /// All links, MiB/s each way.
    pub nvlink_rate: Option<Series>,
    /// Links that are down.
    pub nvlink_down: Vec<u32>,
    /// Per-link error counters: `nvlink_errors.3 = 12`.
    pub nvlink_errors: BTreeMap<String, Series>,
    /// DRAM, corrected, since the driver loaded.
    pub ecc_corrected: Option<Series>,
    /// DRAM, uncorrected, since the driver loaded.
    pub ecc_uncorrected: Option<Series>,
    /// SRAM, uncorrected, since the driver loaded.
    pub sram_uncorrected: Option<Series>,
    /// Remapped rows, corrected.
    pub remapped_corrected: Option<Series>,
    /// Remapped rows, uncorrected.
    pub remapped_uncorrected: Option<Series>,
    /// A reset is pending.
    pub remap_pending: Option<Series>,
    /// A remap failed.
    pub remap_failed: Option<Series>,
    /// Field 230.
    pub recovery_action: Option<Series>,
    /// Fields by number, over anything computed: `fields.197 = 5`.
    pub fields: BTreeMap<String, Series>,
    /// GPM metrics by number: `gpm_values.164 = 71`.
    pub gpm_values: BTreeMap<String, Series>,
}

/// Power figures.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Watts {
    /// At rest.
    pub idle: f64,
    /// Lowest limit.
    pub min: f64,
    /// Highest and default limit; 0 where limits are not supported.
    pub max: f64,
}

/// Temperatures.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Celsius {
    /// Core at rest.
    pub idle: f64,
    /// Core under full load.
    pub load: f64,
    /// Memory at rest.
    pub memory: f64,
}

/// Absolute thresholds.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Thresholds {
    /// Shutdown.
    pub shutdown: u32,
    /// Slowdown.
    pub slowdown: u32,
    /// Memory maximum.
    pub memory: Option<u32>,
    /// Core maximum.
    pub gpu: u32,
}

/// Clocks, MHz.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Clocks {
    /// Graphics at rest.
    pub idle: u32,
    /// Graphics and SM at most.
    pub graphics: u32,
    /// Memory at most; 0 is not supported.
    pub memory: u32,
    /// Video at most.
    pub video: u32,
    /// Memory at rest; the maximum when absent.
    pub memory_idle: Option<u32>,
}

/// Host link.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pcie {
    /// The GPU's best generation.
    pub generation: u32,
    /// The GPU's best width.
    pub width: u32,
    /// The slot's best generation, when lower.
    pub slot_generation: Option<u32>,
}

/// `NVLink`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NvLink {
    /// Links.
    pub links: u32,
    /// NVML's version number, an enum (6 is `NVLink` 4).
    pub version: u32,
    /// One link, MB/s.
    pub mbps: u32,
    /// Whether the other end is a switch.
    pub switch: bool,
}

/// `[[gpu.mig]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigInstance {
    /// `3g.40gb`.
    pub profile: String,
    /// Slot; the position in the list when absent.
    pub slot: Option<u32>,
    /// GPU instance.
    pub gi: u32,
    /// Compute instance.
    #[serde(default)]
    pub ci: u32,
    /// Made up when absent.
    pub uuid: Option<String>,
    /// Total.
    pub memory_mib: u64,
    /// In use without processes.
    #[serde(default)]
    pub base_mib: u64,
    /// Multiprocessors.
    #[serde(default)]
    pub sm_count: u32,
    /// Per cent, for GPM.
    pub utilization: Option<Series>,
}

/// One GPU, several, or `"all"`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Which {
    /// By index.
    One(usize),
    /// By indices.
    Many(Vec<usize>),
    /// `"all"`.
    Named(String),
}

impl Which {
    /// The indices, out of so many.
    pub fn indices(&self, gpus: usize) -> Result<Vec<usize>, String> {
        let wanted = match self {
            Self::One(index) => vec![*index],
            Self::Many(indices) => indices.clone(),
            Self::Named(name) if name == "all" => (0..gpus).collect(),
            Self::Named(name) => return Err(format!("gpu = {name:?}: wanted an index or \"all\"")),
        };
        match wanted.iter().find(|index| **index >= gpus) {
            Some(index) => Err(format!("gpu {index} of {gpus} does not exist")),
            None => Ok(wanted),
        }
    }
}

/// A pid as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Pid {
    /// This one (and the next numbers when the entry stands for several).
    Number(u32),
    /// `"self"` (who loaded the library) or `"parent"`.
    Named(String),
}

/// What kind of client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// CUDA.
    #[default]
    Compute,
    /// Drawing.
    Graphics,
    /// CUDA through MPS.
    Mps,
}

/// `[[process]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Where; several GPUs are one process on all of them unless `per_gpu` is given.
    pub gpu: Which,
    /// So many processes on each of the GPUs, each with a pid of its own.
    pub per_gpu: Option<u32>,
    /// The pid.
    pub pid: Option<Pid>,
    /// One pid a line, relative to the state directory; absent lines are absent processes.
    pub pid_file: Option<PathBuf>,
    /// An environment variable with pids, separated by commas.
    pub pid_env: Option<String>,
    /// Seconds a dead bound pid is still listed.
    #[serde(default)]
    pub linger_seconds: f64,
    /// Compute, graphics or mps.
    #[serde(default)]
    pub kind: Kind,
    /// Held on each GPU.
    pub bytes: Series,
    /// Per cent of the SMs.
    pub sm: Option<Series>,
    /// Per cent of memory time.
    pub mem: Option<Series>,
    /// Listed from this second.
    #[serde(default)]
    pub start: f64,
    /// Listed until this second.
    pub end: Option<f64>,
    /// The MIG instance (position in `gpu.mig`).
    pub mig: Option<usize>,
    /// A name for `nvmlSystemGetProcessName`.
    pub name: Option<String>,
}

/// `[[fault]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// `nvmlDeviceGetPowerUsage`, `nvmlGpm*`, `*`.
    pub symbol: String,
    /// Only there.
    pub gpu: Option<Which>,
    /// From this second.
    #[serde(default)]
    pub at: f64,
    /// Until this second.
    pub until: Option<f64>,
    /// After so many calls of this process.
    #[serde(default)]
    pub after_calls: u64,
    /// Answer this.
    pub code: Option<u32>,
    /// Take so much longer.
    pub latency_us: Option<f64>,
    /// Never answer.
    #[serde(default)]
    pub hang: bool,
    /// The symbol cannot be resolved. Only for exact names, and only for a library that
    /// `gpubox::nvml_library_for` made: a loaded library cannot hide what it exports.
    #[serde(default)]
    pub missing: bool,
    /// A list tells a length too small by so many, as if that many came before the next call.
    #[serde(default)]
    pub grow: u32,
    /// Answer success with this value, out of range or `"nan"` or `"max"`.
    pub value: Option<Series>,
}

/// `[[reload]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reload {
    /// The driver goes at this second …
    pub at: f64,
    /// … and is back after so many.
    pub gone_seconds: f64,
    /// The version it comes back with.
    pub new_version: Option<String>,
}

/// `[[xid]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Xid {
    /// When.
    pub at: f64,
    /// Where.
    pub gpu: usize,
    /// Which.
    pub code: u64,
}

/// `[cuda]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cuda {
    /// What a context costs before anything is allocated.
    pub context: Series,
    /// Keep the bytes when a context is destroyed.
    pub leak_on_destroy: bool,
    /// Seconds the memory of a dead process stays.
    pub dead_pid_seconds: f64,
    /// What `cuInit` answers.
    pub init_code: u32,
}

impl Default for Cuda {
    fn default() -> Self {
        Self {
            context: Series::Constant(500.0 * 1024.0 * 1024.0),
            leak_on_destroy: false,
            dead_pid_seconds: 0.0,
            init_code: 0,
        }
    }
}
