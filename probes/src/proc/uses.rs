//! What the driver's lists say of each process, by GPU or MIG instance.
//!
//! A GPU in MIG mode may list the processes of its instances itself, with the instance's numbers, and
//! each instance its own again: they are one use. Per-process shares are taken only as they stand in
//! the list of running processes and between 0 and 1; drivers have given thousands of percent for
//! processes that had ended.

use std::collections::BTreeMap;

use crate::nvml::processes::GpuProcess;
use crate::reading::{Absence, Reading};
use crate::snapshot::Gpu;

use super::{DeviceCount, GpuUse};

/// Uses by the driver's pid.
pub(crate) type Uses = BTreeMap<u32, Vec<GpuUse>>;

/// Joins the lists of all GPUs.
pub(crate) fn join_uses(gpus: &[Gpu]) -> Uses {
    let mut uses = Uses::new();
    for gpu in gpus {
        for process in gpu.processes.list.value().into_iter().flatten() {
            // Some drivers leave empty slots.
            if process.pid == 0 {
                continue;
            }
            let new = gpu_use(gpu, gpus, process);
            let known = uses.entry(process.pid).or_default();
            match known.iter_mut().find(|known| same_place(known, &new)) {
                Some(known) => merge(known, new),
                None => known.push(new),
            }
        }
    }
    uses
}

fn same_place(one: &GpuUse, other: &GpuUse) -> bool {
    one.gpu_index == other.gpu_index && one.mig_uuid == other.mig_uuid
}

fn gpu_use(gpu: &Gpu, gpus: &[Gpu], process: &GpuProcess) -> GpuUse {
    let instance = match &gpu.mig {
        Some(_) => Some(gpu),
        None => find_instance(gpu, gpus, process),
    };
    GpuUse {
        gpu_index: gpu.index,
        mig_uuid: instance.and_then(|instance| instance.uuid.value().cloned()),
        kind: process.kind.clone(),
        gpu_bytes: process.used_bytes.clone(),
        sm_ratio: ratio(&process.sm_ratio),
        memory_ratio: ratio(&process.memory_ratio),
        encoder_ratio: ratio(&process.encoder_ratio),
        decoder_ratio: ratio(&process.decoder_ratio),
    }
}

fn find_instance<'a>(gpu: &Gpu, gpus: &'a [Gpu], process: &GpuProcess) -> Option<&'a Gpu> {
    let wanted = process.gpu_instance?;
    gpus.iter().find(|other| {
        other.index == gpu.index
            && other.mig.as_ref().is_some_and(|mig| {
                let compute = mig.compute_instance.get();
                mig.gpu_instance.get() == Some(wanted)
                    && (process.compute_instance.is_none()
                        || compute.is_none()
                        || compute == process.compute_instance)
            })
    })
}

fn ratio(reading: &Reading<f64>) -> Reading<f64> {
    match reading {
        Reading::Value(value) if !(0.0..=1.0).contains(value) => {
            Reading::Absent(Absence::OutOfRange)
        }
        other => other.clone(),
    }
}

/// One process in two lists of the same device: the figures are the same, the kinds add up.
fn merge(known: &mut GpuUse, new: GpuUse) {
    let kinds = new.kind.split('+').filter(|kind| !kind.is_empty());
    for kind in kinds {
        if !known.kind.split('+').any(|old| old == kind) {
            if !known.kind.is_empty() {
                known.kind.push('+');
            }
            known.kind.push_str(kind);
        }
    }
    let fill = |known: &mut Reading<f64>, new: Reading<f64>| {
        if known.value().is_none() {
            *known = new;
        }
    };
    match (known.gpu_bytes.get(), new.gpu_bytes.get()) {
        (Some(one), Some(other)) => known.gpu_bytes = one.max(other).into(),
        (None, Some(_)) => known.gpu_bytes = new.gpu_bytes,
        _ => {}
    }
    fill(&mut known.sm_ratio, new.sm_ratio);
    fill(&mut known.memory_ratio, new.memory_ratio);
    fill(&mut known.encoder_ratio, new.encoder_ratio);
    fill(&mut known.decoder_ratio, new.decoder_ratio);
}

/// The uses of a process that only has device files open: a row a GPU, without figures.
pub(crate) fn open_uses(devices: &[DeviceCount], gpus: &[Gpu]) -> Vec<GpuUse> {
    let nothing = || Reading::Absent(Absence::NoData);
    let minors = devices.iter().filter_map(|device| {
        device.node.strip_prefix("nvidia").and_then(|minor| minor.parse::<u32>().ok())
    });
    let index = |minor: u32| {
        let by_minor = gpus.iter().find(|gpu| gpu.identity.minor.get() == Some(minor));
        // Without minors the order of the driver is the best guess there is.
        by_minor.map_or(minor, |gpu| gpu.index)
    };
    minors
        .map(|minor| GpuUse {
            gpu_index: index(minor),
            kind: "open".into(),
            gpu_bytes: Reading::Absent(Absence::NoData),
            sm_ratio: nothing(),
            memory_ratio: nothing(),
            encoder_ratio: nothing(),
            decoder_ratio: nothing(),
            ..GpuUse::default()
        })
        .collect()
}

