//! Streams and events. Work is done before a call returns, so nothing ever waits; events remember
//! when they were recorded, for elapsed times.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::call::put;
use crate::contexts::current;
use crate::results::{Answer, INVALID_HANDLE, INVALID_VALUE};
use crate::state::{next_id, now, tables};

type Stream = *mut c_void;
type Event = *mut c_void;

static EVENTS: Mutex<BTreeMap<usize, Option<Instant>>> = Mutex::new(BTreeMap::new());

fn with_event<T>(event: Event, what: impl FnOnce(&mut Option<Instant>) -> T) -> Answer<T> {
    let mut events = EVENTS.lock().unwrap_or_else(PoisonError::into_inner);
    events.get_mut(&event.addr()).map(what).ok_or(INVALID_HANDLE)
}

fn create_stream(out: *mut Stream) -> Answer {
    current(tables()?.get())?;
    put(out, std::ptr::without_provenance_mut(next_id() as usize + 0x5700_0000))
}

exports! {
    fn cuStreamCreate(_site, out: *mut Stream, _flags: u32) { create_stream(out) }
    fn cuStreamCreateWithPriority(_site, out: *mut Stream, _flags: u32, _priority: c_int) {
        create_stream(out)
    }
    fn cuStreamDestroy_v2(_site, stream: Stream) {
        if stream.is_null() { Err(INVALID_HANDLE) } else { Ok(()) }
    }
    fn cuStreamSynchronize(site, _stream: Stream) {
        let (_, gpu) = current(tables()?.get())?;
        now(site, gpu).map(drop)
    }
    fn cuStreamQuery(_site, _stream: Stream) { Ok(()) }
    fn cuStreamWaitEvent(_site, _stream: Stream, event: Event, _flags: u32) {
        with_event(event, |_| ())
    }
    fn cuStreamGetCtx(_site, _stream: Stream, context: *mut *mut c_void) {
        let (id, _) = current(tables()?.get())?;
        put(context, std::ptr::without_provenance_mut(id as usize))
    }
    // 0 is "no capture"; graphs are not served.
    fn cuStreamIsCapturing(_site, _stream: Stream, status: *mut u32) { put(status, 0) }
    fn cuEventCreate(_site, out: *mut Event, _flags: u32) {
        current(tables()?.get())?;
        let event = next_id() as usize + 0xE700_0000;
        EVENTS.lock().unwrap_or_else(PoisonError::into_inner).insert(event, None);
        put(out, std::ptr::without_provenance_mut(event))
    }
    fn cuEventRecord(_site, event: Event, _stream: Stream) {
        with_event(event, |recorded| *recorded = Some(Instant::now()))
    }
    fn cuEventRecordWithFlags(_site, event: Event, _stream: Stream, _flags: u32) {
        with_event(event, |recorded| *recorded = Some(Instant::now()))
    }
    fn cuEventSynchronize(_site, event: Event) { with_event(event, |_| ()) }
    fn cuEventQuery(_site, event: Event) { with_event(event, |_| ()) }
    fn cuEventDestroy_v2(_site, event: Event) {
        let mut events = EVENTS.lock().unwrap_or_else(PoisonError::into_inner);
        events.remove(&event.addr()).map(drop).ok_or(INVALID_HANDLE)
    }
    fn cuEventElapsedTime(_site, milliseconds: *mut f32, start: Event, end: Event) {
        let (from, to) = (with_event(start, |at| *at)?, with_event(end, |at| *at)?);
        let (from, to) = (from.ok_or(INVALID_HANDLE)?, to.ok_or(INVALID_HANDLE)?);
        put(milliseconds, to.saturating_duration_since(from).as_secs_f32() * 1000.0)
    }
    fn cuEventElapsedTime_v2(_site, milliseconds: *mut f32, start: Event, end: Event) {
        let (from, to) = (with_event(start, |at| *at)?, with_event(end, |at| *at)?);
        let (from, to) = (from.ok_or(INVALID_VALUE)?, to.ok_or(INVALID_VALUE)?);
        put(milliseconds, to.saturating_duration_since(from).as_secs_f32() * 1000.0)
    }
}
