//! One GPU's readings, from a thread of its own: what is cheap every tick, what is dear every 10 s.
//!
//! The cheap counters of all GPUs are read first and at the same instant, so that ranks can be
//! compared; the rest follows. Slow steps are spread over their period, so that no tick carries all.

use std::time::{Duration, Instant};

use super::codes;
use super::fields::FieldSet;
use super::gpm::{Gpm, GpmPair};
use super::mig::read_instances;
use super::processes::ProcessReader;
use super::session::Device;
use super::{clocks, ecc, identity, nvlink, pcie, power, temperature};
use crate::reading::{Absence, Reading};
use crate::snapshot::{Gpu, Health};

/// How often dear readings are taken.
const SLOW: Duration = Duration::from_secs(10);
/// What says little about a server, so that a GPU stays within twelve calls a second.
const SELDOM: Duration = Duration::from_secs(30);
/// How often it is asked again for what was not supported: modes change.
const ASK_AGAIN: Duration = Duration::from_mins(10);

/// What the box knows and the driver does not tell.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Version of the driver, which decides the numbers of some fields.
    pub driver_version: String,
    /// Main memory, total and available, for GPUs that have none of their own.
    pub system_memory: Option<(u64, u64)>,
    /// Latest traffic of the blocking PCIe call, if its thread runs.
    pub pcie_window: Option<(Reading<f64>, Reading<f64>)>,
}

/// The reader of one GPU and its MIG instances.
pub struct GpuReader<'d, 's> {
    device: &'d Device<'s>,
    gpu: Gpu,
    gpm: Option<GpmPair<'d, 's>>,
    fast: FieldSet,
    slow: FieldSet,
    processes: ProcessReader,
    steps: Vec<(Step, Duration, Instant)>,
    ask_again: Instant,
    instances: Vec<Instance<'d, 's>>,
    /// The driver itself has gone, by its own last answer.
    over: bool,
}

/// A MIG instance, read by its GPU's thread.
struct Instance<'d, 's> {
    device: Device<'s>,
    gpu: Gpu,
    gpm: Option<GpmPair<'d, 's>>,
}

/// A slow step.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    Fields,
    Clocks,
    Modes,
    Media,
    Margin,
    Link,
    Bar1,
    Fabric,
    Graphics,
    Mps,
    Shares,
    Instances,
}

/// Slow steps with their period. Per-process shares and the graphics list come oftener, since people
/// watch them.
const STEPS: [(Step, Duration); 12] = [
    (Step::Shares, Duration::from_secs(2)),
    (Step::Fields, SLOW),
    (Step::Clocks, SLOW),
    (Step::Modes, SLOW),
    (Step::Media, SELDOM),
    (Step::Margin, SLOW),
    (Step::Link, SLOW),
    (Step::Bar1, SELDOM),
    (Step::Fabric, SLOW),
    (Step::Graphics, Duration::from_secs(5)),
    (Step::Mps, SLOW),
    (Step::Instances, SLOW),
];

impl<'d, 's> GpuReader<'d, 's> {
    /// A reader for a GPU that has just been taken; `known` is what was known of it before.
    pub fn new(device: &'d Device<'s>, known: Gpu, around: &Surroundings) -> Self {
        let mut gpu = known;
        let (uuid, name, pci) = identity::read_names(device);
        // A GPU that does not tell its name now keeps the one it had.
        for (old, new) in [(&mut gpu.uuid, uuid), (&mut gpu.name, name), (&mut gpu.pci, pci)] {
            if new.value().is_some() || old.value().is_none() {
                *old = new;
            }
        }
        let mut fast: Vec<(u32, u32)> = clocks::fast_fields(&around.driver_version);
        fast.extend(power::FAST_FIELDS);
        fast.extend(temperature::FAST_FIELDS);
        fast.extend(ecc::FAST_FIELDS);
        fast.extend(pcie::fast_fields());
        fast.extend(nvlink::FAST_FIELDS);
        let now = Instant::now();
        Self {
            device,
            gpu,
            gpm: None,
            fast: FieldSet::new(fast),
            slow: FieldSet::new(slow_fields(0)),
            processes: ProcessReader::new(device),
            steps: STEPS.iter().map(|(step, period)| (*step, *period, now)).collect(),
            ask_again: now + ASK_AGAIN,
            instances: Vec::new(),
            over: false,
        }
    }

