//! Xid events. The driver keeps no history: only what happens after registration is seen, so the
//! kernel log is read beside this.

use nvml_wrapper_sys::bindings as sys;
use serde::{Deserialize, Serialize};

use super::calls::Calls;
use super::session::{Device, Session, Zeroed, call};
use crate::reading::Absence;

/// One error that the driver reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Xid {
    /// Number of the error; 999 is unknown.
    pub code: u32,
    /// When we received it, milliseconds since 1970; the event carries no time.
    pub at_ms: u64,
    /// MIG GPU instance, where one is named.
    pub gpu_instance: Option<u32>,
}

/// Event types that are asked for where a GPU has them: double-bit errors, Xids, MIG changes,
/// retirement, poison, GPU unavailable, recovery action. The P-state and clock events would flood.
const WANTED: u64 = 0x2 | 0x8 | 0x100 | 0x200 | 0x400 | 0x800 | 0x1000 | 0x2000 | 0x4000 | 0x8000;
/// The bit of an Xid.
const XID: u64 = 0x8;
/// How long one wait lasts; nothing else happens on that thread.
const WAIT_MS: u32 = 1000;

/// A set in which GPUs are registered for events.
pub struct EventSet<'s> {
    session: &'s Session,
    set: sys::nvmlEventSet_t,
    /// A wait is no work: its time is kept out of what the driver's calls cost.
    waits: Calls,
    /// Handle and UUID: once an event has come, the GPU may not answer any more.
    registered: Vec<(usize, String)>,
}

impl<'s> EventSet<'s> {
    /// An empty set.
    pub fn new(session: &'s Session) -> Result<Self, Absence> {
        if session.library().nvmlEventSetFree.is_err() {
            return Err(Absence::TooOld);
        }
        let mut set = std::ptr::null_mut();
        call!(session, nvmlEventSetCreate(&raw mut set))?;
        Ok(Self { session, set, waits: Calls::default(), registered: Vec::new() })
    }

    fn library(&self) -> &sys::NvmlLib {
        self.session.library()
    }

    fn calls(&self) -> &Calls {
        &self.waits
    }

    fn answer(
        &self,
        name: &'static str,
        variant: u32,
        call: impl FnOnce() -> Option<u32>,
    ) -> Result<(), Absence> {
        self.session.answer(name, variant, call)
    }

    /// Adds a GPU.
    pub fn register(&mut self, device: &Device, uuid: &str) -> Result<(), Absence> {
        let mut supported = 0;
        call!(device, nvmlDeviceGetSupportedEventTypes(device.handle(), &raw mut supported))?;
        let types = supported & WANTED;
        if types == 0 {
            return Err(Absence::Unsupported);
        }
        let set = self.set;
        call!(device, nvmlDeviceRegisterEvents(device.handle(), types, set))?;
        self.registered.push((device.handle_number(), uuid.into()));
        Ok(())
    }

    /// Waits up to a second for an event. `Ok(None)` is the normal answer.
    pub fn wait(&self, now_ms: impl Fn() -> u64) -> Result<Option<(String, Xid)>, Absence> {
        let set = self.set;
        let mut data = sys::nvmlEventData_t::zeroed();
        match call!(self, nvmlEventSetWait_v2(set, &raw mut data, WAIT_MS)) {
            Ok(()) if data.eventType == XID => {
                let handle = data.device as usize;
                let uuid = self.registered.iter().find(|(known, _)| *known == handle);
                let code = u32::try_from(data.eventData).unwrap_or(999);
                let instance = (data.gpuInstanceId != u32::MAX).then_some(data.gpuInstanceId);
                let xid = Xid { code, at_ms: now_ms(), gpu_instance: instance };
                Ok(uuid.map(|(_, uuid)| (uuid.clone(), xid)))
            }
            // NVML's time-out is mapped to "no answer".
            Ok(()) | Err(Absence::NoAnswer) => Ok(None),
            Err(absence) => Err(absence),
        }
    }
}

impl Drop for EventSet<'_> {
    fn drop(&mut self) {
        let (session, set) = (self.session, self.set);
        // Nothing can be done about a set that the library will not take back.
        let _ = call!(session, nvmlEventSetFree(set));
    }
}
