//! Everything that was read in one tick, as plain data.
//!
//! This is what is sent, stored and replayed, so fields are only ever added, each with a serde
//! default, and a type never changes under a name.

mod unread;

use serde::{Deserialize, Serialize};

use crate::driver::Driver;
use crate::host::Host;
use crate::kernel_log::KernelLog;
use crate::nvml::clocks::Clocks;
use crate::nvml::ecc::Ecc;
use crate::nvml::events::Xid;
use crate::nvml::fabric::Fabric;
use crate::nvml::gpm::Gpm;
use crate::nvml::identity::Identity;
use crate::nvml::memory::Memory;
use crate::nvml::mig::MigInstance;
use crate::nvml::nvlink::NvLinks;
use crate::nvml::pcie::Pcie;
use crate::nvml::power::Power;
use crate::nvml::processes::GpuProcesses;
use crate::nvml::temperature::Temperature;
use crate::nvml::topology::Topology;
use crate::nvml::utilization::Utilization;
use crate::proc::Process;
use crate::reading::Reading;
use crate::self_cost::SelfCost;

/// When a group was read, and what that took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stamp {
    /// Wall clock at the end of the read, milliseconds since 1970; 0 means never read.
    pub at_ms: u64,
    /// How long the read took, in microseconds.
    pub took_us: u32,
}

impl Stamp {
    /// Seconds between this read and `now_ms`; `None` when never read.
    pub fn age_seconds(&self, now_ms: u64) -> Option<u64> {
        (self.at_ms > 0).then(|| now_ms.saturating_sub(self.at_ms) / 1000)
    }
}

/// All readings of one tick.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// Version of this layout.
    pub schema: u32,
    /// Counts up by one with each snapshot of a sampler; a gap is a lost snapshot.
    pub sequence: u64,
    /// Wall clock, milliseconds since 1970.
    pub taken_at_ms: u64,
    /// The nominal distance to the next snapshot.
    pub interval_ms: u64,
    /// Counts up whenever the driver was taken anew; values of two generations are not compared.
    pub generation: u32,
    /// The box.
    pub host: Host,
    /// The driver and its library.
    pub driver: Driver,
    /// GPUs in the driver's order, each followed by its MIG instances. A lost GPU keeps its place.
    pub gpus: Vec<Gpu>,
    /// Processes that use or hold a GPU.
    pub processes: Vec<Process>,
    /// What the kernel said about the GPUs.
    pub kernel_log: KernelLog,
    /// What looking costs.
    #[serde(rename = "self")]
    pub self_cost: SelfCost,
}

/// The layout's version that this code writes.
pub const SCHEMA: u32 = 1;

/// How a GPU answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Health {
    /// The first answers are on their way.
    #[default]
    Starting,
    /// It answers.
    Answering,
    /// A driver call has not returned.
    NoAnswer {
        /// The call that is stuck, as the driver's library names it.
        call: String,
        /// Since when, milliseconds since 1970.
        since_ms: u64,
        /// State and kernel function of the stuck thread, such as `D rpcRmApiControl_GSP`.
        #[serde(default)]
        thread: String,
    },
    /// The driver says that it is gone; values are the last ones known.
    Lost {
        /// Since when, milliseconds since 1970.
        since_ms: u64,
        /// What the driver answered.
        answer: String,
    },
    /// The driver answers its calls with an error: no permission, reset required, …
    Failing {
        /// NVML's number; 0 where the answer is not the driver's own.
        #[serde(default)]
        code: u32,
        /// Since when, milliseconds since 1970.
        since_ms: u64,
        /// What the driver answered.
        answer: String,
    },
}

/// One GPU, or one MIG instance of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpu {
    /// Its number here: the driver's at first sight, kept while this sampler runs.
    /// A MIG instance has its GPU's number.
    pub index: u32,
    /// `GPU-…` or `MIG-…`; what a GPU is known by over time.
    pub uuid: Reading<String>,
    /// Product name without the leading `NVIDIA `.
    pub name: Reading<String>,
    /// Bus address as the kernel writes it, `0000:83:00.0`.
    pub pci: Reading<String>,
    /// How it answers.
    pub health: Health,
    /// Set for a MIG instance.
    pub mig: Option<MigInstance>,
    /// What does not change while the driver is loaded.
    pub identity: Identity,
    /// Memory.
    pub memory: Memory,
    /// Busy shares from the driver's sample periods.
    pub utilization: Utilization,
    /// Hardware counters between two ticks, L2 hit rates among them.
    pub gpm: Gpm,
    /// Clocks, P-state and what holds the clocks down.
    pub clocks: Clocks,
    /// Power, limits, energy.
    pub power: Power,
    /// Temperatures and fans.
    pub temperature: Temperature,
    /// Memory errors, row remapping, page retirement, recovery action.
    pub ecc: Ecc,
    /// The bus.
    pub pcie: Pcie,
    /// Links to other GPUs.
    pub nvlink: NvLinks,
    /// The NVSwitch fabric.
    pub fabric: Fabric,
    /// The way to the other GPUs and to the CPUs.
    pub topology: Topology,
    /// Processes as the driver lists them.
    pub processes: GpuProcesses,
    /// Errors that the driver reported as events since the sampler started, newest last.
    pub xids: Vec<Xid>,
}

impl Gpu {
    /// What people call it: its number, and the instance for MIG: `3`, `3/g1.c0`.
    pub fn label(&self) -> String {
        match &self.mig {
            None => self.index.to_string(),
            Some(mig) => format!("{}/{}", self.index, mig.label()),
        }
    }

    /// Whether its values are from now.
    pub fn answers(&self) -> bool {
        self.health == Health::Answering
    }
}

impl Snapshot {
    /// A snapshot as bytes for a pipe or a store: MessagePack with field names.
    pub fn encode(&self) -> Result<Vec<u8>, rmp_serde::encode::Error> {
        rmp_serde::to_vec_named(self)
    }

    /// The snapshot in bytes made by [`Snapshot::encode`] of this or an older version.
    pub fn decode(bytes: &[u8]) -> Result<Self, rmp_serde::decode::Error> {
        rmp_serde::from_slice(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_survives_the_pipe() {
        let snapshot = Snapshot {
            sequence: 7,
            gpus: vec![Gpu { index: 3, health: Health::Answering, ..Gpu::default() }],
            processes: vec![Process::default()],
            ..Snapshot::default()
        };
        assert_eq!(Snapshot::decode(&snapshot.encode().unwrap()).unwrap(), snapshot);
    }

    #[test]
    fn an_older_recording_without_a_field_still_loads() {
        let old = rmp_serde::to_vec_named(&serde_json::json!({
            "schema": 1, "sequence": 4, "gpus": [{ "index": 0, "uuid": "GPU-1" }]
        }))
        .unwrap();
        let snapshot = Snapshot::decode(&old).unwrap();
        assert_eq!(snapshot.gpus[0].uuid.text(), "GPU-1");
        assert!(snapshot.gpus[0].name.absence().is_some());
    }
}
