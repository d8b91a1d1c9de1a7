//! The box: versions, confidential computing, process names.

use std::ffi::{c_char, c_int};

use nvml_wrapper_sys::bindings::{
    nvmlConfComputeSystemCaps_t, nvmlConfComputeSystemState_t, nvmlSystemConfComputeSettings_v1_t,
    nvmlSystemDriverBranchInfo_v1_t,
};

use crate::call::{Call, edit, put, put_list, put_text, supported, text_field, versioned};
use crate::codes::{Answer, NOT_FOUND};

fn cuda_version(call: &Call, version: *mut c_int) -> Answer {
    put(version, call.lie.map_or(call.site.machine.host.cuda_version, |lie| lie as i32))
}

library_calls! {
    // Answers without initialisation, by its documentation.
    fn nvmlSystemGetNVMLVersion(call, version: *mut c_char, length: u32) {
        let machine = &call.site.machine;
        let driver = machine.driver_version(call.t);
        if let Some(given) = &machine.host.nvml_version { put_text(version, length, given) } else {
            let api = machine.host.cuda_version / 1000;
            put_text(version, length, &format!("{api}.{driver}"))
        }
    }
    fn nvmlSystemGetCudaDriverVersion(call, version: *mut c_int) { cuda_version(call, version) }
    fn nvmlSystemGetCudaDriverVersion_v2(call, version: *mut c_int) { cuda_version(call, version) }
}

system_calls! {
    fn nvmlSystemGetDriverVersion(call, version: *mut c_char, length: u32) {
        put_text(version, length, call.site.machine.driver_version(call.t))
    }
    fn nvmlSystemGetDriverBranch(
        call,
        info: *mut nvmlSystemDriverBranchInfo_v1_t,
        _length: u32,
    ) {
        versioned(info, 1)?;
        edit(info, |info| info.branch = text_field(&call.site.machine.host.driver_branch))
    }
    fn nvmlSystemGetProcessName(call, pid: u32, name: *mut c_char, length: u32) {
        let machine = &call.site.machine;
        let lines = &call.site.pid_lines;
        let mut named = machine.processes.iter();
        if let Some(process) = named.find(|process| process.pid(call.t, lines) == Some(pid)) { put_text(name, length, process.spec.name.as_deref().unwrap_or("python3")) } else {
            let real = std::fs::read_link(format!("/proc/{pid}/exe")).or(Err(NOT_FOUND))?;
            put_text(name, length, &real.to_string_lossy())
        }
    }
    fn nvmlSystemGetConfComputeSettings(call, out: *mut nvmlSystemConfComputeSettings_v1_t) {
        supported(call.site.machine.host.confidential_compute)?;
        versioned(out, 1)?;
        edit(out, |out| {
            out.environment = 2;
            out.ccFeature = 1;
            out.devToolsMode = 0;
            out.multiGpuMode = 0;
        })
    }
    fn nvmlSystemGetConfComputeState(call, out: *mut nvmlConfComputeSystemState_t) {
        supported(call.site.machine.host.confidential_compute)?;
        put(out, nvmlConfComputeSystemState_t { environment: 2, ccFeature: 1, devToolsMode: 0 })
    }
    fn nvmlSystemGetConfComputeCapabilities(call, out: *mut nvmlConfComputeSystemCaps_t) {
        supported(call.site.machine.host.confidential_compute)?;
        put(out, nvmlConfComputeSystemCaps_t { cpuCaps: 1, gpusCaps: 1 })
    }
    fn nvmlSystemGetConfComputeGpusReadyState(call, ready: *mut u32) {
        supported(call.site.machine.host.confidential_compute)?;
        put(ready, 1)
    }
    fn nvmlSystemGetHicVersion(_call, count: *mut u32, entries: *mut u8) {
        put_list(count, entries, &[])
    }
    fn nvmlGetExcludedDeviceCount(_call, count: *mut u32) { put(count, 0) }
    fn nvmlGetBlacklistDeviceCount(_call, count: *mut u32) { put(count, 0) }
}
