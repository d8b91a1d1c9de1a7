//! What happens around every call of a stand-in library: it is counted, the driver may be gone,
//! it takes its time, it may fail, hang or lie. No lock is held meanwhile, so 64 threads on 64
//! GPUs wait side by side, and waiting is sleeping, so the processor time measured in a caller
//! is the caller's own.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::machine::matches;
use crate::site::Site;
use crate::spec;

/// An exported function.
#[derive(Debug)]
pub struct Symbol {
    name: &'static str,
    resolved: OnceLock<Resolved>,
}

#[derive(Debug)]
struct Resolved {
    latency: Duration,
    faults: Vec<Armed>,
    calls: &'static AtomicU64,
}

#[derive(Debug)]
struct Armed {
    gpus: Option<Vec<usize>>,
    fault: &'static spec::Fault,
    seen: AtomicU64,
}

/// How a call goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// As the box says.
    Honest,
    /// With this value in place of the true one.
    Lie(f64),
    /// With this code.
    Fail(u32),
    /// With a list that tells too small a length, by so many rows.
    Understate(u32),
}

impl Verdict {
    /// The value to give in place of the true one.
    pub fn lie(self) -> Option<f64> {
        if let Self::Lie(lie) = self { Some(lie) } else { None }
    }

    /// By how many rows to understate a list.
    pub fn understated(self) -> u32 {
        if let Self::Understate(rows) = self { rows } else { 0 }
    }
}

impl Symbol {
    /// A function by its exported name.
    pub const fn new(name: &'static str) -> Self {
        Self { name, resolved: OnceLock::new() }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    fn resolved(&self, site: &'static Site) -> &Resolved {
        self.resolved.get_or_init(|| Resolved {
            latency: microseconds(site.machine.latency_us(self.name)),
            faults: site
                .machine
                .faults
                .iter()
                .filter(|fault| matches(&fault.symbol, self.name))
                .map(|fault| Armed {
                    gpus: fault
                        .gpu
                        .as_ref()
                        .map(|which| which.indices(site.machine.gpus.len()).unwrap_or_default()),
                    fault,
                    seen: AtomicU64::new(0),
                })
                .collect(),
            calls: site.counter(self.name),
        })
    }

    /// Counts the call, lets its time pass and says what becomes of it. `gpu` is the GPU asked.
    pub fn enter(&self, site: &'static Site, gpu: Option<usize>) -> Verdict {
        let resolved = self.resolved(site);
        resolved.calls.fetch_add(1, Ordering::Relaxed);
        let mut wait = resolved.latency;
        let mut verdict = Verdict::Honest;
        if !resolved.faults.is_empty() {
            let t = site.seconds();
            for armed in &resolved.faults {
                let here = match (&armed.gpus, gpu) {
                    (None, _) => true,
                    (Some(gpus), Some(gpu)) => gpus.contains(&gpu),
                    (Some(_), None) => false,
                };
                if !here || t < armed.fault.at || armed.fault.until.is_some_and(|end| t >= end) {
                    continue;
                }
                if armed.seen.fetch_add(1, Ordering::Relaxed) < armed.fault.after_calls {
                    continue;
                }
                if armed.fault.hang {
                    hang();
                }
                if let Some(us) = armed.fault.latency_us {
                    wait += microseconds(us);
                }
                if let Some(code) = armed.fault.code {
                    verdict = Verdict::Fail(code);
                } else if let Some(value) = &armed.fault.value {
                    verdict = Verdict::Lie(value.at(t));
                } else if armed.fault.grow > 0 {
                    verdict = Verdict::Understate(armed.fault.grow);
                }
            }
        }
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
        verdict
    }

    /// Notes the call in the trace.
    pub fn leave(
        &self,
        site: &'static Site,
        gpu: Option<usize>,
        begun: Option<Instant>,
        code: u32,
    ) {
        if let Some(begun) = begun {
            site.trace(self.name, gpu, begun.elapsed(), code);
        }
    }
}

/// A call that does not come back. The real thing cannot even be killed; this one ends with its
/// process.
fn hang() -> ! {
    loop {
        std::thread::sleep(Duration::from_hours(1));
    }
}

fn microseconds(us: f64) -> Duration {
    Duration::try_from_secs_f64(us / 1e6).unwrap_or_default()
}
