//! The driver's session: opens the library, gives every GPU a thread, and begins again when the
//! driver was unloaded, replaced or has lost all its GPUs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{Builder, Scope};
use std::time::{Duration, Instant};

use probes::driver::{self, Session as SessionState};
use probes::nvml::calls::Calls;
use probes::nvml::codes;
use probes::nvml::events::EventSet;
use probes::nvml::pcie::read_window;
use probes::nvml::reader::GpuReader;
use probes::nvml::session::{Device, Session};
use probes::nvml::topology::{Node, read_all};
use probes::reading::{Absence, Reading};
use probes::snapshot::Health;

use super::shared::{Shared, Status};
use super::slot::Slot;

/// Stack of a thread that calls the driver; its pages are touched only as far as they are used.
const STACK_BYTES: usize = 1 << 20;
/// Wait before the library is tried again, doubling up to the second.
const RETRY: (Duration, Duration) = (Duration::from_secs(10), Duration::from_mins(5));
/// A session that lasted so long was a good one.
const SETTLED: Duration = Duration::from_secs(5);
/// A GPU that could not be taken, or is lost, is asked again after so long.
const ASK_LOST_AGAIN: Duration = Duration::from_secs(30);
/// A GPU that answers with an error is asked again after so long.
const ASK_FAILING_AGAIN: Duration = Duration::from_secs(3);
/// A GPU that has not come back so long after a reload is lost.
const COME_BACK: Duration = Duration::from_secs(5);

/// Runs sessions until the schedule is stopped.
pub(crate) fn supervise(shared: &Arc<Shared>) {
    let mut wait = RETRY.0;
    let mut generation = 0;
    while !shared.schedule.is_stopped() {
        let loaded = driver::read_module_version(&shared.machine);
        let candidates = driver::library_candidates(&shared.machine);
        match Session::open(&candidates, &shared.session_calls) {
            Ok(session) => {
                generation += 1;
                let began = Instant::now();
                run(shared, &session, generation);
                end(shared);
                // What has become of the driver is said by the next try, so that comes at once.
                if began.elapsed() > SETTLED {
                    wait = RETRY.0;
                    continue;
                }
            }
            Err(error) => {
                shared.set_status(|status| {
                    let generation = status.generation;
                    let session = SessionState::Failed { code: error.code, answer: error.answer };
                    *status = Status { session, generation, ..Status::default() };
                });
                shared.news();
            }
        }
        // A module that comes, goes or changes is worth a try at once.
        let until = Instant::now() + wait;
        let mut tick = 0;
        while Instant::now() < until && driver::read_module_version(&shared.machine) == loaded {
            match shared.schedule.wait_after(tick) {
                Some(now) => tick = now,
                None => return,
            }
        }
        wait = if Instant::now() < until { RETRY.0 } else { (wait * 2).min(RETRY.1) };
    }
}

/// Marks everything as without a driver.
fn end(shared: &Shared) {
    let since_ms = shared.machine.now_ms();
    for slot in shared.slots() {
        if slot.known().answers() {
            let answer = "the driver has gone".to_string();
            slot.set_health(&Health::Failing { code: codes::UNINITIALIZED, since_ms, answer });
        }
    }
    shared.set_status(|status| {
        // A session that never came to anything has said why, and that stands until the next try.
        if status.session == SessionState::Open {
            status.session = SessionState::Starting;
        }
    });
}

fn run(shared: &Arc<Shared>, session: &Session, generation: u32) {
    let driver_version = session.driver_version();
    shared.set_driver_version(driver_version.text());
    let count = session.gpu_count();
    shared.set_status(|status| {
        *status = Status {
            session: SessionState::Open,
            generation,
            library_path: session.path.display().to_string().into(),
            driver_version,
            nvml_version: session.nvml_version(),
            gpu_count: count.clone().into(),
            ..Status::default()
        };
    });
    let count = match count {
        Ok(count) => count,
        Err(absence) => {
            let answer = format!("the library does not count the GPUs: {absence}");
            let code = if absence == Absence::TooOld { codes::FUNCTION_NOT_FOUND } else { 0 };
            shared.set_status(|status| status.session = SessionState::Failed { code, answer });
            return;
        }
    };
    if generation == 1 {
        shared.make_slots(count);
    }
    shared.expect(count as usize);
    shared.news();
    let over = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..count {
            let name = format!("gpu {number}");
            let task = move || {
                let read = || gpu(scope, shared, session, generation, number, over);
                if catch_unwind(AssertUnwindSafe(read)).is_err() {
                    give_up(shared, number);
                }
            };
            // Without a thread the GPU stays "starting"; the others go on.
            let _ = Builder::new().name(name).stack_size(STACK_BYTES).spawn_scoped(scope, task);
        }
        let rest = Builder::new().name("events".into()).stack_size(STACK_BYTES);
        let _ = rest.spawn_scoped(scope, move || events(shared, session, over));
        let rest = Builder::new().name("topology".into()).stack_size(STACK_BYTES);
        let _ = rest.spawn_scoped(scope, move || topology(shared, session, over));
        watch(shared, generation, over);
    });
}

