//! CUDA's result codes, their names and words.

use std::ffi::{CStr, c_char};

use crate::call::put;

/// A result other than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) u32);

/// What a function body answers.
pub(crate) type Answer<T = ()> = Result<T, Failure>;

pub(crate) const INVALID_VALUE: Failure = Failure(1);
pub(crate) const OUT_OF_MEMORY: Failure = Failure(2);
pub(crate) const NOT_INITIALIZED: Failure = Failure(3);
pub(crate) const DEVICE_UNAVAILABLE: Failure = Failure(46);
pub(crate) const NO_DEVICE: Failure = Failure(100);
pub(crate) const INVALID_DEVICE: Failure = Failure(101);
pub(crate) const INVALID_IMAGE: Failure = Failure(200);
pub(crate) const INVALID_CONTEXT: Failure = Failure(201);
pub(crate) const INVALID_HANDLE: Failure = Failure(400);
pub(crate) const NOT_FOUND: Failure = Failure(500);
pub(crate) const ILLEGAL_ADDRESS: Failure = Failure(700);
pub(crate) const NOT_SUPPORTED: Failure = Failure(801);
pub(crate) const SYSTEM_DRIVER_MISMATCH: Failure = Failure(803);
pub(crate) const UNKNOWN: Failure = Failure(999);

const KNOWN: &[(u32, &CStr, &CStr)] = &[
    (0, c"CUDA_SUCCESS", c"no error"),
    (1, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
    (2, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
    (3, c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error"),
    (4, c"CUDA_ERROR_DEINITIALIZED", c"driver shutting down"),
    (46, c"CUDA_ERROR_DEVICE_UNAVAILABLE", c"CUDA-capable device(s) is/are busy or unavailable"),
    (100, c"CUDA_ERROR_NO_DEVICE", c"no CUDA-capable device is detected"),
    (101, c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal"),
    (200, c"CUDA_ERROR_INVALID_IMAGE", c"device kernel image is invalid"),
    (201, c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context"),
    (214, c"CUDA_ERROR_ECC_UNCORRECTABLE", c"uncorrectable ECC error encountered"),
    (218, c"CUDA_ERROR_INVALID_PTX", c"a PTX JIT compilation failed"),
    (
        222,
        c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        c"the provided PTX was compiled with an unsupported toolchain.",
    ),
    (304, c"CUDA_ERROR_OPERATING_SYSTEM", c"OS call failed or operation not supported on this OS"),
    (400, c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle"),
    (500, c"CUDA_ERROR_NOT_FOUND", c"named symbol not found"),
    (600, c"CUDA_ERROR_NOT_READY", c"device not ready"),
    (700, c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an illegal memory access was encountered"),
    (719, c"CUDA_ERROR_LAUNCH_FAILED", c"unspecified launch failure"),
    (800, c"CUDA_ERROR_NOT_PERMITTED", c"operation not permitted"),
    (801, c"CUDA_ERROR_NOT_SUPPORTED", c"operation not supported"),
    (802, c"CUDA_ERROR_SYSTEM_NOT_READY", c"system not yet initialized"),
    (
        803,
        c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        c"system has unsupported display driver / cuda driver combination",
    ),
    (
        804,
        c"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        c"forward compatibility was attempted on non supported HW",
    ),
    (999, c"CUDA_ERROR_UNKNOWN", c"unknown error"),
];

fn look_up(
    code: u32,
    out: *mut *const c_char,
    pick: fn(&(u32, &'static CStr, &'static CStr)) -> &'static CStr,
) -> u32 {
    let found = KNOWN.iter().find(|(known, _, _)| *known == code);
    let text = found.map_or(std::ptr::null(), |row| pick(row).as_ptr());
    match put(out, text) {
        Ok(()) if found.is_some() => 0,
        _ => INVALID_VALUE.0,
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorName(code: u32, name: *mut *const c_char) -> u32 {
    look_up(code, name, |row| row.1)
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorString(code: u32, text: *mut *const c_char) -> u32 {
    look_up(code, text, |row| row.2)
}
