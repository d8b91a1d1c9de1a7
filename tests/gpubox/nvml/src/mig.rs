//! Multi-instance GPU: mode, slots, handles, ids.

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlDeviceAttributes_t};

use crate::call::{Ask, Handle, put, supported};
use crate::codes::{Answer, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED};

fn attributes(ask: &Ask, out: *mut nvmlDeviceAttributes_t) -> Answer {
    let instance = ask.mig.and_then(|slot| ask.gpu.spec.mig.get(slot)).ok_or(NOT_SUPPORTED)?;
    let digits = instance.profile.split('g').next().unwrap_or_default();
    let slices = digits.rsplit('.').next().and_then(|slices| slices.parse().ok()).unwrap_or(1);
    put(
        out,
        nvmlDeviceAttributes_t {
            multiprocessorCount: instance.sm_count,
            sharedCopyEngineCount: slices,
            sharedDecoderCount: slices,
            sharedEncoderCount: 0,
            sharedJpegCount: slices,
            sharedOfaCount: 0,
            gpuInstanceSliceCount: slices,
            computeInstanceSliceCount: slices,
            memorySizeMB: instance.memory_mib,
        },
    )
}

instance_calls! {
    fn nvmlDeviceIsMigDeviceHandle(ask, is: *mut u32) { put(is, u32::from(ask.mig.is_some())) }
    fn nvmlDeviceGetGpuInstanceId(ask, id: *mut u32) {
        let slot = ask.mig.ok_or(NOT_SUPPORTED)?;
        put(id, ask.gpu.spec.mig.get(slot).ok_or(INVALID_ARGUMENT)?.gi)
    }
    fn nvmlDeviceGetComputeInstanceId(ask, id: *mut u32) {
        let slot = ask.mig.ok_or(NOT_SUPPORTED)?;
        put(id, ask.gpu.spec.mig.get(slot).ok_or(INVALID_ARGUMENT)?.ci)
    }
    fn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(ask, device: *mut nvmlDevice_t) {
        ask.mig.ok_or(INVALID_ARGUMENT)?;
        put(device, Handle::make(ask.gpu.index, None))
    }
    fn nvmlDeviceGetAttributes_v2(ask, out: *mut nvmlDeviceAttributes_t) { attributes(ask, out) }
    fn nvmlDeviceGetAttributes(ask, out: *mut nvmlDeviceAttributes_t) { attributes(ask, out) }
}

device_calls! {
    fn nvmlDeviceGetMigMode(ask, current: *mut u32, pending: *mut u32) {
        supported(ask.gpu.spec.mig_max > 0)?;
        ask.put(current, u32::from(ask.mig_on()))?;
        ask.put(pending, u32::from(ask.mig_on()))
    }
    // Not capable is not an error here: none at most.
    fn nvmlDeviceGetMaxMigDeviceCount(ask, count: *mut u32) {
        ask.put(count, ask.gpu.spec.mig_max)
    }
    fn nvmlDeviceGetMigDeviceHandleByIndex(ask, index: u32, device: *mut nvmlDevice_t) {
        supported(ask.gpu.spec.mig_max > 0)?;
        if index >= ask.gpu.spec.mig_max {
            return Err(INVALID_ARGUMENT);
        }
        let mut instances = ask.gpu.spec.mig.iter().enumerate();
        let found = instances.find(|(position, instance)| {
            instance.slot.unwrap_or(*position as u32) == index
        });
        let (position, _) = found.ok_or(NOT_FOUND)?;
        put(device, Handle::make(ask.gpu.index, Some(position)))
    }
}