    /// The cheap counters. Of a GPU that is gone they are reasons: its last values are with whoever
    /// took them.
    pub fn read_fast(&mut self, around: &Surroundings) {
        self.read_cheap(around);
        self.judge_health();
    }

    fn read_cheap(&mut self, around: &Surroundings) {
        let device = self.device;
        let gpu = &mut self.gpu;
        gpu.memory.read(device, around.system_memory);
        gpu.utilization.read(device);
        self.fast.read(device);
        gpu.clocks.read(device, &self.fast, &around.driver_version);
        gpu.power.read(device, &self.fast);
        gpu.temperature.read(device, &self.fast);
        gpu.ecc.read(device, &self.fast);
        if let Some(gpm) = &mut self.gpm {
            gpm.read(&mut gpu.gpm);
        }
        gpu.pcie.read(device, &self.fast, &gpu.gpm, around.pcie_window.clone());
        gpu.nvlink.read(device, &self.fast, &gpu.gpm);
        self.processes.read(device, &mut gpu.processes);
        for instance in &mut self.instances {
            instance.gpu.memory.read(&instance.device, None);
            if let Some(gpm) = &mut instance.gpm {
                gpm.read(&mut instance.gpu.gpm);
            }
        }
    }

    /// What is read once a session, after the first picture is out.
    pub fn read_once(&mut self, around: &Surroundings) {
        self.gpu.identity.read_once(self.device);
        self.gpu.clocks.read_once(self.device);
        self.gpu.temperature.read_once(self.device);
        self.gpu.pcie.read_once(self.device);
        self.gpm = Some(GpmPair::new(self.device, None));
        if let Some(gpm) = &mut self.gpm {
            gpm.read(&mut self.gpu.gpm);
        }
        let now = Instant::now();
        for step in STEPS.map(|(step, _)| step) {
            self.run(step);
        }
        // From here on the steps are spread over their period.
        let count = u32::try_from(STEPS.len()).unwrap_or(1);
        for (at, (_, period, due)) in (0..).zip(&mut self.steps) {
            *due = now + *period / 2 + *period * at / count / 2;
        }
        self.gpu.pcie.read(self.device, &self.fast, &self.gpu.gpm, around.pcie_window.clone());
        self.gpu.nvlink.read(self.device, &self.fast, &self.gpu.gpm);
        self.processes.read(self.device, &mut self.gpu.processes);
        self.judge_health();
    }

    /// The slow steps that are due.
    pub fn read_slow(&mut self) {
        let now = Instant::now();
        if now >= self.ask_again {
            self.ask_again = now + ASK_AGAIN;
            self.device.ask_all_again();
            self.fast.ask_all_again();
            self.slow.ask_all_again();
        }
        for at in 0..self.steps.len() {
            let (step, period, due) = self.steps[at];
            if now >= due {
                self.steps[at].2 = now + period;
                self.run(step);
            }
        }
    }

    fn run(&mut self, step: Step) {
        let device = self.device;
        let gpu = &mut self.gpu;
        match step {
            Step::Fields => {
                self.slow.read(device);
                gpu.ecc.read_slow(device, &self.slow);
                gpu.power.read_slow(device, &self.slow);
                let had = gpu.nvlink.count.get();
                let (field, scope) = nvlink::COUNT_FIELD;
                gpu.nvlink.set_count(device, self.slow.small(field, scope));
                if had != gpu.nvlink.count.get()
                    && let Some(count) = gpu.nvlink.count.get()
                {
                    self.slow = FieldSet::new(slow_fields(count));
                    self.slow.read(device);
                }
                gpu.nvlink.read_slow(&self.slow);
            }
            Step::Clocks => gpu.clocks.read_slow(device),
            Step::Modes => {
                let before = gpu.identity.mig_enabled.get();
                gpu.identity.read_slow(device);
                if before.is_some() && before != gpu.identity.mig_enabled.get() {
                    device.ask_all_again();
                }
            }
            Step::Media => gpu.utilization.read_media(device),
            Step::Margin => gpu.temperature.read_slow(device, &self.slow),
            Step::Link => gpu.pcie.read_slow(device),
            Step::Bar1 => gpu.memory.read_bar1(device),
            Step::Fabric => gpu.fabric.read_slow(device),
            Step::Graphics => self.processes.read_graphics(device),
            Step::Mps => self.processes.read_mps(device),
            Step::Shares => self.processes.read_shares(device),
            Step::Instances => self.read_instances(),
        }
    }

