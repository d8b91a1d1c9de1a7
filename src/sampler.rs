//! The sampler: the only process that loads the driver's library. Reads the machine tick by tick
//! and writes snapshots to a pipe.
//!
//! A driver call on a sick GPU can block for ever, so each GPU has a thread and a slot of its own,
//! and whoever assembles the snapshot takes what is there. The parent draws, stores and serves; it
//! asks for another pace through our standard input, and its end is ours.

mod schedule;
mod session;
mod shared;
mod slot;

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use probes::driver::{self, DriverProbe, PciGpu};
use probes::host::HostProbe;
use probes::kernel_log::KernelLogProbe;
use probes::ledger::ledgers_of;
use probes::machine::Machine;
use probes::nvml::calls::Calls;
use probes::proc::Process;
use probes::proc::table::{Coverage, ProcessTable};
use probes::self_cost::{SelfCost, Source};
use probes::snapshot::{Gpu, Health, SCHEMA, Snapshot};

use crate::own_cost;

use schedule::Schedule;
use shared::Shared;

/// The first rates come so soon after the start.
const FIRST_TICK: Duration = Duration::from_millis(250);
/// A GPU that has not posted so long after the tick is left behind, as a part of the interval and
/// at the most.
const STRAGGLERS: (u32, Duration) = (3, Duration::from_millis(250));
/// At the start the first picture of the GPUs waits for the last of them so long.
const FIRST_PICTURE: Duration = Duration::from_millis(100);
/// A call that runs longer than this part of the interval, and at least so long, is stuck.
const STUCK: (f64, Duration) = (0.75, Duration::from_millis(400));
/// After the parent is gone, running calls get so long to return.
const GRACE: Duration = Duration::from_millis(100);
/// Calls that a snapshot names by their cost.
const DEAREST_CALLS: usize = 12;
/// How often calls and memory of our own are summed up.
const OWN_COST_EVERY: u64 = 5;
/// Largest snapshot that is believed on the pipe.
pub(crate) const MOST_FRAME_BYTES: usize = 64 << 20;

/// Samples until the pipe is closed.
pub(crate) fn run(
    machine: Machine,
    interval: Duration,
    mut frames: impl Write,
    commands: impl BufRead + Send + 'static,
) -> anyhow::Result<()> {
    let shared = Arc::new(Shared::new(machine, Schedule::new(interval, FIRST_TICK)));
    let mut assembler = Assembler::new(Arc::clone(&shared));
    // The host's memory must be known before the first GPU is read: unified parts are told by it.
    assembler.read_host();
    let supervisor = Arc::clone(&shared);
    std::thread::Builder::new()
        .name("session".into())
        .spawn(move || session::supervise(&supervisor))?;
    let listener = Arc::clone(&shared);
    std::thread::Builder::new().name("commands".into()).spawn(move || obey(&listener, commands))?;

    let mut tick = 0;
    write_frame(&mut frames, &assembler.assemble(0))?;
    let first = Instant::now() + FIRST_PICTURE;
    while Instant::now() < first {
        shared.wait_for_round(0, first);
        if session::without_session(&shared.status().driver_version) {
            // The library is open before its GPUs are.
            let failed = matches!(shared.status().session, driver::Session::Failed { .. });
            if failed {
                break;
            }
            continue;
        }
        if assembler.every_gpu_has_posted() {
            break;
        }
    }
    if write_frame(&mut frames, &assembler.assemble(0)).is_err() {
        return finish(&shared);
    }
    while let Some(now) = shared.schedule.wait_after(tick) {
        tick = now;
        let share = shared.schedule.interval() / STRAGGLERS.0;
        shared.wait_for_round(tick, Instant::now() + share.min(STRAGGLERS.1));
        let snapshot = assembler.assemble(tick);
        if write_frame(&mut frames, &snapshot).is_err() {
            break;
        }
    }
    finish(&shared)
}

