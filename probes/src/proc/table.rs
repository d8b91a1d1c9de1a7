//! The processes that matter here, followed from tick to tick.
//!
//! Who is followed: whom the driver lists, whom the sweep finds with a device file of the driver open,
//! and what looks like an engine's server above one of these. Every tick reads one small file for each. All the rest is read when a process is new and
//! then again about every ten seconds, the most overdue first, as far as a tick's time for it goes;
//! command lines and mappings come from a thread of their own, because reading them can block. A
//! process is known by its number and its start: another start is another process. One that the
//! driver lists and that is not here stays as a row that says so, with what was known of it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::{Duration, Instant};

use crate::machine::Machine;
use crate::reading::{Absence, Reading};
use crate::snapshot::{Gpu, Stamp};

use super::ancestors::Family;
use super::blocking::{Answer, BlockingReads, Outcome, Question};
use super::container_name::ContainerNames;
use super::fds::DescriptorReader;
use super::front_ends::FrontEnds;
use super::namespace::read_view;
use super::not_here::{NotHere, without_procfs};
use super::sockets::Listeners;
use super::stat::{parse_boot_time, parse_stat};
pub use super::sweep::Coverage;
use super::sweep::Sweep;
use super::task::{ProcRoot, reread};
use super::tracked::{Sources, Tracked};
use super::users::Users;
use super::uses::{join_uses, open_uses, stale_uses};
use super::{GpuUse, Process};

/// How old the slow parts get, at least.
const SLOW_MS: u64 = 10_000;

/// The same for command lines, which change once: when a title is set, and then the name changes too.
const COMMAND_MS: u64 = 30_000;

/// Mappings are dear to read (an engine has ten thousand) and change little.
const MAPS_MS: u64 = 60_000;

/// After a dear read (mappings, listening sockets) this many times its length is paused before the
/// next one that is no first one: a quarter percent of one core.
const PAUSE: u32 = 400;

/// A process that did not answer is asked again only after this.
const NO_ANSWER_MS: u64 = 60_000;

/// A tick's time for slow parts of known processes.
const SLOW_STEP: Duration = Duration::from_micros(300);

/// For how many processes the file of every tick is kept open.
const MOST_OPEN: usize = 256;

/// The clock may be set while we run, and the time of boot with it.
const BOOT_MS: u64 = 300_000;

/// How long a read may take before it counts as stuck.
const DEADLINE: Duration = Duration::from_millis(500);

/// How long a tick waits for the command lines of new processes.
const PATIENCE: Duration = Duration::from_millis(100);

/// Follows processes that use or hold a GPU.
#[derive(Debug)]
pub struct ProcessTable {
    machine: Machine,
    sources: Option<Sources>,
    boot_read_ms: u64,
    tracked: BTreeMap<u32, Tracked>,
    gone: NotHere,
    front_ends: FrontEnds,
    /// Another chain stands above a holder, or there are other holders.
    family_changed: bool,
    reads: BlockingReads,
    patience: Duration,
    dear_free_at: Instant,
    sweep: Sweep,
}

impl ProcessTable {
    /// Nothing is read before the first tick.
    pub fn new(machine: Machine) -> Self {
        Self {
            reads: BlockingReads::new(machine.clone(), DEADLINE),
            machine,
            sources: None,
            boot_read_ms: 0,
            tracked: BTreeMap::new(),
            gone: NotHere::default(),
            front_ends: FrontEnds::default(),
            family_changed: false,
            patience: PATIENCE,
            dear_free_at: Instant::now(),
            sweep: Sweep::default(),
        }
    }

