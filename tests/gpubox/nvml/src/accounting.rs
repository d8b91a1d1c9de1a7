//! Process accounting: off, as it is unless root switched it on.

use nvml_wrapper_sys::bindings::nvmlAccountingStats_t;

use crate::call::{put, put_list};
use crate::codes::{NO_PERMISSION, NOT_FOUND};

device_calls! {
    fn nvmlDeviceGetAccountingMode(ask, mode: *mut u32) { ask.put(mode, 0) }
    fn nvmlDeviceGetAccountingPids(_ask, count: *mut u32, pids: *mut u32) {
        put_list(count, pids, &[])
    }
    fn nvmlDeviceGetAccountingBufferSize(_ask, size: *mut u32) { put(size, 4000) }
    fn nvmlDeviceGetAccountingStats(_ask, _pid: u32, _stats: *mut nvmlAccountingStats_t) {
        Err(NOT_FOUND)
    }
    fn nvmlDeviceSetAccountingMode(_ask, _mode: u32) { Err(NO_PERMISSION) }
    fn nvmlDeviceClearAccountingPids(_ask) { Err(NO_PERMISSION) }
}
