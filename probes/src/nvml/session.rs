//! A session with the driver's library, and the door through which every call goes.
//!
//! The library is loaded by nvml-wrapper, which keeps each symbol as a `Result`: its convenience
//! methods panic on a missing one, so calls take the field.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper_sys::bindings as sys;

use super::calls::Calls;
use super::codes;
use crate::machine::Machine;
use crate::reading::{Absence, Reading};
use crate::snapshot::Stamp;

/// Calls a function of the library on behalf of a [`Device`] or [`Session`] and answers with
/// `Result<(), Absence>`. A call that was answered "not supported" is not made again in this session.
/// `caller[n]` tells calls apart that differ by an argument only.
macro_rules! call {
    ($caller:ident, $name:ident($($arg:expr),* $(,)?)) => {
        call!($caller[0], $name($($arg),*))
    };
    ($caller:ident[$variant:expr], $name:ident($($arg:expr),* $(,)?)) => {
        $caller.answer(
            concat!(stringify!($name), "(", stringify!($($arg),*), ")"),
            $variant,
            || match $caller.library().$name.as_ref() {
                Ok(function) => Some($caller.calls().run(stringify!($name), || {
                    // SAFETY: the signature was generated from NVIDIA's header; every out pointer
                    // is to a live value of the type it asks for that nothing else looks at, every
                    // length beside a pointer is that buffer's own, and handles are those the
                    // library gave.
                    unsafe { function($($arg),*) }
                })),
                Err(_) => None,
            },
        )
    };
}
pub(crate) use call;

/// Structs of the library that may start as all zeroes.
///
/// # Safety
/// Every field must be valid as zeroes: integers, floats, arrays of those, nullable pointers.
pub(crate) unsafe trait Zeroed: Sized {
    /// The struct with every bit 0.
    fn zeroed() -> Self {
        // SAFETY: promised by whoever implements the trait.
        unsafe { std::mem::zeroed() }
    }
}

macro_rules! zeroed {
    ($($name:ident),* $(,)?) => {$(
        // SAFETY: plain C structs of integers, floats and nullable pointers.
        unsafe impl Zeroed for sys::$name {}
    )*};
}
zeroed!(
    nvmlBAR1Memory_t,
    nvmlConfComputeSystemState_t,
    nvmlDeviceAddressingMode_t,
    nvmlDeviceAttributes_t,
    nvmlEccSramErrorStatus_t,
    nvmlEventData_t,
    nvmlFieldValue_t,
    nvmlGpmMetricsGet_t,
    nvmlGpmSupport_t,
    nvmlGpuFabricInfo_v2_t,
    nvmlGpuFabricInfoV_t,
    nvmlMarginTemperature_t,
    nvmlMemory_t,
    nvmlMemory_v2_t,
    nvmlPciInfo_t,
    nvmlProcessInfo_t,
    nvmlProcessUtilizationInfo_v1_t,
    nvmlProcessUtilizationSample_t,
    nvmlProcessesUtilizationInfo_t,
    nvmlRepairStatus_t,
    nvmlRowRemapperHistogramValues_t,
    nvmlSystemDriverBranchInfo_t,
    nvmlTemperature_t,
    nvmlUtilization_t,
);

/// The version word of a versioned struct: its size and the version's number.
#[expect(clippy::cast_possible_truncation, reason = "no struct of the library is near 16 MiB")]
pub(crate) fn version_word<T>(version: u32) -> u32 {
    size_of::<T>() as u32 | version << 24
}

