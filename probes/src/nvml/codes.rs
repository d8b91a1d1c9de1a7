//! NVML's return codes: what each means for a reading, and which ones end a session.
//!
//! The wrapper's error type knows codes 0 to 22 and 999 only, so the number is what is kept.

use nvml_wrapper::error::NvmlError;

use crate::reading::Absence;

/// The library was never or is no longer initialised.
pub const UNINITIALIZED: u32 = 1;
/// Neither this device nor this mode has it.
pub const NOT_SUPPORTED: u32 = 3;
/// The caller lacks a right.
pub const NO_PERMISSION: u32 = 4;
/// Nothing there; an empty list to most calls.
pub const NOT_FOUND: u32 = 6;
/// A buffer was too small.
pub const INSUFFICIENT_SIZE: u32 = 7;
/// No kernel module answers.
pub const DRIVER_NOT_LOADED: u32 = 9;
/// A wait ran out; normal for events.
pub const TIMEOUT: u32 = 10;
/// The library lacks the call.
pub const FUNCTION_NOT_FOUND: u32 = 13;
/// The GPU fell off the bus.
pub const GPU_IS_LOST: u32 = 15;
/// The GPU waits for a reset.
pub const RESET_REQUIRED: u32 = 16;
/// Module and library are of different releases.
pub const VERSION_MISMATCH: u32 = 18;
/// Nothing was measured.
pub const NO_DATA: u32 = 21;
/// The library does not know this version of a struct.
pub const STRUCT_VERSION: u32 = 25;
/// The call exists and does nothing any more.
pub const DEPRECATED: u32 = 26;
/// The device is still starting.
pub const NOT_READY: u32 = 27;
/// The handle is of a GPU that was removed.
pub const GPU_NOT_FOUND: u32 = 28;
/// A revoked device, a dead GPU, or anything else.
pub const UNKNOWN: u32 = 999;

/// The code in words, with its number.
pub fn words(code: u32) -> String {
    let text = match code {
        UNINITIALIZED => "not initialised",
        2 => "argument refused",
        NOT_SUPPORTED => "not supported",
        NO_PERMISSION => "no permission",
        NOT_FOUND => "not found",
        INSUFFICIENT_SIZE => "buffer too small",
        8 => "external power missing",
        DRIVER_NOT_LOADED => "driver not loaded",
        TIMEOUT => "time ran out",
        11 => "interrupt trouble",
        12 => "a library of the driver is missing",
        FUNCTION_NOT_FOUND => "call not in this library",
        14 => "inforom corrupted",
        GPU_IS_LOST => "GPU is lost",
        RESET_REQUIRED => "GPU requires a reset",
        17 => "blocked by the operating system",
        VERSION_MISMATCH => "driver and library versions differ",
        19 => "in use",
        20 => "out of memory",
        NO_DATA => "no data",
        STRUCT_VERSION => "struct version unknown to the driver",
        DEPRECATED => "deprecated",
        NOT_READY => "not ready",
        GPU_NOT_FOUND => "GPU not found",
        29 => "state does not allow it",
        UNKNOWN => "unknown error",
        _ => "a code without a name",
    };
    format!("{text} (NVML {code})")
}

/// Why a reading is missing after this code.
pub fn absence(code: u32) -> Absence {
    match code {
        NOT_SUPPORTED | DEPRECATED => Absence::Unsupported,
        FUNCTION_NOT_FOUND | STRUCT_VERSION => Absence::TooOld,
        NO_PERMISSION => Absence::Denied { need: "root".into() },
        NOT_FOUND | NO_DATA => Absence::NoData,
        GPU_IS_LOST | GPU_NOT_FOUND => Absence::Lost,
        UNINITIALIZED | DRIVER_NOT_LOADED | VERSION_MISMATCH => Absence::NoDriver,
        TIMEOUT => Absence::NoAnswer,
        _ => Absence::Failed { what: words(code) },
    }
}

/// Whether the code speaks of the whole driver and not of one GPU or reading.
pub fn ends_session(code: u32) -> bool {
    matches!(code, UNINITIALIZED | DRIVER_NOT_LOADED | VERSION_MISMATCH)
}

/// Whether the code says that the GPU is gone.
pub fn is_lost(code: u32) -> bool {
    matches!(code, GPU_IS_LOST | GPU_NOT_FOUND)
}

/// The number behind the wrapper's error; `None` where the library itself could not be used.
pub fn number(error: &NvmlError) -> Option<u32> {
    Some(match error {
        NvmlError::Uninitialized => UNINITIALIZED,
        NvmlError::InvalidArg => 2,
        NvmlError::NotSupported => NOT_SUPPORTED,
        NvmlError::NoPermission => NO_PERMISSION,
        NvmlError::NotFound => NOT_FOUND,
        NvmlError::InsufficientSize(_) => INSUFFICIENT_SIZE,
        NvmlError::InsufficientPower => 8,
        NvmlError::DriverNotLoaded => DRIVER_NOT_LOADED,
        NvmlError::Timeout => TIMEOUT,
        NvmlError::IrqIssue => 11,
        NvmlError::LibraryNotFound => 12,
        NvmlError::FunctionNotFound => FUNCTION_NOT_FOUND,
        NvmlError::CorruptedInfoROM => 14,
        NvmlError::GpuLost => GPU_IS_LOST,
        NvmlError::ResetRequired => RESET_REQUIRED,
        NvmlError::OperatingSystem => 17,
        NvmlError::LibRmVersionMismatch => VERSION_MISMATCH,
        NvmlError::InUse => 19,
        NvmlError::InsufficientMemory => 20,
        NvmlError::NoData => NO_DATA,
        NvmlError::VgpuEccNotSupported => 22,
        NvmlError::UnexpectedVariant(code) => *code,
        NvmlError::Unknown => UNKNOWN,
        _ => return None,
    })
}
