//! Modules and kernels. Nothing here runs PTX: a launch answers `NOT_SUPPORTED`, unless
//! `GPUBOX_KERNELS` names a shared object compiled for the host. A kernel called `scale` is then
//! its exported function
//!
//! ```c
//! int scale(const struct launch *l);   // 0, or a CUresult
//! struct launch {
//!     unsigned grid[3], block[3], shared_bytes;
//!     void **params;                   // as given to cuLaunchKernel
//!     void *(*host)(unsigned long long device_address, unsigned long long length); // NULL: none
//! };
//! ```
//!
//! which loops over grid and block itself and asks `host` for the memory behind each address.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::Library;

use crate::call::{get_text, put, put_optional};
use crate::contexts::current;
use crate::memory;
use crate::results::{
    Answer, Failure, INVALID_HANDLE, INVALID_IMAGE, INVALID_VALUE, NOT_FOUND, NOT_SUPPORTED,
};
use crate::state::{next_id, tables};

type Module = *mut c_void;
type Function = *mut c_void;

/// What a host kernel is given.
#[repr(C)]
struct Launch {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    params: *mut *mut c_void,
    host: extern "C" fn(u64, u64) -> *mut u8,
}

type Kernel = unsafe extern "C" fn(*const Launch) -> c_int;

static FUNCTIONS: Mutex<BTreeMap<usize, String>> = Mutex::new(BTreeMap::new());

extern "C" fn host(address: u64, length: u64) -> *mut u8 {
    let found = tables().and_then(|mut held| memory::host(held.get(), address, length as usize));
    found.unwrap_or(std::ptr::null_mut())
}

fn kernels() -> Option<&'static Library> {
    static KERNELS: OnceLock<Option<Library>> = OnceLock::new();
    let loaded = KERNELS.get_or_init(|| {
        let path = std::env::var_os("GPUBOX_KERNELS")?;
        // SAFETY: the tester's own library, named by the tester; its initialisers are theirs.
        unsafe { Library::new(path) }.ok()
    });
    loaded.as_ref()
}

fn load(out: *mut Module, image: *const c_void) -> Answer {
    current(tables()?.get())?;
    if image.is_null() {
        return Err(INVALID_IMAGE);
    }
    put(out, std::ptr::without_provenance_mut(next_id() as usize + 0x4D00_0000))
}

/// Looks the kernel up. Without a library of kernels every name is there, and launching says so.
fn function(out: *mut Function, name: *const c_char) -> Answer {
    let name = get_text(name)?;
    if let Some(library) = kernels() {
        // SAFETY: only looked up here; the signature is the one documented above.
        unsafe { library.get::<Kernel>(name.as_bytes()) }.or(Err(NOT_FOUND))?;
    }
    let id = next_id() as usize + 0xF000_0000;
    FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner).insert(id, name);
    put(out, std::ptr::without_provenance_mut(id))
}

fn launch(function: Function, launch: &Launch) -> Answer {
    current(tables()?.get())?;
    let functions = FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let name = functions.get(&function.addr()).cloned().ok_or(INVALID_HANDLE)?;
    drop(functions);
    let library = kernels().ok_or(NOT_SUPPORTED)?;
    // SAFETY: the kernel has the documented signature by agreement with whoever set the variable;
    // the launch outlives the call.
    let code = unsafe {
        let kernel = library.get::<Kernel>(name.as_bytes()).or(Err(NOT_FOUND))?;
        kernel(launch)
    };
    if code == 0 { Ok(()) } else { Err(Failure(code as u32)) }
}

exports! {
    fn cuModuleLoadData(_site, out: *mut Module, image: *const c_void) { load(out, image) }
    fn cuModuleLoadDataEx(
        _site,
        out: *mut Module,
        image: *const c_void,
        _count: u32,
        _options: *mut c_void,
        _values: *mut c_void,
    ) {
        load(out, image)
    }
    fn cuModuleLoad(_site, out: *mut Module, path: *const c_char) {
        let path = get_text(path)?;
        if !std::path::Path::new(&path).exists() {
            return Err(Failure(301));
        }
        load(out, std::ptr::dangling::<c_void>())
    }
    fn cuModuleUnload(_site, _module: Module) { Ok(()) }
    fn cuModuleGetFunction(_site, out: *mut Function, _module: Module, name: *const c_char) {
        function(out, name)
    }
    fn cuModuleGetGlobal_v2(
        _site,
        _address: *mut u64,
        _size: *mut usize,
        _module: Module,
        _name: *const c_char,
    ) {
        Err(NOT_FOUND)
    }
    fn cuFuncGetAttribute(_site, value: *mut c_int, attribute: c_int, _function: Function) {
        put(value, if attribute == 0 { 1024 } else { 0 })
    }
    fn cuFuncSetAttribute(_site, _function: Function, _attribute: c_int, _value: c_int) { Ok(()) }
    fn cuFuncSetCacheConfig(_site, _function: Function, _config: u32) { Ok(()) }
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        _site,
        blocks: *mut c_int,
        _function: Function,
        block: c_int,
        _shared: usize,
    ) {
        if block <= 0 {
            return Err(INVALID_VALUE);
        }
        put(blocks, (2048 / block).max(1))
    }
    fn cuOccupancyMaxPotentialBlockSize(
        site,
        grid: *mut c_int,
        block: *mut c_int,
        _function: Function,
        _shared_of: *mut c_void,
        _shared: usize,
        _limit: c_int,
    ) {
        let (_, gpu) = current(tables()?.get())?;
        put(grid, site.machine.gpus[gpu].spec.sm_count as c_int * 2)?;
        put_optional(block, 1024)
    }
    fn cuLaunchKernel(
        _site,
        called: Function,
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        shared_bytes: u32,
        _stream: *mut c_void,
        params: *mut *mut c_void,
        _extra: *mut *mut c_void,
    ) {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        if grid.contains(&0) || block.contains(&0) || block.iter().product::<u32>() > 1024 {
            return Err(INVALID_VALUE);
        }
        launch(called, &Launch { grid, block, shared_bytes, params, host })
    }
}
