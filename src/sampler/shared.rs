//! What the sampler's threads share: the ticks, the slots, the state of the driver's session.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use probes::driver::Session as SessionState;
use probes::machine::Machine;
use probes::nvml::calls::Calls;
use probes::nvml::reader::Surroundings;
use probes::reading::Reading;

use super::schedule::Schedule;
use super::slot::Slot;

/// Shared by all threads of a sampler.
pub(crate) struct Shared {
    pub(crate) machine: Machine,
    pub(crate) schedule: Schedule,
    /// Calls that are made for no GPU in particular.
    pub(crate) session_calls: Arc<Calls>,
    slots: RwLock<Vec<Arc<Slot>>>,
    status: Mutex<Status>,
    surroundings: Mutex<Surroundings>,
    round: Mutex<Round>,
    round_done: Condvar,
}

/// The driver's session as it stands.
#[derive(Clone, Default)]
pub(crate) struct Status {
    pub(crate) session: SessionState,
    pub(crate) generation: u32,
    pub(crate) library_path: Reading<String>,
    pub(crate) driver_version: Reading<String>,
    pub(crate) nvml_version: Reading<String>,
    pub(crate) cuda_version: Reading<String>,
    pub(crate) branch: Reading<String>,
    pub(crate) gpu_count: Reading<u32>,
}

/// Who has posted in the tick that is under way.
#[derive(Default)]
struct Round {
    tick: u64,
    posted: usize,
    expected: usize,
    /// Something that should not wait for the next tick: the first values of a session.
    news: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(machine: Machine, schedule: Schedule) -> Self {
        Self {
            machine,
            schedule,
            session_calls: Arc::default(),
            slots: RwLock::default(),
            status: Mutex::default(),
            surroundings: Mutex::default(),
            round: Mutex::default(),
            round_done: Condvar::new(),
        }
    }

    pub(crate) fn slots(&self) -> Vec<Arc<Slot>> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes room for GPUs that were never seen, so that each gets the driver's number at first sight.
    pub(crate) fn make_slots(&self, count: u32) {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        for index in u32::try_from(slots.len()).unwrap_or(u32::MAX)..count {
            slots.push(Arc::new(Slot::new(index)));
        }
    }

    /// The slot for a GPU of this generation: the one with its UUID, else the one with its number
    /// that nobody of this generation fills, else a new one at the end. A GPU keeps its slot when
    /// others are lost and the driver counts anew.
    pub(crate) fn claim(
        &self,
        uuid: &str,
        number: u32,
        generation: u32,
        calls: &Arc<Calls>,
    ) -> Arc<Slot> {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let free = |slot: &&Arc<Slot>| !slot.is_of(generation);
        let by_uuid = slots.iter().find(|slot| !uuid.is_empty() && slot.uuid() == uuid);
        let by_number = || {
            let fits = |slot: &&Arc<Slot>| uuid.is_empty() || slot.uuid().is_empty();
            slots.iter().filter(free).filter(fits).find(|slot| slot.index == number)
        };
        let found = by_uuid.or_else(by_number).cloned();
        let slot = found.unwrap_or_else(|| {
            let slot = Arc::new(Slot::new(u32::try_from(slots.len()).unwrap_or(u32::MAX)));
            slots.push(Arc::clone(&slot));
            slot
        });
        slot.claim(generation, calls);
        slot
    }

    pub(crate) fn status(&self) -> Status {
        lock(&self.status).clone()
    }

    pub(crate) fn set_status(&self, set: impl FnOnce(&mut Status)) {
        set(&mut lock(&self.status));
    }

    pub(crate) fn surroundings(&self) -> Surroundings {
        lock(&self.surroundings).clone()
    }

    pub(crate) fn set_system_memory(&self, memory: Option<(u64, u64)>) {
        lock(&self.surroundings).system_memory = memory;
    }

    pub(crate) fn set_driver_version(&self, version: &str) {
        lock(&self.surroundings).driver_version = version.into();
    }

    /// How many posts end the wait for a round.
    pub(crate) fn expect(&self, slots: usize) {
        lock(&self.round).expected = slots;
    }

    /// A GPU's cheap counters of this tick are in its slot.
    pub(crate) fn posted(&self, tick: u64) {
        let mut round = lock(&self.round);
        if tick > round.tick {
            round.tick = tick;
            round.posted = 0;
        }
        if tick == round.tick {
            round.posted += 1;
        }
        if round.posted >= round.expected {
            self.round_done.notify_all();
        }
    }

    /// Asks for a snapshot before the next tick.
    pub(crate) fn news(&self) {
        lock(&self.round).news = true;
        self.round_done.notify_all();
    }

    /// Waits until everyone has posted in this tick, for news, or until the deadline.
    pub(crate) fn wait_for_round(&self, tick: u64, deadline: Instant) {
        let mut round = lock(&self.round);
        loop {
            let complete =
                round.tick >= tick && round.expected > 0 && round.posted >= round.expected;
            let left = deadline.saturating_duration_since(Instant::now());
            if complete || round.news || left == Duration::ZERO {
                round.news = false;
                return;
            }
            round =
                self.round_done.wait_timeout(round, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probes::snapshot::Gpu;

    fn shared() -> Shared {
        Shared::new(
            Machine::default(),
            Schedule::new(Duration::from_secs(1), Duration::from_secs(1)),
        )
    }

    #[test]
    fn a_gpu_keeps_its_number_when_another_one_is_gone_after_a_reload() {
        let shared = shared();
        let calls = Arc::default();
        shared.make_slots(3);
        // Threads come in any order.
        for number in [2, 0, 1] {
            let slot = shared.claim("", number, 1, &calls);
            assert_eq!(slot.index, number);
            let uuid = format!("GPU-{number}").into();
            slot.post(vec![Gpu { index: number, uuid, ..Gpu::default() }], None);
        }
        // The driver came back without GPU 1 and counts 0, 1.
        assert_eq!(shared.claim("GPU-0", 0, 2, &calls).index, 0);
        assert_eq!(shared.claim("GPU-2", 1, 2, &calls).index, 2);
        assert!(!shared.slots()[1].is_of(2));
        assert_eq!(shared.claim("GPU-new", 1, 2, &calls).index, 3);
    }

    #[test]
    fn a_round_ends_when_everyone_has_posted_and_not_before_its_deadline_otherwise() {
        let shared = shared();
        shared.expect(2);
        shared.posted(5);
        shared.posted(5);
        shared.wait_for_round(5, Instant::now() + Duration::from_mins(1));
        let start = Instant::now();
        shared.wait_for_round(6, start + Duration::from_millis(20));
        assert!(start.elapsed() >= Duration::from_millis(20));
    }
}
