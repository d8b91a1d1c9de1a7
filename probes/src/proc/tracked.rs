//! One process that is followed: what is known of it, and when which part is due again.

use std::os::fd::OwnedFd;

use crate::machine::Machine;
use crate::reading::{Absence, Reading};
use crate::snapshot::Stamp;

use super::ancestors::Family;
use super::blocking::Command;
use super::cgroup::{container_label, read_cgroup};
use super::container_name::ContainerNames;
use super::fds::{DescriptorReader, MOST_DESCRIPTORS};
use super::maps::Mappings;
use super::namespace::View;
use super::sockets::Listeners;
use super::stat::{Stat, TICKS_PER_SECOND};
use super::status::read_status;
use super::task::{ProcRoot, Task, clean};
use super::users::Users;
use super::{DeviceCount, Process};

/// How old descriptors get while their number stays the same. A call for each of some hundreds is the
/// dearest that is read of a process again and again, and an engine at work has them all.
const DESCRIPTORS_MS: u64 = 300_000;

/// Whoever starts a process moves it to its control group within moments; later that is rare.
const CGROUP_MS: [u64; 2] = [5_000, 60_000];

/// Of a front-end the listening sockets are wanted, which are open before its thousands of connections.
const FRONT_END_DESCRIPTORS: usize = 512;

/// What all processes are read with.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) machine: Machine,
    pub(crate) root: ProcRoot,
    pub(crate) view: View,
    pub(crate) descriptors: DescriptorReader,
    pub(crate) listeners: Listeners,
    pub(crate) users: Users,
    pub(crate) container_names: ContainerNames,
    pub(crate) family: Family,
    pub(crate) buffer: Vec<u8>,
    /// Wall clock at boot, in milliseconds since 1970.
    pub(crate) boot_ms: Option<u64>,
    pub(crate) page_bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Tracked {
    pub(crate) process: Process,
    pub(crate) start_ticks: u64,
    pub(crate) slow_due_ms: u64,
    pub(crate) command_due_ms: u64,
    pub(crate) maps_due_ms: u64,
    cgroup_due_ms: u64,
    pub(crate) command_hash: Option<u64>,
    /// Its PID namespace, read only where the driver's numbers may need translating.
    pub(crate) namespace: Option<String>,
    /// In one of the driver's lists this tick, or in one that could not be read.
    pub(crate) listed: bool,
    /// The driver lists its number and means another process; not to be shown.
    pub(crate) foreign: bool,
    /// It stands above a holder and looks like an engine.
    pub(crate) front_end: bool,
    /// Inodes of its sockets, and the network namespace in which to look them up.
    pub(crate) sockets: Vec<u64>,
    pub(crate) network: Option<String>,
    /// How many descriptors there were, and when they were read.
    descriptors_seen: (u64, u64),
    /// Its `stat`, kept open.
    pub(crate) stat_file: Option<OwnedFd>,
    cpu: Option<(u64, u64)>,
    parent_seen: Option<u32>,
}

impl Tracked {
    /// A number of which nothing is known.
    pub(crate) fn unknown(pid: u32) -> Self {
        Self { process: Process { pid, ..Process::default() }, ..Self::default() }
    }

    pub(crate) fn new(pid: u32, stat: &Stat) -> Self {
        Self { start_ticks: stat.start_ticks, ..Self::unknown(pid) }
    }

    /// The part of every tick; true if another chain stands above it than before.
    pub(crate) fn apply_stat(&mut self, stat: Stat, sources: &mut Sources, now_ms: u64) -> bool {
        let process = &mut self.process;
        process.exists = true.into();
        process.parent = stat.parent.into();
        process.start_ticks = stat.start_ticks.into();
        process.threads = stat.threads.into();
        process.started_at_ms = match sources.boot_ms {
            Some(boot) => (boot + ticks_to_ms(stat.start_ticks)).into(),
            None => Reading::UNSUPPORTED,
        };
        if process.comm.text() != stat.comm {
            // A new name is a new title, most likely.
            self.command_due_ms = 0;
            process.comm = stat.comm.into();
        }
        let mut letter = [0; 4];
        let letter = stat.state.encode_utf8(&mut letter);
        // Where one waits is read at each tick while it hangs, and once more when it no longer does.
        let hangs = stat.state == 'D' || process.state.text() == "D";
        if process.state.text() != letter {
            process.state = letter.to_string().into();
            process.state_since_ms = now_ms.into();
        }
        process.cpu_seconds_total = (stat.cpu_ticks as f64 / TICKS_PER_SECOND as f64).into();
        process.cpu_ratio = match self.cpu {
            Some((ticks, at)) if now_ms > at => {
                let seconds = stat.cpu_ticks.saturating_sub(ticks) as f64 / TICKS_PER_SECOND as f64;
                (seconds / ((now_ms - at) as f64 / 1000.0)).into()
            }
            _ => Reading::Absent(Absence::NoData),
        };
        self.cpu = Some((stat.cpu_ticks, now_ms));
        // A zombie has no memory left, and says 0 where it should say nothing.
        process.rss_bytes = match stat.state {
            'Z' | 'X' => Reading::UNSUPPORTED,
            _ => stat.rss_pages.saturating_mul(sources.page_bytes).into(),
        };
        let mut moved = false;
        if self.parent_seen != Some(stat.parent) {
            self.parent_seen = Some(stat.parent);
            let chain =
                sources.family.read_ancestors(&sources.root, stat.parent, &mut sources.buffer);
            moved = chain != process.ancestors;
            process.ancestors = chain;
        }
        if hangs && let Ok(task) = sources.root.task(process.pid) {
            process.wchan = read_wchan(&task, &mut sources.buffer);
        }
        moved
    }

