//! What the rows are made of, gathered once for an answer. Nothing here waits.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use probes::finding::{Finding, Subject};
use probes::ledger::{Ledger, ledgers};
use probes::self_cost::SelfCost;
use probes::snapshot::{Gpu, Snapshot};

use crate::daemon::hub::{Hub, Sampling};
use crate::exporter::Scrapes;
use crate::moment::Moment;
use crate::own_cost;
use crate::store::StoreStatus;

/// A snapshot is old after so many intervals and this.
const FRESH_INTERVALS: u32 = 3;
const FRESH_BESIDES: Duration = Duration::from_secs(2);

/// Drivers that keep a GPU for a virtual machine: it is not this driver's.
const PASSED_ON: [&str; 3] = ["vfio-pci", "pci-stub", "pciback"];

/// How everything stands.
pub(in crate::exporter) struct Facts {
    moment: Option<Arc<Moment>>,
    pub(super) age: Option<Duration>,
    pub(super) sampling: Sampling,
    pub(super) sampler_starts: u64,
    pub(super) store: StoreStatus,
    pub(super) config_broken: bool,
    pub(super) started_ms: u64,
    pub(super) cpu_seconds: f64,
    pub(super) rss_bytes: Option<u64>,
    pub(super) scrapes: u64,
    pub(super) scrape_seconds: f64,
    ledgers: Vec<Ledger>,
}

impl Facts {
    pub(in crate::exporter) fn gather(hub: &Hub, scrapes: &Scrapes) -> Self {
        let moment = hub.newest.borrow().clone();
        let age = moment.as_ref().map(|moment| moment.came.elapsed());
        let mut facts = Self {
            moment,
            age,
            sampling: hub.sampling.borrow().clone(),
            sampler_starts: hub.sampler_starts.load(Relaxed),
            store: hub.store.status(),
            config_broken: hub.config_trouble.borrow().is_some(),
            started_ms: hub.started_ms,
            cpu_seconds: own_cost::cpu_seconds(),
            rss_bytes: own_cost::memory().0.get(),
            scrapes: scrapes.answers.load(Relaxed),
            scrape_seconds: scrapes.nanoseconds.load(Relaxed) as f64 / 1e9,
            ledgers: Vec::new(),
        };
        facts.ledgers = facts.fresh().map(|moment| ledgers(&moment.snapshot)).unwrap_or_default();
        facts
    }

    /// The newest moment, unless it tells of the past.
    pub(in crate::exporter) fn fresh(&self) -> Option<&Arc<Moment>> {
        let moment = self.moment.as_ref()?;
        let interval = Duration::from_millis(moment.snapshot.interval_ms);
        let is_fresh = self.age? <= interval * FRESH_INTERVALS + FRESH_BESIDES;
        (is_fresh && !self.is_released()).then_some(moment)
    }

    pub(super) fn is_released(&self) -> bool {
        matches!(self.sampling, Sampling::Released { .. } | Sampling::Releasing { .. })
    }

    /// The newest snapshot, however old.
    pub(super) fn last(&self) -> Option<&Snapshot> {
        self.moment.as_ref().map(|moment| &moment.snapshot)
    }

    /// Snapshots that have come.
    pub(super) fn frames(&self) -> u64 {
        self.moment.as_ref().map_or(0, |moment| moment.number)
    }

    /// GPUs that are no MIG instances, with whether they answer now. One that nobody asks does not.
    pub(super) fn gpus(&self) -> impl Iterator<Item = (&Gpu, bool)> {
        let fresh = self.fresh().is_some();
        let gpus = self.last().into_iter().flat_map(|snapshot| &snapshot.gpus);
        gpus.filter(|gpu| gpu.mig.is_none()).map(move |gpu| (gpu, fresh && gpu.answers()))
    }

    /// GPUs that this box should have: those on the bus that are not passed on to a virtual machine,
    /// or those that the driver counts, whichever are more. A container sees all of the host's bus
    /// and is given a part of it.
    pub(super) fn expected(&self) -> Option<usize> {
        let driver = &self.last()?.driver;
        let listed = self.gpus().count();
        let counted = driver.gpu_count.get().map(|count| count as usize);
        let seen = driver.pci_gpus.value().filter(|_| driver.container.is_none());
        let on_bus = seen.map(|gpus| {
            gpus.iter().filter(|gpu| !PASSED_ON.contains(&gpu.driver.as_str())).count()
        });
        let known = (listed > 0).then_some(listed);
        [known, counted, on_bus].into_iter().flatten().max()
    }

    /// Sums of the GPUs and MIG instances that answer.
    pub(super) fn ledgers(&self) -> impl Iterator<Item = (&Gpu, &Ledger)> {
        let gpus = self.fresh().into_iter().flat_map(|moment| &moment.snapshot.gpus);
        gpus.zip(&self.ledgers).filter(|(gpu, _)| gpu.answers())
    }

    /// What is wrong, if anybody looks.
    pub(super) fn findings(&self) -> Option<&[Finding]> {
        self.fresh().map(|moment| &moment.findings[..])
    }

    /// What the sampler costs, if it runs.
    pub(super) fn sampler(&self) -> Option<&SelfCost> {
        self.fresh().map(|moment| &moment.snapshot.self_cost)
    }
}

/// The GPU that a finding is about; empty for anything else.
pub(super) fn gpu_of(finding: &Finding) -> String {
    match finding.subject {
        Subject::Gpu(index) => index.to_string(),
        Subject::Box | Subject::Process(_) => String::new(),
    }
}
