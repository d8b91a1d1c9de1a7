//! Contexts: primary ones, counted per device, and others. Each costs memory on its GPU, and one
//! that is destroyed takes its allocations along, unless the scenario leaks them.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};

use gpubox::Site;

use crate::call::{put, put_optional};
use crate::devices::{index, ordinal};
use crate::evidence;
use crate::results::{Answer, INVALID_CONTEXT, OUT_OF_MEMORY};
use crate::state::{Context, Tables, context_bytes, memory_info, next_id, now, tables};

/// A context handle: a number that is no address.
type Handle = *mut c_void;

thread_local! {
    /// Current contexts of this thread, the last on top, with their GPU.
    static STACK: RefCell<Vec<(u64, usize)>> = const { RefCell::new(Vec::new()) };
}

fn handle(id: u64) -> Handle {
    std::ptr::without_provenance_mut(id as usize)
}

fn top() -> Option<(u64, usize)> {
    STACK.try_with(|stack| stack.borrow().last().copied()).ok().flatten()
}

/// The GPU of the current context.
pub(crate) fn current_gpu() -> Option<usize> {
    top().map(|(_, gpu)| gpu)
}

/// The current context and its GPU, while it lives.
pub(crate) fn current(tables: &Tables) -> Answer<(u64, usize)> {
    let (id, gpu) = top().ok_or(INVALID_CONTEXT)?;
    if tables.contexts.contains_key(&id) { Ok((id, gpu)) } else { Err(INVALID_CONTEXT) }
}

fn set_top(entry: Option<(u64, usize)>) {
    STACK.with(|stack| {
        let mut stack = stack.borrow_mut();
        stack.pop();
        stack.extend(entry);
    });
}

fn create(site: &'static Site, tables: &mut Tables, gpu: usize) -> Answer<u64> {
    now(site, gpu)?;
    if memory_info(site, gpu)?.1 < context_bytes(site) {
        return Err(OUT_OF_MEMORY);
    }
    let id = next_id();
    tables.contexts.insert(id, Context { gpu });
    tables.charges.entry(gpu).or_default().contexts += 1;
    tables.publish(site, gpu);
    evidence::add(site, id, gpu);
    Ok(id)
}

fn destroy(site: &'static Site, tables: &mut Tables, id: u64) -> Answer {
    let gpu = tables.contexts.remove(&id).ok_or(INVALID_CONTEXT)?.gpu;
    let leak = site.machine.cuda.leak_on_destroy;
    let charge = tables.charges.entry(gpu).or_default();
    charge.contexts = charge.contexts.saturating_sub(1);
    if leak {
        charge.leaked += context_bytes(site);
    } else {
        let gone: Vec<u64> = tables
            .allocations
            .iter()
            .filter(|(_, allocation)| allocation.context == id)
            .map(|(address, _)| *address)
            .collect();
        for address in gone {
            if let Some(allocation) = tables.allocations.remove(&address) {
                tables.charge(gpu, allocation.size, true);
            }
        }
        evidence::remove(id);
    }
    tables.publish(site, gpu);
    Ok(())
}

fn create_current(site: &'static Site, out: *mut Handle, device: c_int) -> Answer {
    let gpu = index(site, device)?;
    let mut held = tables()?;
    let id = create(site, held.get(), gpu)?;
    put(out, handle(id))?;
    STACK.with(|stack| stack.borrow_mut().push((id, gpu)));
    Ok(())
}

fn entry(tables: &Tables, context: Handle) -> Answer<(u64, usize)> {
    let id = context.addr() as u64;
    tables.contexts.get(&id).map(|context| (id, context.gpu)).ok_or(INVALID_CONTEXT)
}

fn release_primary(site: &'static Site, device: c_int, all: bool) -> Answer {
    let gpu = index(site, device)?;
    let mut held = tables()?;
    let tables = held.get();
    let (id, references) = tables.primary.get(&gpu).copied().ok_or(INVALID_CONTEXT)?;
    if references > 1 && !all {
        tables.primary.insert(gpu, (id, references - 1));
        return Ok(());
    }
    tables.primary.remove(&gpu);
    destroy(site, tables, id)
}

