//! Initialisation: counted, tied to the driver that was loaded at the time. Every first init makes
//! a new generation, and handles of an older one are dead, as after a driver reload.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use gpubox::Site;

use crate::call::Call;
use crate::codes::{Answer, Code, DRIVER_NOT_LOADED, UNINITIALIZED};

static REFERENCES: AtomicU32 = AtomicU32::new(0);
static GENERATION: AtomicU32 = AtomicU32::new(0);
static DRIVER: AtomicUsize = AtomicUsize::new(0);

/// The generation handles are made for.
pub(crate) fn generation() -> u16 {
    GENERATION.load(Ordering::Relaxed) as u16
}

/// Whether the library is initialised against the driver that is loaded now.
pub(crate) fn check(site: &'static Site, t: f64) -> Answer {
    if REFERENCES.load(Ordering::Acquire) == 0 {
        return Err(UNINITIALIZED);
    }
    match site.machine.driver_at(t) {
        (_, false) => Err(DRIVER_NOT_LOADED),
        (driver, true) if driver != DRIVER.load(Ordering::Relaxed) => Err(UNINITIALIZED),
        _ => Ok(()),
    }
}

fn init(call: &Call) -> Answer {
    call.site.come_up();
    let t = call.site.seconds();
    let (driver, present) = call.site.machine.driver_at(t);
    if !present {
        return Err(DRIVER_NOT_LOADED);
    }
    let code = call.site.machine.host.init_code.at(t) as u32;
    if code != 0 {
        return Err(Code(code));
    }
    let stale = DRIVER.swap(driver, Ordering::Relaxed) != driver;
    if stale {
        REFERENCES.store(0, Ordering::Release);
    }
    if REFERENCES.fetch_add(1, Ordering::AcqRel) == 0 {
        GENERATION.fetch_add(1, Ordering::AcqRel);
    }
    Ok(())
}

library_calls! {
    fn nvmlInit_v2(call) { init(call) }
    fn nvmlInit(call) { init(call) }
    fn nvmlInitWithFlags(call, _flags: u32) { init(call) }
    fn nvmlShutdown(_call) {
        let down = |references: u32| references.checked_sub(1);
        match REFERENCES.fetch_update(Ordering::AcqRel, Ordering::Acquire, down) {
            Ok(_) => Ok(()),
            Err(_) => Err(UNINITIALIZED),
        }
    }
}
