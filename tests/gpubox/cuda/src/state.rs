//! What this process has: its file among the holders, its contexts, what each GPU is charged.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use gpubox::{Holder, Now, Site};

use crate::memory::Allocation;
use crate::results::{Answer, DEVICE_UNAVAILABLE, NOT_INITIALIZED};

/// A context.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) gpu: usize,
}

/// Bytes charged on a GPU, apart from contexts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Charge {
    pub(crate) small: u64,
    pub(crate) large: u64,
    pub(crate) contexts: u64,
    /// Context cost that `leak_on_destroy` left behind.
    pub(crate) leaked: u64,
}

/// Everything that changes.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) contexts: BTreeMap<u64, Context>,
    /// By GPU: context and references.
    pub(crate) primary: BTreeMap<usize, (u64, u32)>,
    pub(crate) allocations: BTreeMap<u64, Allocation>,
    pub(crate) charges: BTreeMap<usize, Charge>,
}

static TABLES: Mutex<Option<Tables>> = Mutex::new(None);
static HOLDER: OnceLock<Option<Holder>> = OnceLock::new();
static NEXT: AtomicU64 = AtomicU64::new(1);
/// Which process the state belongs to: a forked child has none, as with the real driver.
static OWNER: AtomicU64 = AtomicU64::new(0);

/// Small allocations share blocks of this size; larger ones are rounded to it.
const BLOCK: u64 = 2 << 20;

/// A number for a handle.
pub(crate) fn next_id() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Makes the state, at `cuInit`.
pub(crate) fn initialize(site: &'static Site) {
    let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    if tables.is_none() {
        HOLDER.get_or_init(|| Holder::create(&site.state).ok());
        OWNER.store(u64::from(std::process::id()), Ordering::Relaxed);
        *tables = Some(Tables::default());
    }
}

/// The tables, held.
pub(crate) struct Held(MutexGuard<'static, Option<Tables>>);

/// The tables, unless `cuInit` was not called in this process.
pub(crate) fn tables() -> Answer<Held> {
    if OWNER.load(Ordering::Relaxed) != u64::from(std::process::id()) {
        return Err(NOT_INITIALIZED);
    }
    let held = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    if held.is_some() { Ok(Held(held)) } else { Err(NOT_INITIALIZED) }
}

impl Held {
    pub(crate) fn get(&mut self) -> &mut Tables {
        self.0.get_or_insert_default()
    }
}

impl Tables {
    /// Charges an allocation of `size`, or takes the charge back.
    pub(crate) fn charge(&mut self, gpu: usize, size: u64, take_back: bool) {
        let charge = self.charges.entry(gpu).or_default();
        let (part, size) = if size < BLOCK / 2 {
            (&mut charge.small, size)
        } else {
            (&mut charge.large, size.next_multiple_of(BLOCK))
        };
        *part = if take_back { part.saturating_sub(size) } else { *part + size };
    }

    /// Writes what a GPU is charged into the file the NVML stand-in reads.
    pub(crate) fn publish(&self, site: &'static Site, gpu: usize) {
        let Some(Some(holder)) = HOLDER.get() else {
            return;
        };
        let charge = self.charges.get(&gpu).copied().unwrap_or_default();
        let bytes = charge.large
            + charge.small.next_multiple_of(BLOCK)
            + charge.contexts * context_bytes(site)
            + charge.leaked;
        let before = holder.contexts(gpu).swap(charge.contexts, Ordering::Relaxed);
        holder.bytes(gpu).store(bytes, Ordering::Relaxed);
        if before != charge.contexts {
            site.holders_epoch().fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What a context costs.
pub(crate) fn context_bytes(site: &'static Site) -> u64 {
    site.machine.cuda.context.at(site.seconds()) as u64
}

/// A GPU at this moment; a lost one is unavailable.
pub(crate) fn now(site: &'static Site, gpu: usize) -> Answer<Now> {
    let t = site.seconds();
    let gpu = site.machine.gpus.get(gpu).ok_or(DEVICE_UNAVAILABLE)?;
    if gpu.spec.lost_at.is_some_and(|lost| t >= lost) {
        return Err(DEVICE_UNAVAILABLE);
    }
    Ok(Now { site, gpu, mig: None, t })
}

/// Total and free bytes of a GPU; those of the host where memory is shared with it.
pub(crate) fn memory_info(site: &'static Site, gpu: usize) -> Answer<(u64, u64)> {
    let now = now(site, gpu)?;
    if !now.is_unified() {
        let total = now.memory_total();
        let free = total.saturating_sub(now.memory_reserved() + now.memory_used());
        return Ok((total, free));
    }
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let figure = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    let kib = |name| figure(name).unwrap_or(0) * 1024;
    Ok((kib("MemTotal:"), kib("MemAvailable:")))
}

/// Says goodbye at exit, so that readers need not find out by themselves. A process that dies
/// leaves its file, which is what makes the scenario's `dead_pid_seconds` possible.
extern "C" fn leave() {
    if OWNER.load(Ordering::Relaxed) != u64::from(std::process::id()) {
        return;
    }
    if let (Some(Some(holder)), Some(site)) = (HOLDER.get(), gpubox::site())
        && site.machine.cuda.dead_pid_seconds <= 0.0
    {
        holder.remove();
        site.holders_epoch().fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: the loader calls the entries of this section, without arguments it would need, at exit
// and at unload.
#[unsafe(link_section = ".fini_array")]
#[used]
static LEAVE: extern "C" fn() = leave;
