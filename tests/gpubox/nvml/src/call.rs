//! The frame around every exported function, and the checked ways to reach through a caller's
//! pointer. A body only says what the answer is.

use std::ffi::{CStr, c_char};
use std::mem::size_of;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use gpubox::{Now, Site, Symbol, Verdict};
use nvml_wrapper_sys::bindings::nvmlDevice_t;

use crate::codes::{
    Answer, Code, GPU_IS_LOST, INSUFFICIENT_SIZE, INVALID_ARGUMENT, NOT_SUPPORTED, UNINITIALIZED,
    UNKNOWN, VERSION_MISMATCH,
};
use crate::session;

/// A question to the box.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) site: &'static Site,
    pub(crate) t: f64,
    /// The value a fault wants in place of the true one.
    pub(crate) lie: Option<f64>,
}

/// A question about a GPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    now: Now,
    pub(crate) lie: Option<f64>,
    /// By how many rows a list tells too small a length: those that "come" before the next call.
    pub(crate) understated: u32,
}

impl Deref for Ask {
    type Target = Now;

    fn deref(&self) -> &Now {
        &self.now
    }
}

impl Ask {
    /// Answers with a value.
    pub(crate) fn put<T: Falsify>(&self, out: *mut T, value: T) -> Answer {
        put(out, self.lie.map_or(value, |lie| value.falsify(lie)))
    }

    /// Answers with a value the product has, `NOT_SUPPORTED` when it has not.
    pub(crate) fn put_if<T: Falsify>(&self, has: bool, out: *mut T, value: T) -> Answer {
        supported(has)?;
        self.put(out, value)
    }
}

/// What a lying driver can make of a value.
pub(crate) trait Falsify: Copy {
    fn falsify(self, lie: f64) -> Self;
}

macro_rules! falsify_numbers {
    ($($number:ty),*) => {$(
        impl Falsify for $number {
            fn falsify(self, lie: f64) -> Self {
                lie as $number
            }
        }
    )*};
}
falsify_numbers!(u32, i32, u64, i64, f64);

/// `NOT_SUPPORTED` unless the product has it.
pub(crate) fn supported(has: bool) -> Answer {
    if has { Ok(()) } else { Err(NOT_SUPPORTED) }
}

/// Writes through a caller's pointer; NULL is an invalid argument.
pub(crate) fn put<T>(out: *mut T, value: T) -> Answer {
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: NVML's contract: a non-NULL out parameter points to room for its type. Unaligned,
    // because callers through ctypes are known to pack.
    unsafe { out.write_unaligned(value) };
    Ok(())
}

/// Reads through a caller's pointer.
pub(crate) fn get<T: Copy>(from: *const T) -> Answer<T> {
    if from.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: as in `put`.
    Ok(unsafe { from.read_unaligned() })
}

/// Reads, changes and writes a caller's struct as a whole.
pub(crate) fn edit<T: Copy>(at: *mut T, change: impl FnOnce(&mut T)) -> Answer {
    let mut value = get(at)?;
    change(&mut value);
    put(at, value)
}

/// The element of a caller's array.
pub(crate) fn element<T>(array: *mut T, position: usize) -> *mut T {
    array.wrapping_add(position)
}

/// Checks the version word a struct starts with against its size and version number.
pub(crate) fn versioned<T>(at: *mut T, version: u32) -> Answer {
    match get(at.cast::<u32>())? {
        word if word == size_of::<T>() as u32 | version << 24 => Ok(()),
        _ => Err(VERSION_MISMATCH),
    }
}

/// Copies a text into a caller's buffer, with its NUL.
pub(crate) fn put_text(out: *mut c_char, length: u32, text: &str) -> Answer {
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    if (length as usize) <= text.len() {
        return Err(INSUFFICIENT_SIZE);
    }
    // SAFETY: the caller says that `length` bytes are there, and the text with its NUL is no
    // longer than that.
    unsafe {
        out.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
        out.add(text.len()).write(0);
    }
    Ok(())
}

