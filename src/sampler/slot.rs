//! A GPU's slot: its thread leaves the latest values here, whoever assembles snapshots takes them.
//! Neither waits for the other.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use probes::nvml::calls::Calls;
use probes::nvml::events::Xid;
use probes::nvml::topology::Topology;
use probes::reading::{Absence, Reading};
use probes::snapshot::{Gpu, Health};

/// Xids that a slot keeps.
const KEPT_XIDS: usize = 16;

/// The latest of one GPU.
pub(crate) struct Slot {
    /// Its number for as long as this sampler runs.
    pub(crate) index: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The GPU and its MIG instances; never empty.
    gpus: Vec<Gpu>,
    calls: Arc<Calls>,
    window_calls: Arc<Calls>,
    window: Option<(Instant, Reading<f64>, Reading<f64>)>,
    topology: Topology,
    xids: Vec<Xid>,
    handle: Option<usize>,
    generation: u32,
    /// The tick that was posted last, and when its cheap counters were read.
    tick: Option<u64>,
    cheap_at: Option<Instant>,
    counted: u64,
}

impl Slot {
    pub(crate) fn new(index: u32) -> Self {
        let gpus = vec![Gpu { index, ..Gpu::default() }];
        Self { index, state: Mutex::new(State { gpus, ..State::default() }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread of this generation begins to fill the slot.
    pub(crate) fn claim(&self, generation: u32, calls: &Arc<Calls>) {
        let mut state = self.state();
        state.generation = generation;
        state.calls = Arc::clone(calls);
        state.handle = None;
        state.tick = None;
        state.window = None;
        state.counted = 0;
    }

    /// Whether a thread of this generation fills it.
    pub(crate) fn is_of(&self, generation: u32) -> bool {
        self.state().generation == generation
    }

    /// The GPU as it was last, for a thread that begins.
    pub(crate) fn known(&self) -> Gpu {
        self.state().gpus[0].clone()
    }

    /// UUID of the GPU, where it was ever told.
    pub(crate) fn uuid(&self) -> String {
        self.state().gpus[0].uuid.text().to_string()
    }

    /// Leaves new values. `tick` is set when its cheap counters are among them.
    pub(crate) fn post(&self, gpus: Vec<Gpu>, tick: Option<(u64, Instant)>) {
        let mut state = self.state();
        state.gpus = gpus;
        if let Some((tick, cheap_at)) = tick {
            state.tick = Some(tick);
            state.cheap_at = Some(cheap_at);
        }
    }

    /// Says how the GPU answers, with the values as they were; what never was read has a reason now.
    pub(crate) fn set_health(&self, health: &Health) {
        for gpu in &mut self.state().gpus {
            gpu.health = health.clone();
            match health {
                Health::Lost { .. } => gpu.explain_unread(&Absence::Lost),
                Health::Failing { answer, .. } => {
                    gpu.explain_unread(&Absence::Failed { what: answer.clone() });
                }
                _ => {}
            }
        }
    }

    pub(crate) fn set_handle(&self, handle: usize) {
        self.state().handle = Some(handle);
    }

    /// The handle of a GPU that answers.
    pub(crate) fn answering_handle(&self) -> Option<usize> {
        let state = self.state();
        state.handle.filter(|_| state.gpus[0].answers() && state.calls.running().is_none_or(quick))
    }

    pub(crate) fn set_topology(&self, topology: Topology) {
        self.state().topology = topology;
    }

    pub(crate) fn add_xid(&self, xid: Xid) {
        let mut state = self.state();
        if state.xids.len() == KEPT_XIDS {
            state.xids.remove(0);
        }
        state.xids.push(xid);
    }

    /// The meter of the thread that makes the blocking PCIe call.
    pub(crate) fn window_calls(&self) -> Arc<Calls> {
        Arc::clone(&self.state().window_calls)
    }

    pub(crate) fn set_window(&self, (tx, rx): (Reading<f64>, Reading<f64>)) {
        self.state().window = Some((Instant::now(), tx, rx));
    }

    /// The latest traffic of the blocking call, unless it is older than `fresh`.
    pub(crate) fn window(&self, fresh: Duration) -> Option<(Reading<f64>, Reading<f64>)> {
        let state = self.state();
        let (at, tx, rx) = state.window.clone()?;
        // A call that this GPU does not have is not made again.
        if at.elapsed() < fresh || tx.is_final() && rx.is_final() {
            return Some((tx, rx));
        }
        let late = || Reading::Absent(Absence::NoAnswer);
        Some((late(), late()))
    }

    /// How the GPU's thread stands: its values, with the call that it is stuck in, if it is.
    pub(crate) fn view(&self, stuck_after: Duration, now_ms: u64) -> View {
        let mut state = self.state();
        let running = state.calls.running();
        let mut gpus = state.gpus.clone();
        gpus[0].topology = state.topology.clone();
        gpus[0].xids.clone_from(&state.xids);
        let stuck = running.filter(|(_, since)| *since >= stuck_after);
        if let Some((call, since)) = stuck {
            let since_ms = now_ms.saturating_sub(u64::try_from(since.as_millis()).unwrap_or(0));
            let thread = state.calls.thread_state();
            for gpu in &mut gpus {
                let (call, thread) = (call.to_string(), thread.clone());
                gpu.health = Health::NoAnswer { call, since_ms, thread };
            }
        }
        let count = state.calls.count() + state.window_calls.count();
        let calls_since = count.saturating_sub(state.counted);
        state.counted = count;
        View {
            gpus,
            stuck: stuck.is_some(),
            tick: state.tick,
            cheap_at: state.cheap_at,
            calls_since,
        }
    }

    /// The meters of the slot's threads.
    pub(crate) fn meters(&self) -> [Arc<Calls>; 2] {
        let state = self.state();
        [Arc::clone(&state.calls), Arc::clone(&state.window_calls)]
    }
}

fn quick((_, since): (&'static str, Duration)) -> bool {
    since < Duration::from_millis(500)
}

/// What a slot holds at one moment.
pub(crate) struct View {
    pub(crate) gpus: Vec<Gpu>,
    pub(crate) stuck: bool,
    pub(crate) tick: Option<u64>,
    pub(crate) cheap_at: Option<Instant>,
    /// Driver calls since this was asked last.
    pub(crate) calls_since: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_has_not_returned_is_named_and_the_last_values_stay() {
        let slot = Slot::new(3);
        let calls = Arc::new(Calls::default());
        slot.claim(1, &calls);
        let gpu = Gpu { index: 3, uuid: "GPU-3".to_string().into(), ..Gpu::default() };
        slot.post(vec![gpu], Some((0, Instant::now())));
        let view = calls.run("nvmlStuck", || slot.view(Duration::ZERO, 10_000));
        assert!(view.stuck);
        assert!(
            matches!(&view.gpus[0].health, Health::NoAnswer { call, .. } if call == "nvmlStuck")
        );
        assert_eq!(view.gpus[0].uuid.text(), "GPU-3");
        assert!(!slot.view(Duration::ZERO, 10_000).stuck);
    }
}
