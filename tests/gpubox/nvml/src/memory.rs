//! Frame buffer, BAR1 and protected memory.

use nvml_wrapper_sys::bindings::{
    nvmlBAR1Memory_t, nvmlConfComputeMemSizeInfo_t, nvmlMemory_t, nvmlMemory_v2_t,
};

use crate::call::{Ask, edit, put, supported, versioned};
use crate::codes::Answer;

const MIB: u64 = 1 << 20;

fn lied(ask: &Ask, value: u64) -> u64 {
    ask.lie.map_or(value, |lie| lie as u64)
}

/// BAR1 of a MIG instance: its share of the GPU's by memory, as captures show it roughly.
fn bar1_total(ask: &Ask) -> u64 {
    let whole = ask.gpu.spec.bar1_mib * MIB;
    match ask.mig {
        Some(_) if ask.gpu.spec.memory_mib > 0 => {
            let share = ask.memory_total() as f64 / (ask.gpu.spec.memory_mib * MIB) as f64;
            (whole as f64 * share * 0.38) as u64 / MIB * MIB
        }
        _ => whole,
    }
}

fn protected(ask: &Ask) -> Answer {
    supported(ask.gpu.spec.architecture >= 7 && ask.site.machine.host.confidential_compute)
}

instance_calls! {
    // v1 counts the driver's own share as used; v2 keeps it apart.
    fn nvmlDeviceGetMemoryInfo(ask, memory: *mut nvmlMemory_t) {
        supported(!ask.is_unified())?;
        let (total, used) = (ask.memory_total(), ask.memory_used() + ask.memory_reserved());
        put(memory, nvmlMemory_t { total, free: total - used, used: lied(ask, used) })
    }
    // nvtop passes `version = 2` here and falls back to v1 when that is refused.
    fn nvmlDeviceGetMemoryInfo_v2(ask, memory: *mut nvmlMemory_v2_t) {
        versioned(memory, 2)?;
        supported(!ask.is_unified())?;
        let (total, used, reserved) =
            (ask.memory_total(), ask.memory_used(), ask.memory_reserved());
        edit(memory, |memory| {
            memory.total = total;
            memory.reserved = reserved;
            memory.free = total - reserved - used;
            memory.used = lied(ask, used);
        })
    }
    fn nvmlDeviceGetBAR1MemoryInfo(ask, memory: *mut nvmlBAR1Memory_t) {
        supported(!ask.is_unified())?;
        let total = bar1_total(ask);
        let used = (MIB + ask.processes(gpubox::spec::Kind::Compute).len() as u64 * 2 * MIB).min(total);
        put(memory, nvmlBAR1Memory_t { bar1Total: total, bar1Free: total - used, bar1Used: used })
    }
}

device_calls! {
    fn nvmlDeviceGetConfComputeMemSizeInfo(ask, info: *mut nvmlConfComputeMemSizeInfo_t) {
        protected(ask)?;
        put(info, nvmlConfComputeMemSizeInfo_t {
            protectedMemSizeKib: ask.memory_total() / 1024,
            unprotectedMemSizeKib: 0,
        })
    }
    fn nvmlDeviceGetConfComputeProtectedMemoryUsage(ask, memory: *mut nvmlMemory_t) {
        protected(ask)?;
        let (total, used) = (ask.memory_total(), ask.memory_used());
        put(memory, nvmlMemory_t { total, free: total - used, used })
    }
}
