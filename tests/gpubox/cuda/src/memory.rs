//! Memory: device addresses are numbers no process can dereference; behind each is host memory
//! reserved without being backed, so that 60 GiB cost nothing until they are written.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use gpubox::Site;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::call::{put, put_optional};
use crate::contexts::current;
use crate::results::{Answer, ILLEGAL_ADDRESS, INVALID_VALUE, NOT_SUPPORTED, OUT_OF_MEMORY};
use crate::state::{Tables, memory_info, now, tables};

/// The first device address: above anything the kernel gives to a process.
const FIRST: u64 = 0x00A0_0000_0000_0000;
static NEXT: AtomicU64 = AtomicU64::new(FIRST);

/// Host memory behind a device address.
#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) context: u64,
    pub(crate) gpu: usize,
    pub(crate) size: u64,
    base: NonNull<u8>,
}

// SAFETY: plain memory owned by this value; access goes through the table's lock.
unsafe impl Send for Allocation {}

impl Allocation {
    fn new(context: u64, gpu: usize, size: u64) -> Option<Self> {
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice.
        let mapped = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                size as usize,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        };
        Some(Self { context, gpu, size, base: NonNull::new(mapped.ok()?.cast())? })
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, of that size, unmapped once.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.size as usize) };
    }
}

/// The host address of a stretch of device memory.
pub(crate) fn host(tables: &Tables, address: u64, length: usize) -> Answer<*mut u8> {
    let (start, allocation) =
        tables.allocations.range(..=address).next_back().ok_or(ILLEGAL_ADDRESS)?;
    let offset = address - start;
    if offset + length as u64 > allocation.size {
        return Err(ILLEGAL_ADDRESS);
    }
    Ok(allocation.base.as_ptr().wrapping_add(offset as usize))
}

fn allocate(site: &'static Site, out: *mut u64, bytes: usize) -> Answer {
    if bytes == 0 {
        return Err(INVALID_VALUE);
    }
    let mut held = tables()?;
    let tables = held.get();
    let (context, gpu) = current(tables)?;
    if memory_info(site, gpu)?.1 < bytes as u64 {
        return Err(OUT_OF_MEMORY);
    }
    let allocation = Allocation::new(context, gpu, bytes as u64).ok_or(OUT_OF_MEMORY)?;
    // A gap after each, so that running over the end is found.
    let span = (bytes as u64).next_multiple_of(2 << 20) + (2 << 20);
    let address = NEXT.fetch_add(span, Ordering::Relaxed);
    put(out, address)?;
    tables.allocations.insert(address, allocation);
    tables.charge(gpu, bytes as u64, false);
    tables.publish(site, gpu);
    Ok(())
}

fn free(site: &'static Site, address: u64) -> Answer {
    if address == 0 {
        return Ok(());
    }
    let mut held = tables()?;
    let tables = held.get();
    let allocation = tables.allocations.remove(&address).ok_or(INVALID_VALUE)?;
    tables.charge(allocation.gpu, allocation.size, true);
    tables.publish(site, allocation.gpu);
    Ok(())
}

/// An end of a copy.
#[derive(Clone, Copy)]
enum End {
    Device(u64),
    Host(*mut u8),
}

fn copy(site: &'static Site, to: End, from: End, length: usize) -> Answer {
    if length == 0 {
        return Ok(());
    }
    let mut held = tables()?;
    let tables = held.get();
    let (_, gpu) = current(tables)?;
    now(site, gpu)?;
    let resolve = |end| match end {
        End::Device(address) => host(tables, address, length),
        End::Host(pointer) if pointer.is_null() => Err(INVALID_VALUE),
        End::Host(pointer) => Ok(pointer),
    };
    let (to, from) = (resolve(to)?, resolve(from)?);
    // SAFETY: device ends lie inside an allocation (checked by `host`) that cannot go while the
    // tables are held; for host ends the caller vouches, by CUDA's contract. They may overlap.
    unsafe { to.copy_from(from, length) };
    Ok(())
}

/// Either kind of address, for `cuMemcpy`.
fn end(address: u64) -> End {
    if address >= FIRST {
        End::Device(address)
    } else {
        End::Host(std::ptr::with_exposed_provenance_mut(address as usize))
    }
}

/// Fills with a pattern of 1, 2 or 4 bytes.
fn fill(address: u64, pattern: &[u8], count: usize) -> Answer {
    let mut held = tables()?;
    let tables = held.get();
    current(tables)?;
    let length = count.checked_mul(pattern.len()).ok_or(INVALID_VALUE)?;
    if length == 0 {
        return Ok(());
    }
    let to = host(tables, address, length)?;
    for position in 0..count {
        // SAFETY: inside the allocation (checked by `host`), which the held tables keep.
        unsafe {
            to.add(position * pattern.len())
                .copy_from_nonoverlapping(pattern.as_ptr(), pattern.len());
        }
    }
    Ok(())
}

type Stream = *mut c_void;
type Pool = *mut c_void;

/// The only pool there is.
fn default_pool() -> Pool {
    std::ptr::without_provenance_mut(0x9001)
}

/// Pinned host memory: ordinary, with its size before it, since freeing names no size.
fn pinned(out: *mut *mut c_void, size: usize) -> Answer {
    let layout = std::alloc::Layout::from_size_align(size + 64, 64).or(Err(INVALID_VALUE))?;
    // SAFETY: the layout is not empty.
    let base = unsafe { std::alloc::alloc_zeroed(layout) };
    let base = NonNull::new(base).ok_or(OUT_OF_MEMORY)?;
    // SAFETY: the first 64 bytes, aligned to 64, are ours; the caller gets what follows.
    let memory = unsafe {
        base.as_ptr().cast::<usize>().write_unaligned(size);
        base.as_ptr().add(64)
    };
    put(out, memory.cast())
}