/// A text a caller passes.
pub(crate) fn get_text(from: *const c_char) -> Answer<String> {
    if from.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: NVML's contract: a C string.
    let text = unsafe { CStr::from_ptr(from) };
    Ok(text.to_string_lossy().into_owned())
}

/// The list protocol: the count says how much room there is and comes back as how much there
/// is; too little room answers `INSUFFICIENT_SIZE` and copies nothing.
pub(crate) fn put_list<T: Copy>(count: *mut u32, out: *mut T, items: &[T]) -> Answer {
    let room = get(count)?;
    put(count, items.len() as u32)?;
    if items.is_empty() {
        return Ok(());
    }
    if (room as usize) < items.len() {
        return Err(INSUFFICIENT_SIZE);
    }
    for (position, item) in items.iter().enumerate() {
        if out.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        put(element(out, position), *item)?;
    }
    Ok(())
}

/// A fixed text field of a struct.
pub(crate) fn text_field<const N: usize>(text: &str) -> [c_char; N] {
    let mut field = [0; N];
    for (to, from) in field.iter_mut().take(N - 1).zip(text.bytes()) {
        *to = from.cast_signed() as c_char;
    }
    field
}

/// Runs a body so that no panic reaches the caller, who may be C or Python.
fn guarded(body: impl FnOnce() -> Answer) -> u32 {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(Code(code))) => code,
        Err(_) => UNKNOWN.0,
    }
}

fn framed(
    symbol: &'static Symbol,
    gpu: Option<usize>,
    body: impl FnOnce(&'static Site, Verdict) -> Answer,
) -> u32 {
    let Some(site) = gpubox::site() else {
        return UNKNOWN.0;
    };
    let begun = site.is_traced().then(Instant::now);
    let code = match symbol.enter(site, gpu) {
        Verdict::Fail(code) => code,
        verdict => guarded(|| body(site, verdict)),
    };
    symbol.leave(site, gpu, begun, code);
    code
}

/// A call that works without initialisation.
pub(crate) fn library_call(symbol: &'static Symbol, body: impl FnOnce(&Call) -> Answer) -> u32 {
    framed(symbol, None, |site, verdict| {
        body(&Call { site, t: site.seconds(), lie: verdict.lie() })
    })
}

/// A call that needs an initialised library.
pub(crate) fn system_call(symbol: &'static Symbol, body: impl FnOnce(&Call) -> Answer) -> u32 {
    lookup_call(symbol, |_| None, body)
}

/// A handle lookup: a call about the GPU it looks for, since the driver opens that GPU. A sick one
/// hangs the lookup too.
pub(crate) fn lookup_call(
    symbol: &'static Symbol,
    find: impl FnOnce(&'static Site) -> Option<usize>,
    body: impl FnOnce(&Call) -> Answer,
) -> u32 {
    let gpu = gpubox::site().and_then(find);
    framed(symbol, gpu, |site, verdict| {
        let t = site.seconds();
        session::check(site, t)?;
        body(&Call { site, t, lie: verdict.lie() })
    })
}

/// What a handle stands for. Handles are numbers, not addresses: mark, generation, GPU, slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handle {
    generation: u16,
    gpu: usize,
    mig: Option<usize>,
}

const MARK: u64 = 0x6e76;

impl Handle {
    pub(crate) fn make(gpu: usize, mig: Option<usize>) -> nvmlDevice_t {
        let slot = mig.map_or(0, |slot| slot + 1) as u64;
        let word = MARK << 48 | u64::from(session::generation()) << 32 | (gpu as u64) << 16 | slot;
        std::ptr::without_provenance_mut(word as usize)
    }

    fn read(device: nvmlDevice_t) -> Option<Self> {
        let word = device.addr() as u64;
        (word >> 48 == MARK).then_some(Self {
            generation: (word >> 32) as u16,
            gpu: (word >> 16 & 0xFFFF) as usize,
            mig: ((word & 0xFFFF) as usize).checked_sub(1),
        })
    }
}

/// The GPU behind a handle, unless it is stale, unknown or lost.
pub(crate) fn find(site: &'static Site, device: nvmlDevice_t, t: f64) -> Answer<Now> {
    session::check(site, t)?;
    let handle = Handle::read(device).ok_or(INVALID_ARGUMENT)?;
    if handle.generation != session::generation() {
        return Err(UNINITIALIZED);
    }
    let gpu = site.machine.gpus.get(handle.gpu).ok_or(INVALID_ARGUMENT)?;
    if handle.mig.is_some_and(|slot| slot >= gpu.spec.mig.len()) {
        return Err(INVALID_ARGUMENT);
    }
    if gpu.spec.lost_at.is_some_and(|lost| t >= lost) {
        return Err(GPU_IS_LOST);
    }
    Ok(Now { site, gpu, mig: handle.mig, t })
}

/// A call about a device. `instances` says whether a MIG handle will do.
pub(crate) fn device_call(
    symbol: &'static Symbol,
    device: nvmlDevice_t,
    instances: bool,
    body: impl FnOnce(&Ask) -> Answer,
) -> u32 {
    let gpu = Handle::read(device).map(|handle| handle.gpu);
    framed(symbol, gpu, |site, verdict| {
        let now = find(site, device, site.seconds())?;
        supported(instances || now.mig.is_none())?;
        body(&Ask { now, lie: verdict.lie(), understated: verdict.understated() })
    })
}

/// Exports functions that need no initialisation: `fn name(call, arg: type, …) { answer }`.
macro_rules! library_calls {
    ($(fn $name:ident($call:ident $(, $arg:ident: $kind:ty)* $(,)?) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: $kind),*) -> u32 {
            static SYMBOL: gpubox::Symbol = gpubox::Symbol::new(stringify!($name));
            $crate::call::library_call(&SYMBOL, |$call| $body)
        }
    )*};
}