/// A fault of ours in one GPU's thread is that GPU's trouble alone.
fn give_up(shared: &Shared, number: u32) {
    let answer = "reading this GPU broke down inside infertop, please report it".to_string();
    let health = Health::Failing { code: 0, since_ms: shared.machine.now_ms(), answer };
    for slot in shared.slots().iter().filter(|slot| slot.index == number) {
        slot.set_health(&health);
    }
}

/// Ends the session when nothing of it is left.
fn watch(shared: &Shared, generation: u32, over: &AtomicBool) {
    let began = Instant::now();
    let mut tick = 0;
    while let Some(now) = shared.schedule.wait_after(tick) {
        tick = now;
        if over.load(Relaxed) {
            return;
        }
        let slots = shared.slots();
        if began.elapsed() > COME_BACK {
            for slot in slots.iter().filter(|slot| !slot.is_of(generation)) {
                if !matches!(slot.known().health, Health::Lost { .. }) {
                    let since_ms = shared.machine.now_ms();
                    let answer = "not found when the driver came back".to_string();
                    slot.set_health(&Health::Lost { since_ms, answer });
                }
            }
        }
        let lost = |slot: &Arc<Slot>| matches!(slot.known().health, Health::Lost { .. });
        if !slots.is_empty() && slots.iter().all(lost) && began.elapsed() > ASK_LOST_AGAIN {
            over.store(true, Relaxed);
            return;
        }
    }
    over.store(true, Relaxed);
}

/// Waits for the next tick of a session that goes on.
fn next(shared: &Shared, over: &AtomicBool, tick: u64) -> Option<u64> {
    shared.schedule.wait_after(tick).filter(|_| !over.load(Relaxed))
}

/// Waits until `until`, tick by tick; `None` when the session ends before.
fn wait(shared: &Shared, over: &AtomicBool, until: Instant, mut tick: u64) -> Option<u64> {
    while Instant::now() < until {
        tick = next(shared, over, tick)?;
    }
    Some(tick)
}

fn gpu<'scope>(
    scope: &'scope Scope<'scope, '_>,
    shared: &'scope Arc<Shared>,
    session: &'scope Session,
    generation: u32,
    number: u32,
    over: &'scope AtomicBool,
) {
    let calls: Arc<Calls> = Arc::default();
    calls.adopt_thread();
    // In the first session numbers are the driver's own; later a GPU is known by its UUID, which
    // is told only once it was taken.
    let mut slot = (generation == 1).then(|| shared.claim("", number, generation, &calls));
    let mut tick = 0;
    loop {
        match Device::open(session, &shared.machine, &calls, number) {
            Ok(device) => {
                let uuid = probes::nvml::identity::read_uuid(&device);
                let slot = slot
                    .take()
                    .unwrap_or_else(|| shared.claim(uuid.text(), number, generation, &calls));
                slot.set_handle(device.handle_number());
                sample(scope, shared, session, &device, &slot, over);
                return;
            }
            Err(code) if codes::ends_session(code) => {
                over.store(true, Relaxed);
                return;
            }
            Err(code) => {
                let slot = slot.get_or_insert_with(|| shared.claim("", number, generation, &calls));
                let (since_ms, answer) = (shared.machine.now_ms(), codes::words(code));
                slot.set_health(&if codes::is_lost(code) {
                    Health::Lost { since_ms, answer }
                } else {
                    Health::Failing { code, since_ms, answer }
                });
                shared.posted(tick);
                match wait(shared, over, Instant::now() + ASK_LOST_AGAIN, tick) {
                    Some(now) => tick = now,
                    None => return,
                }
            }
        }
    }
}

fn sample<'scope>(
    scope: &'scope Scope<'scope, '_>,
    shared: &'scope Arc<Shared>,
    session: &'scope Session,
    device: &Device,
    slot: &Arc<Slot>,
    over: &'scope AtomicBool,
) {
    let around = || {
        let fresh = shared.schedule.interval() * 3 + Duration::from_millis(200);
        let mut around = shared.surroundings();
        around.pcie_window = slot.window(fresh);
        around
    };
    let mut reader = GpuReader::new(device, slot.known(), &around());
    let mut tick = 0;
    let cheap_at = Instant::now();
    reader.read_fast(&around());
    slot.post(reader.gpus(), Some((0, cheap_at)));
    shared.posted(0);
    // A GPU that was lost and comes back is told all about then.
    let mut is_told = false;
    if !matches!(reader.health(), Health::Lost { .. }) {
        reader.read_once(&around());
        slot.post(reader.gpus(), None);
        is_told = true;
    }
    if reader.wants_pcie_window() {
        let (handle, slot) = (device.handle_number(), Arc::clone(slot));
        let task = move || pcie_window(shared, session, handle, &slot, over);
        let thread = Builder::new().name("pcie".into()).stack_size(STACK_BYTES);
        let _ = thread.spawn_scoped(scope, task);
    }
    while let Some(now) = next(shared, over, tick) {
        tick = now;
        let cheap_at = Instant::now();
        reader.read_fast(&around());
        if reader.session_is_over() || matches!(reader.health(), Health::Lost { .. }) {
            // The last values stay.
            slot.set_health(reader.health());
        } else {
            slot.post(reader.gpus(), Some((tick, cheap_at)));
        }
        if reader.session_is_over() {
            over.store(true, Relaxed);
            return;
        }
        // A GPU that is gone is left in peace; one that answers with errors is asked more seldom.
        let pause = match reader.health() {
            Health::Lost { .. } => ASK_LOST_AGAIN,
            Health::Failing { .. } => ASK_FAILING_AGAIN,
            _ => {
                shared.posted(tick);
                if is_told {
                    reader.read_slow();
                } else {
                    reader.read_once(&around());
                    is_told = true;
                }
                continue;
            }
        };
        match wait(shared, over, Instant::now() + pause, tick) {
            Some(now) => tick = now,
            None => return,
        }
    }
}