    /// The parts that change seldom and are dearer.
    pub(crate) fn read_slow(&mut self, sources: &mut Sources, now_ms: u64) -> Result<(), Absence> {
        let process = &mut self.process;
        let task = sources.root.task(process.pid)?;
        let status = read_status(&task, &mut sources.buffer);
        if status.uid.absence() == Some(&Absence::Gone) {
            return Err(Absence::Gone);
        }
        process.user =
            status.uid.as_ref().map(|uid| sources.users.name(&sources.machine, *uid, now_ms));
        process.uid = status.uid;
        // A recording of a box with larger pages would else be read with ours.
        if let (false, Some(bytes), Some(ours)) =
            (sources.machine.is_live(), status.rss_bytes.get(), process.rss_bytes.get())
        {
            let pages = (ours / sources.page_bytes).max(1);
            sources.page_bytes = match bytes / pages {
                0..8_192 => 4_096,
                8_192..32_768 => 16_384,
                _ => 65_536,
            };
            process.rss_bytes = bytes.into();
        }
        process.pinned_bytes = status.pinned_bytes;
        process.locked_bytes = status.locked_bytes;
        process.swap_bytes = status.swap_bytes;
        process.namespace_pids = status.namespace_pids;

        if self.cgroup_due_ms <= now_ms {
            self.cgroup_due_ms = now_ms + CGROUP_MS[usize::from(self.cgroup_due_ms > 0)];
            read_place(process, &task, sources, now_ms);
        }
        if process.state.text() != "D" {
            process.wchan = read_wchan(&task, &mut sources.buffer);
        }
        self.read_descriptors(&task, sources, now_ms);
        if sources.view.own_depth > 0 {
            self.namespace = task.link("ns/pid").ok();
        }
        // Names above can change, and so can the chain: seen again at the next stat.
        self.parent_seen = None;
        Ok(())
    }

    /// A call a descriptor is the dearest part; where their number is free to ask and is the same as
    /// before, they are taken for the same for some minutes.
    fn read_descriptors(&mut self, task: &Task, sources: &mut Sources, now_ms: u64) {
        let process = &mut self.process;
        // In a folder of plain files that size means something else.
        let count = if sources.machine.is_live() { task.descriptor_count() } else { 0 };
        let (before, at_ms) = self.descriptors_seen;
        if count > 0 && count == before && now_ms.saturating_sub(at_ms) < DESCRIPTORS_MS {
            return;
        }
        self.descriptors_seen = (count, now_ms);
        let zombie = process.state.text() == "Z";
        let front_end_only = self.front_end && !self.listed && !self.holds_device();
        let most = if front_end_only { FRONT_END_DESCRIPTORS } else { MOST_DESCRIPTORS };
        let process = &mut self.process;
        match sources.descriptors.read(task, zombie, most) {
            Ok(found) => {
                self.sockets = found.sockets;
                self.network =
                    if self.sockets.is_empty() { None } else { task.link("ns/net").ok() };
                process.listening_ports = match &self.network {
                    Some(network) => sources.listeners.ports(network, &self.sockets),
                    None if self.sockets.is_empty() => Vec::new().into(),
                    None => Reading::UNSUPPORTED,
                };
                process.device_files = found.devices.into();
            }
            Err(why) => {
                process.listening_ports = Reading::Absent(why.clone());
                process.device_files = Reading::Absent(why);
            }
        }
    }