/// Exports functions about the box.
macro_rules! system_calls {
    ($(fn $name:ident($call:ident $(, $arg:ident: $kind:ty)* $(,)?) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: $kind),*) -> u32 {
            static SYMBOL: gpubox::Symbol = gpubox::Symbol::new(stringify!($name));
            $crate::call::system_call(&SYMBOL, |$call| $body)
        }
    )*};
}

/// Exports handle lookups: `fn name(call, arg: type, …) about (find) { answer }`.
macro_rules! lookup_calls {
    ($(fn $name:ident($call:ident $(, $arg:ident: $kind:ty)* $(,)?) about ($find:expr) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: $kind),*) -> u32 {
            static SYMBOL: gpubox::Symbol = gpubox::Symbol::new(stringify!($name));
            $crate::call::lookup_call(&SYMBOL, $find, |$call| $body)
        }
    )*};
}

/// Exports functions about a GPU; a MIG handle answers `NOT_SUPPORTED`.
macro_rules! device_calls {
    ($(fn $name:ident($ask:ident $(, $arg:ident: $kind:ty)* $(,)?) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            device: nvml_wrapper_sys::bindings::nvmlDevice_t $(, $arg: $kind)*
        ) -> u32 {
            static SYMBOL: gpubox::Symbol = gpubox::Symbol::new(stringify!($name));
            $crate::call::device_call(&SYMBOL, device, false, |$ask| $body)
        }
    )*};
}

/// Exports functions that answer for a GPU and for a MIG instance.
macro_rules! instance_calls {
    ($(fn $name:ident($ask:ident $(, $arg:ident: $kind:ty)* $(,)?) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            device: nvml_wrapper_sys::bindings::nvmlDevice_t $(, $arg: $kind)*
        ) -> u32 {
            static SYMBOL: gpubox::Symbol = gpubox::Symbol::new(stringify!($name));
            $crate::call::device_call(&SYMBOL, device, true, |$ask| $body)
        }
    )*};
}