fn pcie_window(shared: &Shared, session: &Session, handle: usize, slot: &Slot, over: &AtomicBool) {
    let calls = slot.window_calls();
    calls.adopt_thread();
    let device = Device::adopt(session, &shared.machine, &calls, handle);
    let mut tick = 0;
    while let Some(now) = next(shared, over, tick) {
        tick = now;
        let rates = read_window(&device);
        let useless = rates.0.is_final() && rates.1.is_final();
        slot.set_window(rates);
        // No traffic to be had here: let the thread go.
        if useless {
            return;
        }
        // At most once a second, whatever the refresh rate: each round blocks the bus's counters
        // for 40 ms.
        let until =
            Instant::now() + Duration::from_millis(900).saturating_sub(shared.schedule.interval());
        match wait(shared, over, until, tick) {
            Some(now) => tick = now,
            None => return,
        }
    }
}

/// Tells the topology once the GPUs answer, and again when one more does.
fn topology(shared: &Shared, session: &Session, over: &AtomicBool) {
    // The library loads libcuda to answer this, which takes its time.
    let (cuda, branch) = (session.cuda_version(), session.branch());
    shared.set_status(|status| {
        status.cuda_version = cuda;
        status.branch = branch;
    });
    let calls: Arc<Calls> = Arc::default();
    let mut known = 0;
    let mut tick = 0;
    while let Some(now) = next(shared, over, tick) {
        tick = now;
        let slots = shared.slots();
        let nodes: Vec<Node> = slots
            .iter()
            .filter_map(|slot| {
                let device =
                    Device::adopt(session, &shared.machine, &calls, slot.answering_handle()?);
                Some(Node { index: slot.index, pci: slot.known().pci.text().to_string(), device })
            })
            .collect();
        if nodes.len() > known {
            known = nodes.len();
            for (index, topology) in read_all(&nodes) {
                if let Some(slot) = slots.iter().find(|slot| slot.index == index) {
                    slot.set_topology(topology);
                }
            }
        }
    }
}

/// Waits for Xids of every GPU that answers; a set that fails is built anew after a while.
fn events(shared: &Shared, session: &Session, over: &AtomicBool) {
    let calls: Arc<Calls> = Arc::default();
    let mut pause = Duration::from_secs(1);
    while !over.load(Relaxed) && !shared.schedule.is_stopped() {
        match watch_events(shared, session, &calls, over) {
            Err(Absence::Unsupported | Absence::TooOld) | Ok(()) => return,
            Err(_) => {
                if wait(shared, over, Instant::now() + pause, 0).is_none() {
                    return;
                }
                pause = (pause * 2).min(Duration::from_mins(1));
            }
        }
    }
}

fn watch_events(
    shared: &Shared,
    session: &Session,
    calls: &Calls,
    over: &AtomicBool,
) -> Result<(), Absence> {
    let mut set = EventSet::new(session)?;
    let mut registered = Vec::new();
    while !over.load(Relaxed) && !shared.schedule.is_stopped() {
        let slots = shared.slots();
        for slot in &slots {
            if !registered.contains(&slot.index)
                && let Some(handle) = slot.answering_handle()
            {
                registered.push(slot.index);
                let device = Device::adopt(session, &shared.machine, calls, handle);
                // A GPU without events is watched through the kernel log alone.
                let _ = set.register(&device, &slot.uuid());
            }
        }
        if let Some((uuid, xid)) = set.wait(|| shared.machine.now_ms())?
            && let Some(slot) = slots.iter().find(|slot| slot.uuid() == uuid)
        {
            slot.add_xid(xid);
        }
    }
    Ok(())
}

/// The session as it stands, with a call that does not return.
pub(crate) fn state(shared: &Shared, stuck_after: Duration, now_ms: u64) -> SessionState {
    let state = shared.status().session;
    match (&state, shared.session_calls.running()) {
        (SessionState::Starting, Some((call, since))) if since >= stuck_after => {
            SessionState::NoAnswer {
                call: call.into(),
                since_ms: now_ms.saturating_sub(u64::try_from(since.as_millis()).unwrap_or(0)),
            }
        }
        _ => state,
    }
}

/// No reading yet, or none any more.
pub(crate) fn without_session(reading: &Reading<String>) -> bool {
    reading.value().is_none()
}
