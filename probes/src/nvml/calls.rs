//! The meter of driver calls: which one is running since when, how many there were, what they took.
//!
//! A GPU's thread writes it, whoever assembles snapshots reads it; that is how a call that never
//! returns is named.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::self_cost::CallCost;

/// The meter of one thread that calls the driver.
#[derive(Default)]
pub struct Calls {
    current: Mutex<Option<(&'static str, Instant)>>,
    costs: Mutex<HashMap<&'static str, Cost>>,
    count: AtomicU64,
    nanos: AtomicU64,
    dropped: AtomicU64,
    thread: AtomicI32,
}

#[derive(Clone, Copy, Default)]
struct Cost {
    count: u64,
    total: Duration,
    max: Duration,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Calls {
    /// Runs a call and notes it.
    pub fn run<R>(&self, name: &'static str, call: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        *lock(&self.current) = Some((name, start));
        let answer = call();
        let took = start.elapsed();
        *lock(&self.current) = None;
        self.count.fetch_add(1, Relaxed);
        self.nanos.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        let mut costs = lock(&self.costs);
        let cost = costs.entry(name).or_default();
        cost.count += 1;
        cost.total += took;
        cost.max = cost.max.max(took);
        answer
    }

    /// The call that runs now, and for how long it has.
    pub fn running(&self) -> Option<(&'static str, Duration)> {
        lock(&self.current).map(|(name, since)| (name, since.elapsed()))
    }

    /// Calls so far.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Time inside calls so far, the running one not counted.
    pub fn seconds(&self) -> f64 {
        self.nanos.load(Relaxed) as f64 / 1e9
    }

    /// Notes a value that cannot be.
    pub fn drop_value(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }

    /// Values dropped so far.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Says that the current thread is the one that calls.
    pub fn adopt_thread(&self) {
        self.thread.store(rustix::thread::gettid().as_raw_nonzero().get(), Relaxed);
    }

    /// State and kernel function of the calling thread, `D rpcSendMessage`; empty where unknown.
    pub fn thread_state(&self) -> String {
        let task = format!("/proc/self/task/{}", self.thread.load(Relaxed));
        let stat = std::fs::read_to_string(format!("{task}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(')').map_or("", |(_, rest)| rest.trim());
        let state = state.split_ascii_whitespace().next().unwrap_or_default();
        let wchan = std::fs::read_to_string(format!("{task}/wchan")).unwrap_or_default();
        format!("{state} {}", wchan.trim_matches(['0', '\n'])).trim().to_string()
    }

    /// What each kind of call costs, dearest first.
    pub fn costs<'a>(meters: impl Iterator<Item = &'a Self>) -> Vec<CallCost> {
        let mut sums: HashMap<&'static str, Cost> = HashMap::new();
        for meter in meters {
            for (name, cost) in lock(&meter.costs).iter() {
                let sum = sums.entry(name).or_default();
                sum.count += cost.count;
                sum.total += cost.total;
                sum.max = sum.max.max(cost.max);
            }
        }
        let mut costs: Vec<_> = sums.into_iter().collect();
        costs.sort_by_key(|(name, cost)| (std::cmp::Reverse(cost.total), *name));
        costs
            .into_iter()
            .map(|(name, cost)| CallCost {
                call: name.to_string(),
                count: cost.count,
                mean_us: cost.total.as_secs_f64() * 1e6 / cost.count.max(1) as f64,
                max_us: u32::try_from(cost.max.as_micros()).unwrap_or(u32::MAX),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_call_is_named_and_a_finished_one_is_counted() {
        let calls = Calls::default();
        let inside = calls.run("nvmlA", || calls.running().map(|(name, _)| name));
        assert_eq!(inside, Some("nvmlA"));
        assert_eq!(calls.running(), None);
        assert_eq!(calls.count(), 1);
        assert_eq!(Calls::costs([&calls].into_iter())[0].call, "nvmlA");
    }
}