/// Last tick's uses of a GPU whose list cannot be read now: the process is still there as far as
/// anyone knows, its figures are not.
pub(crate) fn stale_uses(before: &[GpuUse], gpus: &[Gpu]) -> Vec<GpuUse> {
    let unread = |index: u32, mig: Option<&String>| {
        let mut lists = gpus
            .iter()
            .filter(|gpu| gpu.index == index && (gpu.mig.is_none() || gpu.uuid.value() == mig));
        lists.find_map(|gpu| gpu.processes.list.absence().cloned())
    };
    let listed = before.iter().filter(|old| old.kind != "open");
    listed
        .filter_map(|old| {
            let why = unread(old.gpu_index, old.mig_uuid.as_ref())?;
            let none = || Reading::Absent(why.clone());
            Some(GpuUse {
                gpu_index: old.gpu_index,
                mig_uuid: old.mig_uuid.clone(),
                kind: old.kind.clone(),
                gpu_bytes: Reading::Absent(why.clone()),
                sm_ratio: none(),
                memory_ratio: none(),
                encoder_ratio: none(),
                decoder_ratio: none(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvml::mig::MigInstance;
    use crate::nvml::processes::GpuProcesses;

    fn listed(pid: u32, kind: &str, bytes: u64) -> GpuProcess {
        GpuProcess { pid, kind: kind.into(), used_bytes: bytes.into(), ..GpuProcess::default() }
    }

    fn gpu(index: u32, list: Vec<GpuProcess>) -> Gpu {
        let processes = GpuProcesses { list: list.into(), ..GpuProcesses::default() };
        Gpu { index, processes, ..Gpu::default() }
    }

    #[test]
    fn a_process_on_two_gpus_has_two_uses_and_slots_without_a_pid_none() {
        let gpus = [
            gpu(0, vec![listed(7, "compute", 100), listed(0, "compute", 1)]),
            gpu(1, vec![listed(7, "compute", 50)]),
        ];
        let uses = join_uses(&gpus);
        assert_eq!(uses.len(), 1);
        let bytes: Vec<_> = uses[&7].iter().map(|u| (u.gpu_index, u.gpu_bytes.get())).collect();
        assert_eq!(bytes, [(0, Some(100)), (1, Some(50))]);
    }

    #[test]
    fn shares_beyond_the_whole_are_dropped_with_a_reason() {
        let mut wild = listed(7, "compute", 1);
        wild.sm_ratio = 371.0.into();
        wild.memory_ratio = 0.5.into();
        wild.encoder_ratio = f64::NAN.into();
        let uses = join_uses(&[gpu(0, vec![wild])]);
        assert_eq!(uses[&7][0].sm_ratio, Reading::Absent(Absence::OutOfRange));
        assert_eq!(uses[&7][0].memory_ratio, 0.5.into());
        assert_eq!(uses[&7][0].encoder_ratio, Reading::Absent(Absence::OutOfRange));
    }

    #[test]
    fn an_instance_and_its_gpu_list_a_process_once() {
        let mut on_parent = listed(7, "compute", 100);
        on_parent.gpu_instance = Some(1);
        on_parent.compute_instance = Some(0);
        let mig = MigInstance {
            gpu_instance: 1.into(),
            compute_instance: 0.into(),
            ..MigInstance::default()
        };
        let mut instance = gpu(0, vec![listed(7, "mps", 100)]);
        instance.mig = Some(mig);
        instance.uuid = String::from("MIG-1").into();
        let uses = join_uses(&[gpu(0, vec![on_parent]), instance]);
        assert_eq!(uses[&7].len(), 1);
        assert_eq!(uses[&7][0].mig_uuid.as_deref(), Some("MIG-1"));
        assert_eq!(uses[&7][0].kind, "compute+mps");
        assert_eq!(uses[&7][0].gpu_bytes, 100.into());
    }

    #[test]
    fn a_holder_of_the_device_file_has_no_figures() {
        let mut second = gpu(5, Vec::new());
        second.identity.minor = 1.into();
        let node = |node: &str| DeviceCount { node: node.into(), count: 2 };
        let uses = open_uses(&[node("nvidia1"), node("nvidiactl"), node("nvidia-uvm")], &[second]);
        assert_eq!(uses.len(), 1);
        assert_eq!((uses[0].gpu_index, uses[0].kind.as_str()), (5, "open"));
        assert_eq!(uses[0].gpu_bytes, Reading::Absent(Absence::NoData));
    }

    #[test]
    fn a_list_that_cannot_be_read_keeps_its_processes_without_figures() {
        let before = join_uses(&[gpu(0, vec![listed(7, "compute", 100)])]).remove(&7).unwrap();
        let mut stuck = gpu(0, Vec::new());
        stuck.processes.list = Reading::Absent(Absence::NoAnswer);
        let uses = stale_uses(&before, &[stuck]);
        assert_eq!(uses[0].gpu_bytes, Reading::Absent(Absence::NoAnswer));
        assert!(stale_uses(&before, &[gpu(0, Vec::new())]).is_empty());
    }
}
