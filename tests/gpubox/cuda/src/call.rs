//! The frame around every exported function, and the checked ways through a caller's pointers.

use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use gpubox::{Site, Symbol, Verdict};

use crate::results::{Answer, Failure, INVALID_VALUE, UNKNOWN};

/// Writes through a caller's pointer; NULL is an invalid value.
pub(crate) fn put<T>(out: *mut T, value: T) -> Answer {
    if out.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: CUDA's contract: a non-NULL out parameter points to room for its type.
    unsafe { out.write_unaligned(value) };
    Ok(())
}

/// Writes through a pointer that may be NULL.
pub(crate) fn put_optional<T>(out: *mut T, value: T) -> Answer {
    if out.is_null() { Ok(()) } else { put(out, value) }
}

/// Copies a text with its NUL, cut to the buffer.
pub(crate) fn put_text(out: *mut c_char, length: i32, text: &str) -> Answer {
    let room = usize::try_from(length).unwrap_or(0);
    if out.is_null() || room == 0 {
        return Err(INVALID_VALUE);
    }
    let text = &text.as_bytes()[..text.len().min(room - 1)];
    // SAFETY: the caller says that `length` bytes are there; text and NUL are no longer.
    unsafe {
        out.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
        out.add(text.len()).write(0);
    }
    Ok(())
}

/// A text a caller passes.
pub(crate) fn get_text(from: *const c_char) -> Answer<String> {
    if from.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: CUDA's contract: a C string.
    Ok(unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned())
}

/// Runs a body: counted, delayed or failed as the scenario says, and without a panic reaching the
/// caller. `gpu` is the GPU of the current context.
pub(crate) fn framed(
    symbol: &'static Symbol,
    gpu: Option<usize>,
    body: impl FnOnce(&'static Site) -> Answer,
) -> u32 {
    let Some(site) = gpubox::site() else {
        return UNKNOWN.0;
    };
    let begun = site.is_traced().then(Instant::now);
    let code = match symbol.enter(site, gpu) {
        Verdict::Fail(code) => code,
        _ => match catch_unwind(AssertUnwindSafe(|| body(site))) {
            Ok(Ok(())) => 0,
            Ok(Err(Failure(code))) => code,
            Err(_) => UNKNOWN.0,
        },
    };
    symbol.leave(site, gpu, begun, code);
    code
}

/// Exports functions: `fn name(site, arg: type, …) { answer }`.
macro_rules! exports {
    ($(fn $name:ident($site:ident $(, $arg:ident: $kind:ty)* $(,)?) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: $kind),*) -> u32 {
            static SYMBOL: gpubox::Symbol = gpubox::Symbol::new(stringify!($name));
            $crate::call::framed(&SYMBOL, $crate::contexts::current_gpu(), |$site| $body)
        }
    )*};
}