/// Lets running calls return, then leaves. A call that is stuck is left behind; shutting the
/// library down beneath it would block as well.
fn finish(shared: &Shared) -> anyhow::Result<()> {
    shared.schedule.stop();
    let until = Instant::now() + GRACE;
    let running = |calls: &Arc<Calls>| calls.running().is_some();
    while Instant::now() < until
        && shared.slots().iter().any(|slot| slot.meters().iter().any(running))
    {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    std::process::exit(0)
}

/// Obeys the parent: `interval 500` sets the pace in milliseconds. The end of the pipe is the end of
/// the parent.
fn obey(shared: &Shared, commands: impl BufRead) {
    for line in commands.lines() {
        let Ok(line) = line else { break };
        if let Some(ms) = line.strip_prefix("interval ").and_then(|ms| ms.trim().parse().ok()) {
            shared.schedule.set_interval(Duration::from_millis(ms));
        }
    }
    let _ = finish(shared);
}

fn write_frame(frames: &mut impl Write, snapshot: &Snapshot) -> anyhow::Result<()> {
    let bytes = snapshot.encode()?;
    frames.write_all(&u32::try_from(bytes.len())?.to_le_bytes())?;
    frames.write_all(&bytes)?;
    frames.flush()?;
    Ok(())
}

/// Takes what the slots hold, reads what is cheap itself, and makes a snapshot of it.
struct Assembler {
    shared: Arc<Shared>,
    host: HostProbe,
    driver: DriverProbe,
    kernel_log: KernelLogProbe,
    processes: ProcessTable,
    sequence: u64,
    latest_host: probes::host::Host,
    own: OwnCost,
}

impl Assembler {
    fn new(shared: Arc<Shared>) -> Self {
        let machine = &shared.machine;
        Self {
            host: HostProbe::new(machine.clone()),
            driver: DriverProbe::new(machine.clone()),
            kernel_log: KernelLogProbe::new(machine.clone()),
            processes: ProcessTable::new(machine.clone()),
            sequence: 0,
            latest_host: probes::host::Host::default(),
            own: OwnCost::default(),
            shared,
        }
    }

    fn read_host(&mut self) {
        self.latest_host = self.host.read(self.shared.machine.now_ms());
        let host = &self.latest_host;
        let memory = host.memory_total_bytes.get().zip(host.memory_available_bytes.get());
        self.shared.set_system_memory(memory);
    }

    fn every_gpu_has_posted(&self) -> bool {
        let slots = self.shared.slots();
        let expected = self.shared.status().gpu_count.get().unwrap_or(0) as usize;
        slots.len() >= expected
            && slots.iter().all(|slot| {
                let health = slot.known().health;
                health != Health::Starting
            })
    }

    fn assemble(&mut self, tick: u64) -> Snapshot {
        let shared = Arc::clone(&self.shared);
        let now_ms = shared.machine.now_ms();
        let interval = shared.schedule.interval();
        let stuck_after = interval.mul_f64(STUCK.0).max(STUCK.1);
        let mut sources = Vec::new();

        timed(&mut sources, "host", || self.read_host());
        let mut driver = timed(&mut sources, "driver", || self.driver.read(now_ms));
        let status = shared.status();
        driver.session = session::state(&shared, stuck_after, now_ms);
        driver.version = status.driver_version;
        driver.nvml_version = status.nvml_version;
        driver.cuda_version = status.cuda_version;
        driver.branch = status.branch;
        driver.gpu_count = status.gpu_count;
        if status.library_path.value().is_some() {
            driver.library_path = status.library_path;
        }

        let mut gpus: Vec<Gpu> = Vec::new();
        let (mut expected, mut most_calls) = (0, 0);
        let (mut earliest, mut latest): (Option<Instant>, Option<Instant>) = (None, None);
        for slot in shared.slots() {
            let mut view = slot.view(stuck_after, now_ms);
            most_calls = most_calls.max(view.calls_since);
            if !view.stuck && view.gpus[0].answers() {
                expected += 1;
                if view.tick == Some(tick) {
                    earliest = earliest.into_iter().chain(view.cheap_at).min();
                    latest = latest.into_iter().chain(view.cheap_at).max();
                }
            }
            for gpu in &mut view.gpus {
                gpu.index = slot.index;
            }
            gpus.append(&mut view.gpus);
        }
        if tick > 0 {
            shared.expect(expected);
        }
        if let Some(identify) = by_elimination(&gpus, driver.pci_gpus.value()) {
            identify(&mut gpus);
        }
        driver.problem = driver::diagnose(&driver);
        let processes = timed(&mut sources, "processes", || self.processes.tick(now_ms, &gpus));
        self.look_for_holders(&gpus, &processes, &mut sources);
        let kernel_log = timed(&mut sources, "kernel log", || self.kernel_log.poll().clone());
        if let Some(absence) = kernel_log.source.absence()
            && let Some(source) = sources.last_mut()
        {
            source.absent = Some(absence.to_string());
        }

        self.sequence += 1;
        let mut self_cost = self.own.read(&shared, self.sequence, interval);
        self_cost.nvml_calls_per_gpu = u32::try_from(most_calls).unwrap_or(u32::MAX);
        self_cost.sources = sources;
        self_cost.spread_us = earliest.zip(latest).map_or(0, |(first, last)| {
            u32::try_from(last.duration_since(first).as_micros()).unwrap_or(u32::MAX)
        });
        Snapshot {
            schema: SCHEMA,
            sequence: self.sequence,
            taken_at_ms: now_ms,
            interval_ms: u64::try_from(interval.as_millis()).unwrap_or(u64::MAX),
            generation: status.generation,
            host: self.latest_host.clone(),
            driver,
            gpus,
            processes,
            kernel_log,
            self_cost,
        }
    }

    /// Says whom the search for holders of device files could not ask, and hurries it when memory
    /// is in nobody's account.
    fn look_for_holders(&mut self, gpus: &[Gpu], processes: &[Process], sources: &mut Vec<Source>) {
        let unexplained = ledgers_of(gpus, processes)
            .iter()
            .any(|ledger| ledger.unattributed_bytes.get().is_some_and(|b| b > UNEXPLAINED_BYTES));
        if unexplained {
            self.processes.hurry();
        }
        let coverage = self.processes.coverage();
        let absent = (coverage.denied > 0).then(|| {
            let Coverage { denied, processes, .. } = coverage;
            format!("no permission for {denied} of {processes} processes, needs CAP_SYS_PTRACE")
        });
        sources.push(Source { name: "open device files".into(), took_us: 0, absent });
    }
}

/// Memory in nobody's account that is worth a faster search for its holder.
const UNEXPLAINED_BYTES: u64 = 256 << 20;

fn timed<T>(sources: &mut Vec<Source>, name: &str, read: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let value = read();
    let took_us = u32::try_from(start.elapsed().as_micros()).unwrap_or(u32::MAX);
    sources.push(Source { name: name.into(), took_us, absent: None });
    value
}

/// A GPU whose handle never came cannot tell who it is; when exactly one device of the bus is
/// spoken for by nobody, it is that one.
fn by_elimination(
    gpus: &[Gpu],
    devices: Option<&Vec<PciGpu>>,
) -> Option<impl FnOnce(&mut [Gpu]) + use<>> {
    let silent = |gpu: &&Gpu| gpu.mig.is_none() && gpu.pci.value().is_none();
    let mut nameless = gpus.iter().enumerate().filter(|(_, gpu)| silent(gpu));
    let mut unclaimed = devices?.iter().filter(|device| {
        device.driver == "nvidia" && !gpus.iter().any(|gpu| gpu.pci.text() == device.pci)
    });
    let ((at, _), device) = nameless.next().zip(unclaimed.next())?;
    if nameless.next().is_some() || unclaimed.next().is_some() {
        return None;
    }
    let device = device.clone();
    Some(move |gpus: &mut [Gpu]| {
        let gpu = &mut gpus[at];
        gpu.pci = device.pci.into();
        gpu.uuid = device.uuid;
        gpu.name = device.model.map(|name| name.trim_start_matches("NVIDIA ").to_string());
    })
}

/// The sampler's own cost. Times come from the process clock, which costs nothing to ask.
#[derive(Default)]
struct OwnCost {
    cpu: Option<(Instant, f64)>,
    slow: SelfCost,
}

impl OwnCost {
    fn read(&mut self, shared: &Shared, sequence: u64, interval: Duration) -> SelfCost {
        let mut meters = vec![Arc::clone(&shared.session_calls)];
        meters.extend(shared.slots().iter().flat_map(|slot| slot.meters()));
        let seconds = own_cost::cpu_seconds();
        let now = Instant::now();
        let cpu_ratio = match self.cpu.replace((now, seconds)) {
            Some((then, before)) if now - then > interval / 2 => {
                ((seconds - before) / (now - then).as_secs_f64()).into()
            }
            _ => self.slow.cpu_ratio.clone(),
        };
        if sequence % OWN_COST_EVERY == 1 || self.slow.pid == 0 {
            let (rss_bytes, threads) = own_cost::memory();
            let mut calls = Calls::costs(meters.iter().map(AsRef::as_ref));
            calls.truncate(DEAREST_CALLS);
            self.slow = SelfCost {
                pid: std::process::id(),
                rss_bytes,
                threads,
                calls,
                ..SelfCost::default()
            };
        }
        self.slow.cpu_ratio = cpu_ratio;
        SelfCost {
            nvml_calls_total: meters.iter().map(|calls| calls.count()).sum(),
            nvml_seconds_total: meters.iter().map(|calls| calls.seconds()).sum(),
            dropped_values_total: meters.iter().map(|calls| calls.dropped()).sum(),
            cpu_seconds_total: seconds.into(),
            ..self.slow.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use probes::reading::Reading;

    use super::*;

    fn gpu(pci: &str) -> Gpu {
        let pci = match pci {
            "" => Reading::default(),
            pci => pci.to_string().into(),
        };
        Gpu { pci, ..Gpu::default() }
    }

    fn device(pci: &str) -> PciGpu {
        PciGpu { pci: pci.into(), driver: "nvidia".into(), ..PciGpu::default() }
    }

    #[test]
    fn a_gpu_that_never_answered_is_the_one_device_left_over() {
        let mut gpus = vec![gpu("0000:01:00.0"), gpu("")];
        let devices = vec![device("0000:01:00.0"), device("0000:02:00.0")];
        by_elimination(&gpus, Some(&devices)).unwrap()(&mut gpus);
        assert_eq!(gpus[1].pci.text(), "0000:02:00.0");
    }

    #[test]
    fn two_that_never_answered_are_not_guessed() {
        let gpus = vec![gpu(""), gpu("")];
        let devices = vec![device("0000:01:00.0"), device("0000:02:00.0")];
        assert!(by_elimination(&gpus, Some(&devices)).is_none());
    }
}
