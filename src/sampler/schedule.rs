//! The ticks: every thread wakes at the same instants, so that readings of different GPUs are of
//! the same moment. A thread that is late skips ticks and never runs after them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The common clock of a sampler's threads. Tick 0 is the start, tick 1 comes early so that rates
/// show soon, and from then on ticks come at the interval.
pub(crate) struct Schedule {
    plan: Mutex<Plan>,
    changed: Condvar,
}

struct Plan {
    base: Instant,
    base_tick: u64,
    interval: Duration,
    stopped: bool,
}

impl Plan {
    fn tick_at(&self, now: Instant) -> u64 {
        match now.checked_duration_since(self.base) {
            None => self.base_tick - 1,
            Some(since) => {
                let ticks = since.as_nanos() / self.interval.as_nanos().max(1);
                self.base_tick + u64::try_from(ticks).unwrap_or(u64::MAX)
            }
        }
    }

    fn instant_of(&self, tick: u64) -> Instant {
        let ticks = u32::try_from(tick.saturating_sub(self.base_tick)).unwrap_or(u32::MAX);
        self.base + self.interval * ticks
    }
}

impl Schedule {
    /// Begins now; the second tick comes after `first`.
    pub(crate) fn new(interval: Duration, first: Duration) -> Self {
        let plan = Plan { base: Instant::now() + first, base_tick: 1, interval, stopped: false };
        Self { plan: Mutex::new(plan), changed: Condvar::new() }
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a tick later than `last` and gives its number; `None` once it is stopped.
    pub(crate) fn wait_after(&self, last: u64) -> Option<u64> {
        let mut plan = self.plan();
        loop {
            if plan.stopped {
                return None;
            }
            let now = Instant::now();
            let tick = plan.tick_at(now);
            if tick > last {
                return Some(tick);
            }
            let wait = plan.instant_of(last + 1).saturating_duration_since(now);
            plan = self.changed.wait_timeout(plan, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The distance between ticks.
    pub(crate) fn interval(&self) -> Duration {
        self.plan().interval
    }

    /// Sets another distance; the next tick comes after it.
    pub(crate) fn set_interval(&self, interval: Duration) {
        let mut plan = self.plan();
        let now = Instant::now();
        plan.base_tick = plan.tick_at(now) + 1;
        plan.base = now + interval;
        plan.interval = interval;
        self.changed.notify_all();
    }

    /// Ends every wait.
    pub(crate) fn stop(&self) {
        self.plan().stopped = true;
        self.changed.notify_all();
    }

    /// Whether it was stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.plan().stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_keep_their_distance_whatever_a_thread_does_between_them() {
        let start = Instant::now();
        let interval = Duration::from_secs(1);
        let plan = Plan { base: start, base_tick: 1, interval, stopped: false };
        assert_eq!(plan.tick_at(start), 1);
        assert_eq!(plan.tick_at(start + Duration::from_millis(2900)), 3);
        assert_eq!(plan.instant_of(4), start + Duration::from_secs(3));
    }

    #[test]
    fn a_stop_ends_a_wait_and_a_change_keeps_numbers_rising() {
        let schedule = Schedule::new(Duration::from_hours(1), Duration::ZERO);
        assert_eq!(schedule.wait_after(0), Some(1));
        schedule.set_interval(Duration::from_millis(1));
        assert!(schedule.wait_after(1).is_some_and(|tick| tick >= 2));
        schedule.stop();
        assert_eq!(schedule.wait_after(u64::MAX - 1), None);
    }
}