    /// Another limit for reads that can block; a tick waits at most as long for new command lines.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.reads = BlockingReads::new(self.machine.clone(), deadline);
        self.patience = PATIENCE.min(deadline);
        self
    }

    /// Memory is held by nobody visible: look at everyone's descriptors within seconds. Call as often
    /// as you like, it happens every two minutes at most.
    pub fn hurry(&mut self) {
        self.sweep.hurry();
    }

    /// How many processes there are, and into how many we may not look.
    pub fn coverage(&self) -> Coverage {
        self.sweep.coverage()
    }

    /// Reads what is due and returns all processes that use or hold a GPU, those with the most GPU
    /// memory first; behind them the servers above them that are on none.
    pub fn tick(&mut self, now_ms: u64, gpus: &[Gpu]) -> Vec<Process> {
        let uses = join_uses(gpus);
        let mut sources = match self.sources.take().map_or_else(|| self.open_sources(), Ok) {
            Ok(sources) => sources,
            Err(why) => return without_procfs(&uses, &why, now_ms),
        };
        sources.family.refresh(now_ms);
        self.read_boot_time(&mut sources, now_ms);
        self.apply_answers(&mut sources, now_ms);

        for tracked in self.tracked.values_mut() {
            tracked.listed = false;
            tracked.foreign = false;
        }
        let mut rows: BTreeMap<u32, Vec<GpuUse>> = BTreeMap::new();
        let mut absent: BTreeMap<u32, Vec<GpuUse>> = BTreeMap::new();
        for (pid, uses) in uses {
            if let Some(here) = self.resolve(pid, &sources) {
                rows.entry(here).or_default().extend(uses);
                continue;
            }
            absent.insert(pid, uses);
            if let Some(other) = self.tracked.get_mut(&pid) {
                other.foreign = true;
            }
        }
        for (&pid, tracked) in &self.tracked {
            let stale = stale_uses(&tracked.process.gpus, gpus);
            if !stale.is_empty() {
                rows.entry(pid).or_default().extend(stale);
            }
        }
        for process in self.gone.rows() {
            let stale = stale_uses(&process.gpus, gpus);
            if !stale.is_empty() {
                absent.entry(process.pid).or_default().extend(stale);
            }
        }

        let holders: Vec<u32> = self.tracked.keys().copied().collect();
        let listed = rows.keys().copied().filter(|pid| !self.tracked.contains_key(pid));
        let mut pids: Vec<u32> = holders.into_iter().chain(listed).collect();
        let tracked = &self.tracked;
        pids.extend(self.sweep.step(&sources.root, &mut sources.descriptors, now_ms, |pid| {
            tracked.contains_key(&pid) || rows.contains_key(&pid)
        }));
        let mut gone_now: BTreeMap<u32, Process> = BTreeMap::new();
        for pid in pids {
            if let Err((why, tracked)) = self.follow(pid, &mut sources, now_ms) {
                let Some(uses) = rows.remove(&pid) else { continue };
                absent.entry(pid).or_insert(uses);
                gone_now.insert(pid, tracked.into_gone(why, now_ms));
            }
        }
        if std::mem::take(&mut self.family_changed) {
            let holders = self
                .tracked
                .iter()
                .filter(|(pid, tracked)| rows.contains_key(pid) || tracked.holds_device());
            let chains = holders.flat_map(|(_, tracked)| &tracked.process.ancestors);
            self.front_ends.look_above(chains, &sources.root, &mut sources.buffer);
        }
        self.follow_front_ends(&mut sources, now_ms);
        self.read_overdue(&mut sources, now_ms);
        let until = Instant::now() + self.patience;
        self.ask(&mut sources, now_ms, until);
        // Those that have just been recognised have their own questions.
        if self.follow_front_ends(&mut sources, now_ms) {
            self.ask(&mut sources, now_ms, until);
        }

        for (&pid, tracked) in &mut self.tracked {
            if let Some(uses) = rows.remove(&pid) {
                tracked.listed = true;
                tracked.process.gpus = uses;
            } else {
                let devices = tracked.process.device_files.value();
                tracked.process.gpus = open_uses(devices.map_or(&[], Vec::as_slice), gpus);
            }
        }
        let (before, front_ends) = (self.tracked.len(), &self.front_ends);
        self.tracked.retain(|&pid, tracked| {
            tracked.front_end = front_ends.is_engine(pid, tracked.start_ticks);
            tracked.listed || tracked.foreign || tracked.front_end || tracked.holds_device()
        });
        self.family_changed |= self.tracked.len() != before;
        self.gone.keep(absent, gone_now, &sources.view, now_ms);
        self.sources = Some(sources);
        self.collect()
    }

    fn open_sources(&self) -> Result<Sources, Absence> {
        let root = ProcRoot::open(&self.machine)?;
        Ok(Sources {
            view: read_view(&root),
            descriptors: DescriptorReader::new(&self.machine),
            machine: self.machine.clone(),
            root,
            listeners: Listeners::default(),
            users: Users::default(),
            container_names: ContainerNames::default(),
            family: Family::default(),
            buffer: Vec::new(),
            boot_ms: None,
            page_bytes: procfs::page_size(),
        })
    }

    fn read_boot_time(&mut self, sources: &mut Sources, now_ms: u64) {
        if sources.boot_ms.is_some() && now_ms.saturating_sub(self.boot_read_ms) < BOOT_MS {
            return;
        }
        self.boot_read_ms = now_ms;
        // The line stands behind one that is long where there are many CPUs.
        let read = sources.root.read("stat", 4 << 20, &mut sources.buffer);
        let seconds = read.ok().and_then(|()| parse_boot_time(&sources.buffer));
        sources.boot_ms = seconds.and_then(|seconds| seconds.checked_mul(1000));
    }

    /// The number here of a process that the driver lists; `None` if it is not one of ours.
    fn resolve(&self, pid: u32, sources: &Sources) -> Option<u32> {
        let view = &sources.view;
        let direct = self.tracked.get(&pid);
        if view.own_depth > 0 && direct.and_then(Tracked::uses_driver) != Some(true) {
            // The driver may have translated for us, who are inside, while our procfs is outside.
            let inner = self.tracked.values().find(|tracked| {
                let pids = tracked.process.namespace_pids.value();
                pids.and_then(|pids| pids.get(view.own_depth)) == Some(&pid)
                    && tracked.namespace.is_some()
                    && tracked.namespace == view.own_namespace
            });
            if let Some(inner) = inner {
                return Some(inner.process.pid);
            }
        }
        // A process of ours with that number that has nothing to do with a GPU is another one.
        let other = view.may_differ() && direct.and_then(Tracked::uses_driver) == Some(false);
        (!other).then_some(pid)
    }

    /// Reads what every tick needs, and everything of a process that is new. When it is not here, the
    /// reason, and what was known of it.
    fn follow(
        &mut self,
        pid: u32,
        sources: &mut Sources,
        now_ms: u64,
    ) -> Result<(), (Absence, Box<Tracked>)> {
        let begin = Instant::now();
        let mut buffer = std::mem::take(&mut sources.buffer);
        let file = self.tracked.get(&pid).and_then(|tracked| tracked.stat_file.as_ref());
        let read = match file {
            Some(file) if reread(file, &mut buffer) => Ok(()),
            _ => sources.root.read_stat(pid, &mut buffer),
        };
        let stat = read.and_then(|()| {
            parse_stat(&buffer).ok_or(Absence::Failed { what: "its stat is no process's".into() })
        });
        sources.buffer = buffer;
        let stat = match stat {
            Ok(stat) => stat,
            Err(why) => {
                let known = self.tracked.remove(&pid);
                self.family_changed |= known.is_some();
                let known = known.unwrap_or_else(|| Tracked::unknown(pid));
                return Err((why, Box::new(known)));
            }
        };
        let count = self.tracked.len();
        // Changed where it stands: it is large to move, at every tick.
        let (tracked, is_new) = match self.tracked.entry(pid) {
            Entry::Occupied(known) if known.get().start_ticks == stat.start_ticks => {
                (known.into_mut(), false)
            }
            other => (other.insert_entry(Tracked::new(pid, &stat)).into_mut(), true),
        };
        self.family_changed |= tracked.apply_stat(stat, sources, now_ms);
        if is_new {
            if let Err(why) = tracked.read_slow(sources, now_ms) {
                let tracked = std::mem::take(tracked);
                self.tracked.remove(&pid);
                return Err((why, Box::new(tracked)));
            }
            // Of plain files an old one would stay readable. Descriptors of our own are not endless.
            if self.machine.is_live() && count < MOST_OPEN {
                tracked.stat_file = sources.root.open_stat(pid);
            }
            // Spread over the pids, so that those who started together do not come together.
            tracked.slow_due_ms = now_ms + SLOW_MS / 2 + u64::from(pid % 50) * SLOW_MS / 50;
        }
        tracked.process.read = stamp(now_ms, begin);
        Ok(())
    }

    /// Follows the servers above the holders that are not followed yet; true if there is a new one.
    fn follow_front_ends(&mut self, sources: &mut Sources, now_ms: u64) -> bool {
        let engines = self.front_ends.engines();
        let new: Vec<(u32, u64)> =
            engines.filter(|(pid, _)| !self.tracked.contains_key(pid)).collect();
        let mut any = false;
        for (pid, start_ticks) in new {
            let followed = self.follow(pid, sources, now_ms);
            match self.tracked.get_mut(&pid) {
                Some(tracked) if tracked.start_ticks == start_ticks => {
                    tracked.front_end = true;
                    any = true;
                }
                // Its number is another's, who is dropped at the end of the tick.
                Some(_) => self.front_ends.forget(pid),
                None if matches!(followed, Err((Absence::Gone, _))) => self.front_ends.forget(pid),
                None => {}
            }
        }
        any
    }

    fn read_overdue(&mut self, sources: &mut Sources, now_ms: u64) {
        let begin = Instant::now();
        let due = self.tracked.values().filter(|tracked| tracked.slow_due_ms <= now_ms);
        let mut due: Vec<(u64, u32)> =
            due.map(|tracked| (tracked.slow_due_ms, tracked.process.pid)).collect();
        due.sort_unstable();
        for (_, pid) in due {
            if let Some(tracked) = self.tracked.get_mut(&pid) {
                // Whether it has ended is seen at the next tick's first read.
                let _ = tracked.read_slow(sources, now_ms);
                tracked.slow_due_ms = now_ms + SLOW_MS;
            }
            if begin.elapsed() >= SLOW_STEP {
                break;
            }
        }
    }

    /// Puts the questions that are due, and waits a little for what is new.
    fn ask(&mut self, sources: &mut Sources, now_ms: u64, until: Instant) {
        let mut new = self.front_ends.ask(&mut self.reads, now_ms);
        let mut free = self.dear_free_at <= Instant::now();
        for (&pid, tracked) in &mut self.tracked {
            let start = tracked.start_ticks;
            if tracked.command_due_ms <= now_ms {
                let question = Question::Command {
                    comm: tracked.process.comm.text().to_string(),
                    parent: tracked.process.parent.get().unwrap_or(0),
                    known: tracked.command_hash,
                };
                if self.reads.ask(pid, start, question) {
                    tracked.command_due_ms = now_ms + COMMAND_MS;
                    new |= tracked.process.command == Reading::default();
                }
            }
            let network = tracked.network.as_deref();
            let due = network.and_then(|n| Some((n, sources.listeners.is_due(n, now_ms)?)));
            if let Some((network, first)) = due
                && (first || free)
            {
                let question = Question::Listeners { namespace: network.to_string() };
                if self.reads.ask(pid, start, question) {
                    sources.listeners.asked(network, now_ms);
                    new |= first;
                    free &= first;
                }
            }
            let first = tracked.process.libraries == Reading::default();
            if tracked.maps_due_ms <= now_ms
                && (first || free)
                && self.reads.ask(pid, start, Question::Maps)
            {
                tracked.maps_due_ms = now_ms + MAPS_MS;
                free &= first;
            }
        }
        if new {
            self.reads.wait_for_urgent(until.saturating_duration_since(Instant::now()));
            self.apply_answers(sources, now_ms);
        }
    }

    fn apply_answers(&mut self, sources: &mut Sources, now_ms: u64) {
        for Answer { pid, start_ticks, outcome, took } in self.reads.answers() {
            if !matches!(outcome, Outcome::Command(_)) {
                self.dear_free_at = Instant::now() + took * PAUSE;
            }
            if let Outcome::Listeners(network, ports) = outcome {
                sources.listeners.answered(&network, ports);
                let all = self.tracked.values_mut();
                for tracked in all.filter(|t| t.network.as_ref() == Some(&network)) {
                    tracked.process.listening_ports =
                        sources.listeners.ports(&network, &tracked.sockets);
                }
                continue;
            }
            if let Outcome::Command(answer) = &outcome {
                self.front_ends.answered(pid, start_ticks, answer, now_ms);
            }
            let tracked = self.tracked.get_mut(&pid);
            let Some(tracked) = tracked.filter(|tracked| tracked.start_ticks == start_ticks) else {
                continue;
            };
            match outcome {
                Outcome::Listeners(..) => {}
                Outcome::Command(answer) => {
                    if answer == Err(Absence::NoAnswer) {
                        tracked.command_due_ms = now_ms + NO_ANSWER_MS;
                    }
                    tracked.apply_command(answer);
                }
                Outcome::Maps(answer) => {
                    if answer == Err(Absence::NoAnswer) {
                        tracked.maps_due_ms = now_ms + NO_ANSWER_MS;
                    }
                    tracked.apply_maps(answer);
                }
            }
        }
    }

    fn collect(&self) -> Vec<Process> {
        let here = self
            .tracked
            .values()
            .filter(|tracked| !tracked.foreign || tracked.front_end || tracked.holds_device());
        let here = here.map(|tracked| &tracked.process);
        let mut all: Vec<&Process> = here.chain(self.gone.rows()).collect();
        all.sort_by_cached_key(|process| {
            (Reverse(process.gpu_bytes()), process.gpus.is_empty(), process.pid)
        });
        all.into_iter().cloned().collect()
    }
}

fn stamp(now_ms: u64, begin: Instant) -> Stamp {
    let took_us = u32::try_from(begin.elapsed().as_micros()).unwrap_or(u32::MAX);
    Stamp { at_ms: now_ms, took_us }
}

#[cfg(test)]
mod tests;
