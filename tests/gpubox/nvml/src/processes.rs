//! Who holds memory: three lists in three ages of the struct, and the detailed one.

use gpubox::ProcessRow;
use gpubox::spec::Kind;
use nvml_wrapper_sys::bindings::{
    nvmlProcessDetail_v1_t, nvmlProcessDetailList_v1_t, nvmlProcessInfo_v1_t, nvmlProcessInfo_v2_t,
};

use crate::call::{Ask, edit, element, get, put, put_list, supported, versioned};
use crate::codes::{Answer, INSUFFICIENT_SIZE, INVALID_ARGUMENT};

/// Instance ids where there are none.
const NONE: u32 = u32::MAX;

fn rows(ask: &Ask, kind: Kind) -> Vec<ProcessRow> {
    let mut rows = ask.processes(kind);
    if let Some(lie) = ask.lie {
        for row in &mut rows {
            row.bytes = lie as u64;
        }
    }
    rows
}

/// Tells the length as a probe, too small when a fault says so; lists that fit are whole.
fn answer<T: Copy>(ask: &Ask, count: *mut u32, out: *mut T, items: &[T]) -> Answer {
    let room = get(count)?;
    let answer = put_list(count, out, items);
    if answer == Err(INSUFFICIENT_SIZE) && ask.understated > 0 {
        let told = (items.len() as u32).saturating_sub(ask.understated);
        put(count, told.max(room))?;
    }
    answer
}

/// The struct early R535 drivers shipped under the name v3, with protected bytes at the end.
fn swollen(ask: &Ask, kind: Kind, count: *mut u32, out: *mut nvmlProcessInfo_v2_t) -> Answer {
    let items: Vec<_> = rows(ask, kind)
        .into_iter()
        .map(|row| nvmlProcessDetail_v1_t {
            pid: row.pid,
            usedGpuMemory: row.bytes,
            gpuInstanceId: NONE,
            computeInstanceId: NONE,
            usedGpuCcProtectedMemory: 0,
        })
        .collect();
    put_list(count, out.cast::<nvmlProcessDetail_v1_t>(), &items)
}

fn newest(ask: &Ask, kind: Kind, count: *mut u32, out: *mut nvmlProcessInfo_v2_t) -> Answer {
    if ask.site.machine.host.process_row_bytes == 32 {
        return swollen(ask, kind, count, out);
    }
    newer(ask, kind, count, out)
}

fn newer(ask: &Ask, kind: Kind, count: *mut u32, out: *mut nvmlProcessInfo_v2_t) -> Answer {
    supported(kind != Kind::Mps || ask.gpu.spec.architecture >= 5)?;
    let items: Vec<_> = rows(ask, kind)
        .into_iter()
        .map(|row| nvmlProcessInfo_v2_t {
            pid: row.pid,
            usedGpuMemory: row.bytes,
            gpuInstanceId: row.instance.map_or(NONE, |(gi, _)| gi),
            computeInstanceId: row.instance.map_or(NONE, |(_, ci)| ci),
        })
        .collect();
    answer(ask, count, out, &items)
}

fn oldest(ask: &Ask, kind: Kind, count: *mut u32, out: *mut nvmlProcessInfo_v1_t) -> Answer {
    let items: Vec<_> = rows(ask, kind)
        .into_iter()
        .map(|row| nvmlProcessInfo_v1_t { pid: row.pid, usedGpuMemory: row.bytes })
        .collect();
    put_list(count, out, &items)
}

instance_calls! {
    fn nvmlDeviceGetComputeRunningProcesses_v3(ask, count: *mut u32, out: *mut nvmlProcessInfo_v2_t) {
        newest(ask, Kind::Compute, count, out)
    }
    fn nvmlDeviceGetComputeRunningProcesses_v2(ask, count: *mut u32, out: *mut nvmlProcessInfo_v2_t) {
        newer(ask, Kind::Compute, count, out)
    }
    fn nvmlDeviceGetComputeRunningProcesses(ask, count: *mut u32, out: *mut nvmlProcessInfo_v1_t) {
        oldest(ask, Kind::Compute, count, out)
    }
    fn nvmlDeviceGetGraphicsRunningProcesses_v3(ask, count: *mut u32, out: *mut nvmlProcessInfo_v2_t) {
        newest(ask, Kind::Graphics, count, out)
    }
    fn nvmlDeviceGetGraphicsRunningProcesses_v2(ask, count: *mut u32, out: *mut nvmlProcessInfo_v2_t) {
        newer(ask, Kind::Graphics, count, out)
    }
    fn nvmlDeviceGetGraphicsRunningProcesses(ask, count: *mut u32, out: *mut nvmlProcessInfo_v1_t) {
        oldest(ask, Kind::Graphics, count, out)
    }
    fn nvmlDeviceGetMPSComputeRunningProcesses_v3(ask, count: *mut u32, out: *mut nvmlProcessInfo_v2_t) {
        newest(ask, Kind::Mps, count, out)
    }
    fn nvmlDeviceGetMPSComputeRunningProcesses_v2(ask, count: *mut u32, out: *mut nvmlProcessInfo_v2_t) {
        newer(ask, Kind::Mps, count, out)
    }
    fn nvmlDeviceGetMPSComputeRunningProcesses(ask, count: *mut u32, out: *mut nvmlProcessInfo_v1_t) {
        oldest(ask, Kind::Mps, count, out)
    }
    fn nvmlDeviceGetRunningProcessDetailList(ask, list: *mut nvmlProcessDetailList_v1_t) {
        versioned(list, 1)?;
        supported(ask.gpu.spec.architecture >= 9)?;
        let given = get(list)?;
        let kinds: &[Kind] = match given.mode {
            0 => &[Kind::Compute],
            1 => &[Kind::Graphics],
            2 => &[Kind::Mps],
            3 => &[Kind::Compute, Kind::Graphics, Kind::Mps],
            _ => return Err(INVALID_ARGUMENT),
        };
        let rows: Vec<_> = kinds.iter().flat_map(|kind| rows(ask, *kind)).collect();
        edit(list, |list| list.numProcArrayEntries = rows.len() as u32)?;
        if rows.is_empty() {
            return Ok(());
        }
        if given.procArray.is_null() || (given.numProcArrayEntries as usize) < rows.len() {
            return Err(INSUFFICIENT_SIZE);
        }
        for (position, row) in rows.into_iter().enumerate() {
            put(element(given.procArray, position), nvmlProcessDetail_v1_t {
                pid: row.pid,
                usedGpuMemory: row.bytes,
                gpuInstanceId: row.instance.map_or(NONE, |(gi, _)| gi),
                computeInstanceId: row.instance.map_or(NONE, |(_, ci)| ci),
                usedGpuCcProtectedMemory: 0,
            })?;
        }
        Ok(())
    }
}
