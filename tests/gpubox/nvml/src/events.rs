//! Events: the scenario's XIDs, delivered to the sets that registered before they came due. A
//! wait sleeps until the next one or its time-out; there is no history, as with the real driver.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlEventData_t, nvmlEventSet_t};

use crate::call::{Call, Handle, put, supported};
use crate::codes::{Answer, INVALID_ARGUMENT, TIMEOUT};
use crate::session;

/// The bit of an XID.
const XID: u64 = 0x8;
/// What the made-up driver can report.
const TYPES: u64 = 0x1F9F;

/// A registration: which GPU, which bits, since when.
#[derive(Clone, Copy, Debug)]
struct Registered {
    gpu: usize,
    types: u64,
    since: f64,
}

#[derive(Debug, Default)]
struct Set {
    registered: Vec<Registered>,
    /// Positions in the scenario's list that were handed out.
    delivered: Vec<usize>,
}

type Shared = Arc<Mutex<Set>>;
static SETS: Mutex<BTreeMap<u64, Shared>> = Mutex::new(BTreeMap::new());
static NEXT: AtomicU64 = AtomicU64::new(1);
const MARK: u64 = 0x6576_7400_0000_0000;

fn find(set: nvmlEventSet_t) -> Answer<Shared> {
    let sets = SETS.lock().unwrap_or_else(PoisonError::into_inner);
    sets.get(&(set.addr() as u64)).cloned().ok_or(INVALID_ARGUMENT)
}

/// The next XID for a set: due now, or in so many seconds.
fn next(call: &Call, set: &Shared, t: f64) -> Result<nvmlEventData_t, Option<f64>> {
    let mut set = set.lock().unwrap_or_else(PoisonError::into_inner);
    for (position, xid) in call.site.machine.xids.iter().enumerate() {
        let wanted = set.registered.iter().any(|registered| {
            registered.gpu == xid.gpu && registered.types & XID != 0 && registered.since < xid.at
        });
        if !wanted || set.delivered.contains(&position) {
            continue;
        }
        if xid.at > t {
            return Err(Some(xid.at - t));
        }
        set.delivered.push(position);
        return Ok(nvmlEventData_t {
            device: Handle::make(xid.gpu, None),
            eventType: XID,
            eventData: xid.code,
            gpuInstanceId: u32::MAX,
            computeInstanceId: u32::MAX,
        });
    }
    Err(None)
}

fn wait(call: &Call, set: nvmlEventSet_t, data: *mut nvmlEventData_t, ms: u32) -> Answer {
    let deadline = Instant::now() + Duration::from_millis(u64::from(ms));
    loop {
        let t = call.site.seconds();
        // Looked up anew each time: the set may be freed, or the driver go, while we sleep.
        session::check(call.site, t)?;
        let due = match next(call, &find(set)?, t) {
            Ok(event) => return put(data, event),
            Err(due) => due,
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(TIMEOUT);
        }
        let due = due.and_then(|due| Duration::try_from_secs_f64(due).ok()).unwrap_or(left);
        let pause = left.min(due).min(Duration::from_millis(500)).max(Duration::from_micros(200));
        std::thread::sleep(pause);
    }
}

system_calls! {
    fn nvmlEventSetCreate(_call, set: *mut nvmlEventSet_t) {
        let key = MARK | NEXT.fetch_add(1, Ordering::Relaxed);
        put(set, std::ptr::without_provenance_mut(key as usize))?;
        SETS.lock().unwrap_or_else(PoisonError::into_inner).insert(key, Shared::default());
        Ok(())
    }
    fn nvmlEventSetWait_v2(call, set: nvmlEventSet_t, data: *mut nvmlEventData_t, ms: u32) {
        wait(call, set, data, ms)
    }
    fn nvmlEventSetWait(call, set: nvmlEventSet_t, data: *mut nvmlEventData_t, ms: u32) {
        wait(call, set, data, ms)
    }
}

library_calls! {
    // Also after a driver has gone.
    fn nvmlEventSetFree(_call, set: nvmlEventSet_t) {
        let mut sets = SETS.lock().unwrap_or_else(PoisonError::into_inner);
        sets.remove(&(set.addr() as u64)).map(drop).ok_or(INVALID_ARGUMENT)
    }
}

device_calls! {
    fn nvmlDeviceGetSupportedEventTypes(ask, types: *mut u64) { ask.put(types, TYPES) }
    fn nvmlDeviceRegisterEvents(ask, types: u64, set: nvmlEventSet_t) {
        supported(types & !TYPES == 0)?;
        let set = find(set)?;
        let registered = Registered { gpu: ask.gpu.index, types, since: ask.t };
        set.lock().unwrap_or_else(PoisonError::into_inner).registered.push(registered);
        Ok(())
    }
}

/// The signature the real library declares, kept honest by the compiler.
const _: extern "C" fn(nvmlDevice_t, u64, nvmlEventSet_t) -> u32 = nvmlDeviceRegisterEvents;
