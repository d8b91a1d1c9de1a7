//! Reads the box at each tick: four small files, and the rest every ten seconds.

use std::time::Instant;

use super::cpu::{self, CpuTimes};
use super::{Host, memory, namespace, numa};
use crate::machine::{Machine, read_line, read_text};
use crate::reading::{Absence, Reading};
use crate::snapshot::Stamp;

const SLOW_EVERY_MS: u64 = 10_000;

/// Reads the box; keeps what it needs between two ticks.
#[derive(Debug)]
pub struct HostProbe {
    machine: Machine,
    /// What hardly changes, with the fast fields of the last tick still in it.
    host: Host,
    slow_read_at_ms: Option<u64>,
    times: Option<CpuTimes>,
}

impl HostProbe {
    /// A probe that has read nothing yet.
    pub fn new(machine: Machine) -> Self {
        Self { machine, host: Host::default(), slow_read_at_ms: None, times: None }
    }

    /// The box now. Shares of CPU time are absent at the first call.
    pub fn read(&mut self, now_ms: u64) -> Host {
        let start = Instant::now();
        match self.slow_read_at_ms {
            None => {
                self.read_once();
                self.read_slow(now_ms);
            }
            // A clock set back makes the age unknown: read again.
            Some(at_ms) if now_ms < at_ms || now_ms - at_ms >= SLOW_EVERY_MS => {
                self.read_slow(now_ms);
            }
            Some(_) => {}
        }
        self.read_fast();
        let took_us = u32::try_from(start.elapsed().as_micros()).unwrap_or(u32::MAX);
        self.host.read = Stamp { at_ms: now_ms, took_us };
        self.host.clone()
    }

    /// What cannot change while this process lives.
    fn read_once(&mut self) {
        self.host.boot_id = read_boot_id(&self.machine);
        self.host.kernel = read_line(&self.machine.proc("sys/kernel/osrelease")).into();
        self.host.cpu_model = cpu::read_cpu_model(&self.machine);
    }

    fn read_slow(&mut self, now_ms: u64) {
        let (machine, host) = (&self.machine, &mut self.host);
        host.name = read_line(&machine.proc("sys/kernel/hostname")).into();
        host.os = read_os(machine);
        let cpus = cpu::read_cpus(machine);
        if host.cpus != cpus {
            host.cpu_cores = cpu::read_cpu_cores(machine);
        }
        host.cpus = cpus;
        (host.hugepages_total_bytes, host.hugepages_free_bytes) =
            pair(memory::read_hugepages(machine));
        host.transparent_hugepages = Reading::<String>::from(read_line(
            &machine.sys("kernel/mm/transparent_hugepage/enabled"),
        ))
        .and_then(|text| match memory::parse_bracketed(&text) {
            Some(mode) => mode.to_string().into(),
            None => {
                Reading::Absent(Absence::Failed { what: format!("no mode in brackets: {text:?}") })
            }
        });
        host.numa = numa::read_numa(machine);
        host.processes = read_process_count(machine);
        host.pid_namespace = namespace::read_pid_namespace(machine);
        self.slow_read_at_ms = Some(now_ms);
    }