exports! {
    fn cuDevicePrimaryCtxRetain(site, out: *mut Handle, device: c_int) {
        let gpu = index(site, device)?;
        let mut held = tables()?;
        let tables = held.get();
        let (id, references) = match tables.primary.get(&gpu) {
            Some(known) => *known,
            None => (create(site, tables, gpu)?, 0),
        };
        tables.primary.insert(gpu, (id, references + 1));
        put(out, handle(id))
    }
    fn cuDevicePrimaryCtxRelease_v2(site, device: c_int) { release_primary(site, device, false) }
    fn cuDevicePrimaryCtxRelease(site, device: c_int) { release_primary(site, device, false) }
    fn cuDevicePrimaryCtxReset_v2(site, device: c_int) { release_primary(site, device, true) }
    fn cuDevicePrimaryCtxSetFlags_v2(site, device: c_int, _flags: u32) {
        index(site, device).map(drop)
    }
    fn cuDevicePrimaryCtxGetState(site, device: c_int, flags: *mut u32, active: *mut c_int) {
        let gpu = index(site, device)?;
        put_optional(flags, 0)?;
        put(active, c_int::from(tables()?.get().primary.contains_key(&gpu)))
    }
    fn cuCtxCreate_v2(site, out: *mut Handle, _flags: u32, device: c_int) {
        create_current(site, out, device)
    }
    fn cuCtxCreate_v3(site, out: *mut Handle, _affinity: Handle, _count: c_int, _flags: u32, device: c_int) {
        create_current(site, out, device)
    }
    fn cuCtxCreate_v4(site, out: *mut Handle, _parameters: Handle, _flags: u32, device: c_int) {
        create_current(site, out, device)
    }
    fn cuCtxDestroy_v2(site, context: Handle) {
        let mut held = tables()?;
        let tables = held.get();
        let (id, _) = entry(tables, context)?;
        destroy(site, tables, id)?;
        if top().is_some_and(|(current, _)| current == id) {
            set_top(None);
        }
        Ok(())
    }
    fn cuCtxGetCurrent(_site, out: *mut Handle) {
        tables()?;
        put(out, top().map_or(std::ptr::null_mut(), |(id, _)| handle(id)))
    }
    fn cuCtxSetCurrent(_site, context: Handle) {
        let mut held = tables()?;
        let entry = if context.is_null() { None } else { Some(entry(held.get(), context)?) };
        set_top(entry);
        Ok(())
    }
    fn cuCtxPushCurrent_v2(_site, context: Handle) {
        let entry = entry(tables()?.get(), context)?;
        STACK.with(|stack| stack.borrow_mut().push(entry));
        Ok(())
    }
    fn cuCtxPopCurrent_v2(_site, out: *mut Handle) {
        let (id, _) = top().ok_or(INVALID_CONTEXT)?;
        set_top(None);
        put_optional(out, handle(id))
    }
    fn cuCtxGetDevice(site, device: *mut c_int) {
        let (_, gpu) = current(tables()?.get())?;
        put(device, ordinal(site, gpu))
    }
    fn cuCtxSynchronize(site) {
        let (_, gpu) = current(tables()?.get())?;
        now(site, gpu).map(drop)
    }
    fn cuCtxGetFlags(_site, flags: *mut u32) { put(flags, 0) }
    fn cuCtxGetApiVersion(_site, _context: Handle, version: *mut u32) { put(version, 3020) }
    fn cuCtxGetLimit(_site, value: *mut usize, _limit: u32) { put(value, 1024) }
    fn cuCtxSetLimit(_site, _limit: u32, _value: usize) { Ok(()) }
    fn cuCtxGetStreamPriorityRange(_site, least: *mut c_int, greatest: *mut c_int) {
        put_optional(least, 0)?;
        put_optional(greatest, -5)
    }
    fn cuCtxEnablePeerAccess(_site, _peer: Handle, _flags: u32) { Ok(()) }
}