    /// Instances are keyed by UUID: numbers are reused at once after a change.
    fn read_instances(&mut self) {
        if self.gpu.identity.mig_enabled.get() != Some(true) {
            self.instances.clear();
            return;
        }
        let Ok(found) = read_instances(self.device, self.gpu.uuid.text()) else {
            return;
        };
        let mut known = std::mem::take(&mut self.instances);
        for (device, facts) in found {
            let (uuid, name, _) = identity::read_names(&device);
            let place = known.iter().position(|one| one.gpu.uuid == uuid);
            let (mut gpu, gpm) = if let Some(at) = place {
                let one = known.swap_remove(at);
                (one.gpu, one.gpm)
            } else {
                let number = facts.gpu_instance.get();
                let pair = number.map(|number| GpmPair::new(self.device, Some(number)));
                (instance_of(&self.gpu), pair)
            };
            gpu.index = self.gpu.index;
            gpu.uuid = uuid;
            gpu.name = name;
            gpu.pci = self.gpu.pci.clone();
            gpu.mig = Some(facts);
            gpu.memory.read(&device, None);
            self.instances.push(Instance { device, gpu, gpm });
        }
    }

    fn judge_health(&mut self) {
        let fault = self.device.take_fault();
        let since_ms = match &self.gpu.health {
            Health::Lost { since_ms, .. } | Health::Failing { since_ms, .. } => *since_ms,
            _ => self.device.now_ms(),
        };
        // One call with an odd answer is a reason in its reading; the GPU as a whole fails when
        // its memory cannot be told any more.
        let silent = self.gpu.memory.total_bytes.value().is_none() && !self.gpu.memory.unified;
        // A unified part's memory is told by the system, whatever the driver does.
        let mute = self.gpu.memory.unified && self.gpu.utilization.gpu_ratio.value().is_none();
        self.over = (silent || mute) && fault.is_some_and(codes::ends_session);
        self.gpu.health = match fault {
            Some(code) if codes::is_lost(code) => {
                Health::Lost { since_ms, answer: codes::words(code) }
            }
            Some(code) if code == codes::RESET_REQUIRED || silent || self.over => {
                Health::Failing { code, since_ms, answer: codes::words(code) }
            }
            _ => Health::Answering,
        };
    }

    /// Whether the driver itself has gone: it was unloaded, replaced, or never came back.
    pub fn session_is_over(&self) -> bool {
        self.over
    }

    /// How the GPU answered last.
    pub fn health(&self) -> &Health {
        &self.gpu.health
    }

    /// The GPU and its MIG instances as last read.
    pub fn gpus(&self) -> Vec<Gpu> {
        let mut instances: Vec<Gpu> = self
            .instances
            .iter()
            .map(|instance| {
                let mut gpu = instance.gpu.clone();
                gpu.health = self.gpu.health.clone();
                if let Some(mig) = &gpu.mig {
                    let same = |process: &&super::processes::GpuProcess| {
                        process.gpu_instance == mig.gpu_instance.get()
                            && (process.compute_instance.is_none()
                                || process.compute_instance == mig.compute_instance.get())
                    };
                    gpu.processes.read = self.gpu.processes.read;
                    gpu.processes.list = self
                        .gpu
                        .processes
                        .list
                        .as_ref()
                        .map(|list| list.iter().filter(same).cloned().collect());
                }
                gpu
            })
            .collect();
        instances.insert(0, self.gpu.clone());
        instances
    }

    /// Whether the blocking PCIe call is the only way to this GPU's traffic.
    pub fn wants_pcie_window(&self) -> bool {
        self.gpu.gpm.read.at_ms == 0
            && !self.gpu.pcie.has_cheap_rate()
            && self.gpu.gpm.supported.get() == Some(false)
    }
}

/// The fields of the slow batch for a GPU with so many NVLinks.
fn slow_fields(links: u32) -> Vec<(u32, u32)> {
    let mut fields = ecc::slow_fields();
    fields.extend(power::SLOW_FIELDS);
    fields.extend(temperature::SLOW_FIELDS);
    fields.push(nvlink::COUNT_FIELD);
    fields.extend(nvlink::link_fields(links));
    fields
}

/// An instance before its first read: what only the GPU as a whole has is unsupported there.
fn instance_of(gpu: &Gpu) -> Gpu {
    let mut instance = Gpu { index: gpu.index, ..Gpu::default() };
    instance.explain_unread(&Absence::Unsupported);
    // Counters between two ticks come with the next one.
    instance.gpm = Gpm::default();
    instance
}
