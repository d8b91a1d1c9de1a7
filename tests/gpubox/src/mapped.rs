//! A small file mapped shared, seen as atomic words. The only place of this crate with unsafe
//! code: everything above speaks of offsets.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A mapping of `len` bytes.
#[derive(Debug)]
pub struct Mapped {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is shared memory touched only through atomics, or through `write_bytes`,
// whose callers own the bytes by having claimed the slot; it is not bound to a thread.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// Opens or creates the file at that length.
    pub fn open(path: &Path, len: usize) -> io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        if file.metadata()?.len() < len as u64 {
            file.set_len(len as u64)?;
        }
        // SAFETY: a fresh mapping at an address of the kernel's choice; the file is at least as
        // long, and nothing here ever shortens one.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &file,
                0,
            )
        }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, len })
    }

    /// The word at a byte offset.
    ///
    /// # Panics
    /// When the offset is not a multiple of 8 below the length: offsets are this crate's own.
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.len, "word outside the mapping");
        // SAFETY: inside the mapping and aligned (checked above; mappings start at a page), lives
        // as long as `self`, and every access to a word is atomic.
        unsafe { &*self.base.as_ptr().add(offset).cast() }
    }

    /// Writes at most `limit` bytes of a name into a slot just claimed.
    ///
    /// # Panics
    /// When they would not fit: offsets are this crate's own.
    pub fn write_bytes(&self, offset: usize, bytes: &[u8], limit: usize) {
        let bytes = &bytes[..bytes.len().min(limit)];
        assert!(offset + bytes.len() <= self.len, "bytes outside the mapping");
        // SAFETY: inside the mapping (checked above); the slot was claimed by compare-and-swap, so
        // nobody else writes it, and readers look at files, not at references.
        unsafe { self.base.as_ptr().add(offset).copy_from(bytes.as_ptr(), bytes.len()) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping of `open`, unmapped once; references into it borrow `self`.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}