exports! {
    fn cuMemGetInfo_v2(site, free: *mut usize, total: *mut usize) {
        let (_, gpu) = current(tables()?.get())?;
        let (all, left) = memory_info(site, gpu)?;
        put(free, left as usize)?;
        put(total, all as usize)
    }
    fn cuMemAlloc_v2(site, out: *mut u64, size: usize) { allocate(site, out, size) }
    fn cuMemAllocAsync(site, out: *mut u64, size: usize, _stream: Stream) { allocate(site, out, size) }
    fn cuMemAllocFromPoolAsync(site, out: *mut u64, size: usize, _pool: Pool, _stream: Stream) {
        allocate(site, out, size)
    }
    fn cuMemFree_v2(site, address: u64) { free(site, address) }
    fn cuMemFreeAsync(site, address: u64, _stream: Stream) { free(site, address) }
    // Managed memory would have to be readable by the host at its device address.
    fn cuMemAllocManaged(_site, _out: *mut u64, _size: usize, _flags: u32) { Err(NOT_SUPPORTED) }
    fn cuMemGetAddressRange_v2(_site, base: *mut u64, size: *mut usize, address: u64) {
        let mut held = tables()?;
        host(held.get(), address, 1)?;
        let found = held.get().allocations.range(..=address).next_back();
        let (start, allocation) = found.ok_or(INVALID_VALUE)?;
        put_optional(base, *start)?;
        put_optional(size, allocation.size as usize)
    }
    fn cuMemAllocHost_v2(_site, out: *mut *mut c_void, size: usize) { pinned(out, size) }
    fn cuMemHostAlloc(_site, out: *mut *mut c_void, size: usize, _flags: u32) { pinned(out, size) }
    fn cuMemFreeHost(_site, memory: *mut c_void) {
        if memory.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: CUDA's contract: what `pinned` gave out, once; its size stands 64 bytes before.
        unsafe {
            let base = memory.cast::<u8>().sub(64);
            let size = base.cast::<usize>().read_unaligned();
            let layout = std::alloc::Layout::from_size_align(size + 64, 64).or(Err(INVALID_VALUE))?;
            std::alloc::dealloc(base, layout);
        }
        Ok(())
    }
    fn cuMemHostRegister_v2(_site, _memory: *mut c_void, _size: usize, _flags: u32) { Ok(()) }
    fn cuMemHostUnregister(_site, _memory: *mut c_void) { Ok(()) }
    fn cuMemsetD8_v2(_site, to: u64, value: u8, count: usize) { fill(to, &[value], count) }
    fn cuMemsetD8Async(_site, to: u64, value: u8, count: usize, _stream: Stream) {
        fill(to, &[value], count)
    }
    fn cuMemsetD16_v2(_site, to: u64, value: u16, count: usize) { fill(to, &value.to_ne_bytes(), count) }
    fn cuMemsetD16Async(_site, to: u64, value: u16, count: usize, _stream: Stream) {
        fill(to, &value.to_ne_bytes(), count)
    }
    fn cuMemsetD32_v2(_site, to: u64, value: u32, count: usize) { fill(to, &value.to_ne_bytes(), count) }
    fn cuMemsetD32Async(_site, to: u64, value: u32, count: usize, _stream: Stream) {
        fill(to, &value.to_ne_bytes(), count)
    }
    fn cuMemcpyHtoD_v2(site, to: u64, from: *mut u8, length: usize) {
        copy(site, End::Device(to), End::Host(from), length)
    }
    fn cuMemcpyHtoDAsync_v2(site, to: u64, from: *mut u8, length: usize, _stream: Stream) {
        copy(site, End::Device(to), End::Host(from), length)
    }
    fn cuMemcpyDtoH_v2(site, to: *mut u8, from: u64, length: usize) {
        copy(site, End::Host(to), End::Device(from), length)
    }
    fn cuMemcpyDtoHAsync_v2(site, to: *mut u8, from: u64, length: usize, _stream: Stream) {
        copy(site, End::Host(to), End::Device(from), length)
    }
    fn cuMemcpyDtoD_v2(site, to: u64, from: u64, length: usize) {
        copy(site, End::Device(to), End::Device(from), length)
    }
    fn cuMemcpyDtoDAsync_v2(site, to: u64, from: u64, length: usize, _stream: Stream) {
        copy(site, End::Device(to), End::Device(from), length)
    }
    fn cuMemcpy(site, to: u64, from: u64, length: usize) { copy(site, end(to), end(from), length) }
    fn cuMemcpyAsync(site, to: u64, from: u64, length: usize, _stream: Stream) {
        copy(site, end(to), end(from), length)
    }
    fn cuMemcpyPeerAsync(
        site,
        to: u64,
        _to_context: *mut c_void,
        from: u64,
        _from_context: *mut c_void,
        length: usize,
        _stream: Stream,
    ) {
        copy(site, End::Device(to), End::Device(from), length)
    }
    fn cuDeviceGetDefaultMemPool(_site, pool: *mut Pool, _device: c_int) { put(pool, default_pool()) }
    fn cuDeviceGetMemPool(_site, pool: *mut Pool, _device: c_int) { put(pool, default_pool()) }
    fn cuDeviceSetMemPool(_site, _device: c_int, _pool: Pool) { Ok(()) }
    fn cuMemPoolSetAttribute(_site, _pool: Pool, _attribute: u32, _value: *mut c_void) { Ok(()) }
    fn cuMemPoolGetAttribute(_site, _pool: Pool, _attribute: u32, value: *mut u64) { put(value, 0) }
    fn cuMemPoolTrimTo(_site, _pool: Pool, _keep: usize) { Ok(()) }
}