    pub(crate) fn apply_command(&mut self, answer: Result<Option<Command>, Absence>) {
        let process = &mut self.process;
        match answer {
            // One that ends takes its command line along and not what we know of it; a zombie has
            // none any more.
            Ok(None) | Err(Absence::Gone) => {}
            Ok(Some(command))
                if command.line.text.is_empty() && process.command.value().is_some() =>
            {
                self.command_hash = Some(command.line.hash);
            }
            Ok(Some(command)) => {
                self.command_hash = Some(command.line.hash);
                let text = command.line.text;
                let comm = process.comm.text();
                process.command = if text.is_empty() { format!("[{comm}]") } else { text }.into();
                process.secret_exposed = command.line.secret.into();
                process.engine = command.engine.map_or(Reading::UNSUPPORTED, Reading::Value);
            }
            Err(why) => {
                self.command_hash = None;
                process.command = Reading::Absent(why.clone());
                process.secret_exposed = Reading::Absent(why.clone());
                // The short name is known without asking the process's memory.
                let by_name = super::engine::recognise(process.comm.text(), &[]);
                process.engine =
                    by_name.map_or(Reading::Absent(why), |name| Reading::Value(name.to_string()));
            }
        }
    }

    pub(crate) fn apply_maps(&mut self, answer: Result<Mappings, Absence>) {
        match answer {
            Ok(maps) => {
                self.process.device_maps = maps.devices.into();
                self.process.libraries = maps.libraries.into();
            }
            Err(Absence::Gone) => {}
            Err(why) => {
                self.process.device_maps = Reading::Absent(why.clone());
                self.process.libraries = Reading::Absent(why);
            }
        }
    }

    /// Whether it has a device file of the driver open or mapped.
    pub(crate) fn holds_device(&self) -> bool {
        let all = [&self.process.device_files, &self.process.device_maps];
        all.into_iter().any(|devices| devices.value().is_some_and(|devices| !devices.is_empty()))
    }

    /// Whether it has to do with a GPU by its own files; `None`: cannot tell.
    pub(crate) fn uses_driver(&self) -> Option<bool> {
        let process = &self.process;
        let some = |devices: &Reading<Vec<DeviceCount>>| devices.value().map(|d| !d.is_empty());
        let files = some(&process.device_files);
        let maps = some(&process.device_maps);
        let libraries = process.libraries.value();
        let cuda = libraries.map(|all| all.iter().any(|library| library.name == "libcuda"));
        match [files, maps, cuda] {
            all if all.contains(&Some(true)) => Some(true),
            all if all.contains(&None) => None,
            _ => Some(false),
        }
    }

    /// What stays known of a process that is no longer here while the driver still lists it.
    pub(crate) fn into_gone(self, exists: Absence, now_ms: u64) -> Process {
        let gone = || Absence::Gone;
        Process {
            exists: Reading::Absent(exists),
            read: Stamp { at_ms: now_ms, took_us: 0 },
            state: Reading::Absent(gone()),
            state_since_ms: now_ms.into(),
            wchan: Reading::Absent(gone()),
            cpu_ratio: Reading::Absent(gone()),
            rss_bytes: Reading::Absent(gone()),
            pinned_bytes: Reading::Absent(gone()),
            locked_bytes: Reading::Absent(gone()),
            swap_bytes: Reading::Absent(gone()),
            threads: Reading::Absent(gone()),
            listening_ports: Reading::Absent(gone()),
            device_files: Reading::Absent(gone()),
            device_maps: Reading::Absent(gone()),
            ..self.process
        }
    }
}

/// Control group, and what it says of where the process belongs.
fn read_place(process: &mut Process, task: &Task, sources: &mut Sources, now_ms: u64) {
    let relative = sources.view.relative_cgroups;
    let cgroup = read_cgroup(task, relative, &mut sources.buffer);
    process.container_name = cgroup.container.as_ref().and_then(|(runtime, id)| {
        sources.container_names.name(&sources.machine, runtime, id, now_ms)
    });
    process.container = cgroup.container.map(|(runtime, id)| container_label(&runtime, &id));
    process.cgroup = cgroup.path;
    process.pod = cgroup.pod;
    process.unit = cgroup.unit;
    process.slurm_job = cgroup.slurm_job;
}

/// The kernel writes `0` for a process that runs and for one that we may not look at.
fn read_wchan(task: &Task, buffer: &mut Vec<u8>) -> Reading<String> {
    match task.read("wchan", 256, buffer) {
        Ok(()) if buffer.is_empty() || buffer.as_slice() == b"0" => {
            Reading::Absent(Absence::NoData)
        }
        Ok(()) => clean(buffer).into(),
        Err(why) => Reading::Absent(why),
    }
}

fn ticks_to_ms(ticks: u64) -> u64 {
    ticks.saturating_mul(1000 / TICKS_PER_SECOND)
}