/// A C string that the library wrote into a buffer.
pub(crate) fn text(buffer: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> =
        buffer.iter().map(|c| c.cast_unsigned()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The library could not be opened or initialised.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{answer}")]
pub struct OpenError {
    /// NVML's number; 0 where no library could be loaded.
    pub code: u32,
    /// The answer in words.
    pub answer: String,
}

/// The initialised library. Dropping the last reference shuts it down.
pub struct Session {
    nvml: Nvml,
    /// Where the library was found.
    pub path: PathBuf,
    calls: Arc<Calls>,
    answers: std::sync::Mutex<HashMap<(&'static str, u32), Absence>>,
}

impl Session {
    /// Loads and initialises the first of the candidate libraries that can be loaded.
    pub fn open(candidates: &[PathBuf], calls: &Arc<Calls>) -> Result<Self, OpenError> {
        let mut first_error = None;
        for path in candidates {
            if let Some(answer) = crate::driver::cut_off(path) {
                first_error.get_or_insert(OpenError { code: 0, answer });
                continue;
            }
            calls.adopt_thread();
            match calls.run("nvmlInit_v2", || Nvml::builder().lib_path(path.as_os_str()).init()) {
                Ok(nvml) => {
                    // Dropping a session without the symbol would panic.
                    if nvml.lib().nvmlShutdown.is_err() {
                        std::mem::forget(nvml);
                        let answer = format!("{} lacks nvmlShutdown", path.display());
                        return Err(OpenError { code: 0, answer });
                    }
                    return Ok(Self {
                        nvml,
                        path: path.clone(),
                        calls: Arc::clone(calls),
                        answers: std::sync::Mutex::default(),
                    });
                }
                Err(NvmlError::LibloadingError(error)) => {
                    let answer = format!("cannot load {}: {error}", path.display());
                    first_error.get_or_insert(OpenError { code: 0, answer });
                }
                Err(error) => {
                    let code = codes::number(&error);
                    let answer = code.map_or_else(|| chain(&error), codes::words);
                    return Err(OpenError { code: code.unwrap_or(0), answer });
                }
            }
        }
        Err(first_error
            .unwrap_or_else(|| OpenError { code: 0, answer: "no libnvidia-ml.so.1".into() }))
    }

    pub(crate) fn library(&self) -> &sys::NvmlLib {
        self.nvml.lib()
    }

    pub(crate) fn calls(&self) -> &Calls {
        &self.calls
    }

    pub(crate) fn answer(
        &self,
        name: &'static str,
        variant: u32,
        call: impl FnOnce() -> Option<u32>,
    ) -> Result<(), Absence> {
        let answers = || self.answers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(absence) = answers().get(&(name, variant)) {
            return Err(absence.clone());
        }
        // The call may block: the lock is not held over it.
        let code = call();
        remember(&mut answers(), name, variant, code)
    }

    /// Version of the driver as the library reports it.
    pub fn driver_version(&self) -> Reading<String> {
        let mut buffer = [0; 80];
        call!(self, nvmlSystemGetDriverVersion(buffer.as_mut_ptr(), 80))
            .map(|()| text(&buffer))
            .into()
    }

    /// Version of the library, `<api>.<driver>`.
    pub fn nvml_version(&self) -> Reading<String> {
        let mut buffer = [0; 80];
        call!(self, nvmlSystemGetNVMLVersion(buffer.as_mut_ptr(), 80))
            .map(|()| text(&buffer))
            .into()
    }

    /// Newest CUDA that the driver runs, `13.1`. The library loads libcuda to find out.
    pub fn cuda_version(&self) -> Reading<String> {
        let mut version = 0;
        call!(self, nvmlSystemGetCudaDriverVersion_v2(&raw mut version))
            .map(|()| format!("{}.{}", version / 1000, version % 1000 / 10))
            .into()
    }

    /// Release branch, `r590_00`.
    pub fn branch(&self) -> Reading<String> {
        let mut info = sys::nvmlSystemDriverBranchInfo_t::zeroed();
        info.version = version_word::<sys::nvmlSystemDriverBranchInfo_t>(1);
        call!(self, nvmlSystemGetDriverBranch(&raw mut info, 80))
            .map(|()| text(&info.branch))
            .into()
    }

    /// GPUs that the library counts, those that may not be opened included.
    pub fn gpu_count(&self) -> Result<u32, Absence> {
        let mut count = 0;
        call!(self, nvmlDeviceGetCount_v2(&raw mut count)).map(|()| count)
    }
}

fn remember(
    answers: &mut HashMap<(&'static str, u32), Absence>,
    name: &'static str,
    variant: u32,
    code: Option<u32>,
) -> Result<(), Absence> {
    let absence = match code {
        Some(0) => return Ok(()),
        Some(code) => codes::absence(code),
        None => Absence::TooOld,
    };
    if matches!(absence, Absence::Unsupported | Absence::TooOld) {
        answers.insert((name, variant), absence.clone());
    }
    Err(absence)
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// One GPU or MIG instance of a session, for the thread that reads it.
pub struct Device<'s> {
    session: &'s Session,
    calls: &'s Calls,
    machine: &'s Machine,
    handle: sys::nvmlDevice_t,
    answers: RefCell<HashMap<(&'static str, u32), Absence>>,
    fault: Cell<Option<u32>>,
    last: Cell<Option<u32>>,
}

impl<'s> Device<'s> {
    /// The GPU with this number in the session. Taking it initialises the GPU: seconds without
    /// persistence, for ever on a sick one.
    pub fn open(
        session: &'s Session,
        machine: &'s Machine,
        calls: &'s Calls,
        index: u32,
    ) -> Result<Self, u32> {
        let mut handle = std::ptr::null_mut();
        let code = match session.library().nvmlDeviceGetHandleByIndex_v2.as_ref() {
            Ok(function) => calls.run("nvmlDeviceGetHandleByIndex_v2", || {
                // SAFETY: the out pointer is an exclusive borrow of a handle.
                unsafe { function(index, &raw mut handle) }
            }),
            Err(_) => codes::FUNCTION_NOT_FOUND,
        };
        if code == 0 { Ok(Self::new(session, machine, calls, handle)) } else { Err(code) }
    }

    fn new(
        session: &'s Session,
        machine: &'s Machine,
        calls: &'s Calls,
        handle: sys::nvmlDevice_t,
    ) -> Self {
        Self {
            session,
            calls,
            machine,
            handle,
            answers: RefCell::default(),
            fault: Cell::default(),
            last: Cell::default(),
        }
    }

    /// A device behind another handle, such as a MIG instance, read by the same thread.
    pub(crate) fn sibling(&self, handle: sys::nvmlDevice_t) -> Self {
        Self::new(self.session, self.machine, self.calls, handle)
    }

    /// The handle as a number, to be given to another thread of this session.
    pub fn handle_number(&self) -> usize {
        self.handle as usize
    }

    /// The device behind a handle that another thread of this session holds.
    pub fn adopt(
        session: &'s Session,
        machine: &'s Machine,
        calls: &'s Calls,
        number: usize,
    ) -> Self {
        Self::new(session, machine, calls, number as sys::nvmlDevice_t)
    }

    pub(crate) fn handle(&self) -> sys::nvmlDevice_t {
        self.handle
    }

    pub(crate) fn library(&self) -> &sys::NvmlLib {
        self.session.library()
    }

    pub(crate) fn calls(&self) -> &Calls {
        self.calls
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.machine.now_ms()
    }

    /// A stamp for a group whose reading began at `start`.
    pub(crate) fn stamp(&self, start: Instant) -> Stamp {
        Stamp {
            at_ms: self.machine.now_ms(),
            took_us: u32::try_from(start.elapsed().as_micros()).unwrap_or(u32::MAX),
        }
    }

    pub(crate) fn answer(
        &self,
        name: &'static str,
        variant: u32,
        call: impl FnOnce() -> Option<u32>,
    ) -> Result<(), Absence> {
        self.last.set(None);
        if let Some(absence) = self.answers.borrow().get(&(name, variant)) {
            return Err(absence.clone());
        }
        let code = call();
        self.last.set(code);
        if let Some(code) = code
            && (codes::ends_session(code)
                || codes::is_lost(code)
                || matches!(code, codes::RESET_REQUIRED | codes::UNKNOWN))
        {
            self.fault.set(Some(code));
        }
        remember(&mut self.answers.borrow_mut(), name, variant, code)
    }

    /// What the driver answered to the last call; `None` where it was not asked.
    pub(crate) fn last_code(&self) -> Option<u32> {
        self.last.get()
    }

    /// The last code that spoke of the whole GPU or driver since this was asked.
    pub fn take_fault(&self) -> Option<u32> {
        self.fault.take()
    }

    /// Forgets what was not supported: modes may have changed.
    pub fn ask_all_again(&self) {
        self.answers.borrow_mut().clear();
    }

    /// A value inside its physical range, or dropped and counted.
    pub(crate) fn in_range<T: PartialOrd>(
        &self,
        value: T,
        range: std::ops::RangeInclusive<T>,
    ) -> Reading<T> {
        if range.contains(&value) {
            Reading::Value(value)
        } else {
            self.calls.drop_value();
            Reading::Absent(Absence::OutOfRange)
        }
    }

    /// Per cent as the library gives them, as a ratio.
    pub(crate) fn ratio(&self, percent: u32) -> Reading<f64> {
        self.in_range(percent, 0..=100).map(|percent| f64::from(percent) / 100.0)
    }

    /// Whether the library exports a symbol by this name.
    pub(crate) fn exports(&self, name: &str) -> bool {
        let library = &self.library().__library;
        // SAFETY: the symbol is looked up and never called.
        unsafe { library.get::<*const ()>(name.as_bytes()) }.is_ok()
    }
}