    fn read_fast(&mut self) {
        let (machine, host) = (&self.machine, &mut self.host);
        let times = cpu::read_cpu_times(machine);
        let shares = match (self.times, &times) {
            (_, Err(absence)) => Err(absence.clone()),
            (None, Ok(_)) => Err(Absence::NotRead),
            (Some(before), Ok(now)) => cpu::shares(before, *now).ok_or(Absence::NoData),
        };
        (host.cpu_ratio, host.iowait_ratio) = pair(shares);
        self.times = times.ok();

        let uptime = Reading::<String>::from(read_line(&machine.proc("uptime")));
        host.uptime_seconds = uptime.and_then(|text| {
            let seconds = text.split('.').next().and_then(|whole| whole.parse().ok());
            seconds.map_or_else(|| not_understood("uptime", &text), Reading::Value)
        });
        let load = Reading::<String>::from(read_line(&machine.proc("loadavg")));
        host.load = load.and_then(|text| {
            cpu::parse_load(&text).map_or_else(|| not_understood("loadavg", &text), Reading::Value)
        });

        // Only a Grace pays for this each tick: its GPU memory moves with the jobs.
        if device_bytes(host).is_some_and(|(total, _)| total > 0) {
            host.numa = numa::read_numa(machine);
        }
        let device = device_bytes(host);
        host.memory_device_bytes = match (&host.numa, device) {
            (_, Some((total, _))) => total.into(),
            // A kernel without NUMA has no such nodes.
            (Reading::Absent(Absence::Unsupported), None) => 0.into(),
            (numa, None) => numa.clone().map(|_| 0),
        };
        let (device_total, device_free) = device.unwrap_or_default();
        let meminfo = memory::read_meminfo(machine);
        host.memory_total_bytes = meminfo.total.map(|bytes| bytes.saturating_sub(device_total));
        host.memory_available_bytes =
            meminfo.available.map(|bytes| bytes.saturating_sub(device_free));
        host.memory_cached_bytes = meminfo.cached;
        host.memory_shared_bytes = meminfo.shared;
        host.swap_used_bytes = meminfo
            .swap_total
            .clone()
            .and_then(|total| meminfo.swap_free.map(|free| total.saturating_sub(free)));
        host.swap_total_bytes = meminfo.swap_total;
        (host.shm_total_bytes, host.shm_used_bytes) = pair(memory::read_shm(machine));
    }
}

/// Total and free bytes of the nodes that are GPU memory.
fn device_bytes(host: &Host) -> Option<(u64, u64)> {
    let nodes = host.numa.value()?.iter().filter(|node| node.is_device);
    Some(nodes.fold((0, 0), |(total, free): (u64, u64), node| {
        (total.saturating_add(node.total_bytes), free.saturating_add(node.free_bytes))
    }))
}

fn pair<T>(both: Result<(T, T), Absence>) -> (Reading<T>, Reading<T>) {
    match both {
        Ok((a, b)) => (Reading::Value(a), Reading::Value(b)),
        Err(absence) => (Reading::Absent(absence.clone()), Reading::Absent(absence)),
    }
}

fn not_understood<T>(file: &str, text: &str) -> Reading<T> {
    let text: String = text.chars().take(60).collect();
    Reading::Absent(Absence::Failed { what: format!("{file} not understood: {text:?}") })
}

fn read_os(machine: &Machine) -> Reading<String> {
    let text = read_text(&machine.root("etc/os-release"))
        .or_else(|_| read_text(&machine.root("usr/lib/os-release")));
    Reading::<String>::from(text).and_then(|text| {
        parse_os_release(&text).map_or(Reading::Absent(Absence::NoData), Reading::Value)
    })
}

/// `PRETTY_NAME` of an os-release file, else `NAME`.
pub(super) fn parse_os_release(text: &str) -> Option<String> {
    let field = |name: &str| {
        text.lines().find_map(|line| {
            let value = line.trim().strip_prefix(name)?.strip_prefix('=')?;
            let value = value.trim_matches(['"', '\'']).trim();
            (!value.is_empty()).then(|| value.to_string())
        })
    };
    field("PRETTY_NAME").or_else(|| field("NAME"))
}

/// Folders of `/proc` with a number as name.
fn read_process_count(machine: &Machine) -> Reading<u32> {
    let entries = match std::fs::read_dir(machine.proc("")) {
        Ok(entries) => entries,
        Err(error) => return Reading::Absent(Absence::from_io(&error)),
    };
    let count = entries
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit))
        .count();
    match u32::try_from(count) {
        Ok(0) | Err(_) => Reading::Absent(Absence::NoData),
        Ok(count) => count.into(),
    }
}

