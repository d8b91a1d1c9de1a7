//! Settings: persistence, compute mode, display, virtualisation, addressing.

use nvml_wrapper_sys::bindings::nvmlDeviceAddressingMode_v1_t;

use crate::call::{edit, put, supported, versioned};
use crate::codes::NOT_SUPPORTED;

device_calls! {
    fn nvmlDeviceGetPersistenceMode(ask, mode: *mut u32) {
        ask.put(mode, u32::from(ask.gpu.spec.persistence.unwrap_or(ask.gpu.spec.datacenter)))
    }
    fn nvmlDeviceGetDisplayMode(ask, mode: *mut u32) { ask.put(mode, 0) }
    fn nvmlDeviceGetDisplayActive(ask, active: *mut u32) { ask.put(active, 0) }
    fn nvmlDeviceGetVirtualizationMode(ask, mode: *mut u32) {
        ask.put(mode, ask.gpu.spec.virtualization)
    }
    fn nvmlDeviceGetHostVgpuMode(_ask, _mode: *mut u32) { Err(NOT_SUPPORTED) }
    fn nvmlDeviceGetAddressingMode(ask, mode: *mut nvmlDeviceAddressingMode_v1_t) {
        versioned(mode, 1)?;
        supported(ask.gpu.spec.architecture >= 6)?;
        let default = u32::from(!ask.gpu.spec.datacenter || ask.gpu.spec.architecture >= 9);
        edit(mode, |mode| mode.value = ask.gpu.spec.addressing.unwrap_or(default))
    }
    // Windows only.
    fn nvmlDeviceGetDriverModel_v2(_ask, _current: *mut u32, _pending: *mut u32) {
        Err(NOT_SUPPORTED)
    }
    fn nvmlDeviceGetDriverModel(_ask, _current: *mut u32, _pending: *mut u32) {
        Err(NOT_SUPPORTED)
    }
    fn nvmlDeviceGetAPIRestriction(ask, kind: u32, restricted: *mut u32) {
        supported(kind == 0)?;
        ask.put(restricted, 1)
    }
    fn nvmlDeviceGetGpuOperationMode(_ask, _current: *mut u32, _pending: *mut u32) {
        Err(NOT_SUPPORTED)
    }
}

instance_calls! {
    // With MIG on the setting belongs to the instances.
    fn nvmlDeviceGetComputeMode(ask, mode: *mut u32) {
        supported(!ask.mig_on() || ask.mig.is_some())?;
        put(mode, ask.lie.map_or(ask.gpu.spec.compute_mode, |lie| lie as u32))
    }
}
