//! A GPU's memory, split until it adds up: reserved + each holder + held by nobody visible + free.
//!
//! Computed from a snapshot and never stored. The driver counts shared memory in every sharer and
//! managed memory in none, so a rest of either sign is normal and is shown as such.

use crate::proc::Process;
use crate::reading::{Absence, Reading};
use crate::snapshot::{Gpu, Snapshot};

/// The sum for one GPU or MIG instance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// The GPU's number.
    pub gpu_index: u32,
    /// UUID of the MIG instance, for an instance's own sum.
    pub mig_uuid: Option<String>,
    /// All memory.
    pub total_bytes: Reading<u64>,
    /// Kept by driver and firmware.
    pub reserved_bytes: Reading<u64>,
    /// Holders, largest first; those whose share the driver does not tell come last.
    pub holders: Vec<Holder>,
    /// Used, and in no visible process's account: managed memory, contexts of processes that are
    /// gone or in another PID namespace, the driver's own.
    pub unattributed_bytes: Reading<u64>,
    /// How much the holders' accounts exceed what is used: memory that several of them share.
    pub shared_bytes: u64,
    /// What a new process could have.
    pub free_bytes: Reading<u64>,
}

/// One process's part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holder {
    /// Its place in the snapshot's list of processes.
    pub process: usize,
    /// Its number.
    pub pid: u32,
    /// What the driver counts for it.
    pub bytes: Reading<u64>,
}

impl Ledger {
    /// Sum of what the holders are known to hold.
    pub fn held_bytes(&self) -> u64 {
        held(&self.holders)
    }
}

/// The sums of all GPUs and MIG instances, in the snapshot's order.
pub fn ledgers(snapshot: &Snapshot) -> Vec<Ledger> {
    ledgers_of(&snapshot.gpus, &snapshot.processes)
}

/// The same before a snapshot is made of them.
pub fn ledgers_of(gpus: &[Gpu], processes: &[Process]) -> Vec<Ledger> {
    gpus.iter().map(|gpu| ledger(gpu, processes)).collect()
}

fn ledger(gpu: &Gpu, processes: &[Process]) -> Ledger {
    let instance = gpu.mig.as_ref().map(|_| gpu.uuid.text());
    let mut holders: Vec<Holder> = processes
        .iter()
        .enumerate()
        .flat_map(|(at, process)| process.gpus.iter().map(move |part| (at, process.pid, part)))
        .filter(|(_, _, part)| part.gpu_index == gpu.index && part.kind != "open")
        .filter(|(_, _, part)| instance.is_none() || instance == part.mig_uuid.as_deref())
        .map(|(process, pid, part)| Holder { process, pid, bytes: part.gpu_bytes.clone() })
        .collect();
    holders.sort_by_key(|holder| std::cmp::Reverse(holder.bytes.get().map(|bytes| (1, bytes))));

    let untold = holders.iter().filter(|holder| holder.bytes.value().is_none()).count();
    let held = held(&holders);
    let used = &gpu.memory.used_bytes;
    let (unattributed, shared) = match (used, &gpu.processes.list) {
        _ if gpu.memory.unified => (Reading::UNSUPPORTED, 0),
        (Reading::Absent(why), _) | (_, Reading::Absent(why)) => (Reading::Absent(why.clone()), 0),
        _ if untold > 0 => {
            let what = format!("the driver does not tell what {untold} of the processes hold");
            (Reading::Absent(Absence::Failed { what }), 0)
        }
        _ if gpu.memory.reserved_bytes.value().is_none() => {
            let what = "this driver counts its own reserve as used".to_string();
            (Reading::Absent(Absence::Failed { what }), 0)
        }
        (Reading::Value(used), _) => (used.saturating_sub(held).into(), held.saturating_sub(*used)),
    };
    Ledger {
        gpu_index: gpu.index,
        mig_uuid: instance.map(Into::into),
        total_bytes: gpu.memory.total_bytes.clone(),
        reserved_bytes: gpu.memory.reserved_bytes.clone(),
        holders,
        unattributed_bytes: unattributed,
        shared_bytes: shared,
        free_bytes: gpu.memory.free_bytes.clone(),
    }
}

/// Figures come from the driver: a foolish one must not end the program.
fn held(holders: &[Holder]) -> u64 {
    holders.iter().filter_map(|holder| holder.bytes.get()).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::nvml::memory::Memory;
    use crate::nvml::processes::GpuProcesses;
    use crate::proc::GpuUse;

    fn box_with(used: u64, parts: &[Reading<u64>]) -> Snapshot {
        let memory = Memory {
            total_bytes: 1000.into(),
            reserved_bytes: 10.into(),
            used_bytes: used.into(),
            free_bytes: (990 - used).into(),
            ..Memory::default()
        };
        let processes = GpuProcesses { list: vec![].into(), ..GpuProcesses::default() };
        Snapshot {
            gpus: vec![Gpu { memory, processes, ..Gpu::default() }],
            processes: parts
                .iter()
                .zip(1..)
                .map(|(bytes, pid)| Process {
                    pid,
                    gpus: vec![GpuUse {
                        kind: "compute".into(),
                        gpu_bytes: bytes.clone(),
                        ..GpuUse::default()
                    }],
                    ..Process::default()
                })
                .collect(),
            ..Snapshot::default()
        }
    }

    proptest! {
        #[test]
        fn the_sum_always_closes(used in 0u64..=990, parts in prop::collection::vec(0u64..600, 0..5)) {
            let parts: Vec<_> = parts.into_iter().map(Reading::from).collect();
            let ledger = ledgers(&box_with(used, &parts)).remove(0);
            let sum = ledger.reserved_bytes.get().unwrap()
                + ledger.held_bytes()
                + ledger.unattributed_bytes.get().unwrap()
                + ledger.free_bytes.get().unwrap();
            prop_assert_eq!(sum - ledger.shared_bytes, 1000);
        }
    }

    #[test]
    fn a_holder_whose_share_is_not_told_leaves_the_rest_unknown() {
        let ledger = ledgers(&box_with(500, &[Reading::UNSUPPORTED, 100.into()])).remove(0);
        assert_eq!(ledger.unattributed_bytes.value(), None);
        assert_eq!(ledger.holders[0].pid, 2, "known shares come first");
    }

    #[test]
    fn a_holder_of_a_device_file_alone_holds_no_memory() {
        let mut snapshot = box_with(0, &[Reading::UNSUPPORTED]);
        snapshot.processes[0].gpus[0].kind = "open".into();
        assert!(ledgers(&snapshot)[0].holders.is_empty());
    }
}