/// What changes with every boot.
pub fn read_boot_id(machine: &Machine) -> Reading<String> {
    read_line(&machine.proc("sys/kernel/random/boot_id")).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_tree::FakeTree;

    fn a_box() -> FakeTree {
        FakeTree::new(&[
            ("proc/stat", "cpu  100 0 50 800 50 0 0 0 0 0\n"),
            (
                "proc/meminfo",
                "MemTotal: 1000 kB\nMemAvailable: 600 kB\nSwapTotal: 80 kB\nSwapFree: 30 kB\n",
            ),
            ("proc/loadavg", "1.00 2.00 3.00 1/977 42\n"),
            ("proc/uptime", "5212.75 9000.00\n"),
            ("proc/2/comm", "kthreadd\n"),
            ("proc/sys/kernel/osrelease", "6.8.0-71-generic\n"),
            ("etc/os-release", "NAME=Ubuntu\nPRETTY_NAME=\"Ubuntu 24.04.3 LTS\"\n"),
            ("sys/devices/system/cpu/online", "0-3\n"),
            ("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,2\n"),
            ("sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "0,2\n"),
            ("sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "1,3\n"),
        ])
    }

    #[test]
    fn a_box_is_read_and_shares_follow_at_the_second_tick() {
        let tree = a_box();
        let mut probe = HostProbe::new(tree.machine.clone());
        let first = probe.read(1000);
        assert_eq!(first.cpu_ratio, Reading::default());
        assert_eq!(first.memory_total_bytes, (1000 * 1024).into());
        assert_eq!(first.swap_used_bytes, (50 * 1024).into());
        assert_eq!(first.uptime_seconds, 5212.into());
        assert_eq!(first.os.text(), "Ubuntu 24.04.3 LTS");
        assert_eq!((first.cpus.get(), first.cpu_cores.get()), (Some(4), Some(2)));
        assert_eq!(first.processes, 1.into());
        tree.write("proc/stat", b"cpu  200 0 50 800 50 0 0 0 0 0\n");
        let second = probe.read(2000);
        assert_eq!(second.cpu_ratio, 1.0.into());
        assert_eq!(second.iowait_ratio, 0.0.into());
        assert_eq!(second.read.at_ms, 2000);
    }

    #[test]
    fn gpu_memory_of_a_grace_is_not_host_memory() {
        let tree = a_box();
        tree.write("sys/devices/system/node/node1/cpulist", b"\n");
        tree.write(
            "sys/devices/system/node/node1/meminfo",
            b"Node 1 MemTotal: 400 kB\nNode 1 MemFree: 300 kB\n",
        );
        tree.write("sys/devices/system/node/has_generic_initiator", b"1\n");
        let host = HostProbe::new(tree.machine.clone()).read(1000);
        assert_eq!(host.memory_total_bytes, (600 * 1024).into());
        assert_eq!(host.memory_available_bytes, (300 * 1024).into());
        assert_eq!(host.memory_device_bytes, (400 * 1024).into());
    }

    #[test]
    fn an_empty_tree_gives_reasons_and_no_zeros() {
        let host = HostProbe::new(FakeTree::new(&[]).machine.clone()).read(1000);
        assert!(host.memory_total_bytes.absence().is_some());
        assert!(host.cpu_ratio.absence().is_some());
        assert!(host.swap_used_bytes.absence().is_some());
        assert!(host.processes.absence().is_some());
        assert!(host.shm_total_bytes.absence().is_some());
        assert!(host.hugepages_total_bytes.absence().is_some());
    }

    #[test]
    fn slow_parts_are_read_again_after_ten_seconds() {
        let tree = a_box();
        let mut probe = HostProbe::new(tree.machine.clone());
        probe.read(1000);
        tree.write("sys/devices/system/cpu/online", b"0-1\n");
        assert_eq!(probe.read(5000).cpus, 4.into());
        assert_eq!(probe.read(11_000).cpus, 2.into());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_in_stride(text in "(PRETTY_NAME=)?(.|\n){0,80}") {
            parse_os_release(&text);
        }
    }
}
