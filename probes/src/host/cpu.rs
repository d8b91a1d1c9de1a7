//! CPUs: time shares, load, count, cores, model.
//!
//! `stat` grows with the number of interrupts, so only its first line is copied. `cpuinfo` asks
//! each CPU for its frequency while it is read, which takes long on big boxes: only its first
//! block is read, and only once.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::machine::{Machine, read_line};
use crate::reading::{Absence, Reading};

const HEAD_BYTES: u64 = 4096;

/// CPU time since boot in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuTimes {
    /// All of it; guest time is inside user time and not counted twice.
    pub(super) total: u64,
    /// Idle, waiting for storage included.
    pub(super) idle: u64,
    /// Waiting for storage.
    pub(super) iowait: u64,
}

pub(super) fn read_cpu_times(machine: &Machine) -> Result<CpuTimes, Absence> {
    let head = read_head(&machine.proc("stat")).map_err(|error| Absence::from_io(&error))?;
    parse_cpu_times(&head).ok_or_else(|| Absence::Failed {
        what: "the first line of /proc/stat is no sum of CPU times".into(),
    })
}

pub(super) fn parse_cpu_times(stat: &str) -> Option<CpuTimes> {
    let mut words = stat.lines().next()?.split_whitespace();
    if words.next()? != "cpu" {
        return None;
    }
    // user nice system idle iowait irq softirq steal (guest and guest_nice follow)
    let ticks: Vec<u64> = words.take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
    let [_, _, _, idle, ..] = ticks[..] else { return None };
    let iowait = ticks.get(4).copied().unwrap_or(0);
    Some(CpuTimes {
        total: ticks.iter().fold(0, |sum, ticks| sum.saturating_add(*ticks)),
        idle: idle.saturating_add(iowait),
        iowait,
    })
}

/// Busy and waiting shares between two readings. Iowait may run backwards by a few ticks; a total
/// that does is another boot or a CPU that went, and says nothing.
pub(super) fn shares(before: CpuTimes, now: CpuTimes) -> Option<(f64, f64)> {
    let total = now.total.checked_sub(before.total).filter(|total| *total > 0)? as f64;
    let idle = now.idle.saturating_sub(before.idle) as f64;
    let iowait = now.iowait.saturating_sub(before.iowait) as f64;
    Some(((1.0 - idle / total).clamp(0.0, 1.0), (iowait / total).clamp(0.0, 1.0)))
}

pub(super) fn parse_load(loadavg: &str) -> Option<Vec<f64>> {
    let load: Vec<f64> = loadavg
        .split_whitespace()
        .take(3)
        .map(|word| word.parse().ok().filter(|load: &f64| load.is_finite() && *load >= 0.0))
        .collect::<Option<_>>()?;
    (load.len() == 3).then_some(load)
}

pub(super) fn read_cpus(machine: &Machine) -> Reading<u32> {
    Reading::<String>::from(read_line(&machine.sys("devices/system/cpu/online"))).and_then(|list| {
        parse_cpu_list(&list).map_or_else(
            || Reading::Absent(Absence::Failed { what: format!("no list of CPUs: {list:?}") }),
            Reading::Value,
        )
    })
}

/// How many CPUs a kernel list such as `0-31,64-95` names.
pub(super) fn parse_cpu_list(text: &str) -> Option<u32> {
    let mut count = 0_u32;
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        count = count.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(count)
}

/// Cores, counted as the distinct sets of CPUs that share one.
pub(super) fn read_cpu_cores(machine: &Machine) -> Reading<u32> {
    let folder = match std::fs::read_dir(machine.sys("devices/system/cpu")) {
        Ok(folder) => folder,
        Err(error) => return Reading::Absent(Absence::from_io(&error)),
    };
    let siblings: HashSet<String> = folder
        .flatten()
        .filter_map(|cpu| read_line(&cpu.path().join("topology/thread_siblings_list")).ok())
        .collect();
    match u32::try_from(siblings.len()) {
        Ok(cores) if cores > 0 => cores.into(),
        _ => Reading::UNSUPPORTED,
    }
}

pub(super) fn read_cpu_model(machine: &Machine) -> Reading<String> {
    let head = match read_head(&machine.proc("cpuinfo")) {
        Ok(head) => head,
        Err(error) => return Reading::Absent(Absence::from_io(&error)),
    };
    if let Some(model) = parse_cpu_model(&head) {
        return model.into();
    }
    // ARM kernels give part numbers; sysinfo knows their names. It reads the running machine only.
    if machine.is_live()
        && let Some(model) = name_from_sysinfo()
    {
        return model.into();
    }
    Reading::UNSUPPORTED
}

pub(super) fn parse_cpu_model(cpuinfo: &str) -> Option<String> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        (matches!(key.trim(), "model name" | "cpu model") && !value.is_empty()).then_some(value)
    })
}

fn name_from_sysinfo() -> Option<String> {
    use sysinfo::{CpuRefreshKind, RefreshKind, System};
    let wanted = RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing());
    let system = System::new_with_specifics(wanted).ok()?;
    let brand = system.cpus().first()?.brand().trim();
    (!brand.is_empty()).then(|| brand.to_string())
}

fn read_head(path: &Path) -> std::io::Result<String> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(String::from_utf8_lossy(&head).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_and_waiting_shares_come_from_two_readings() {
        let before = parse_cpu_times("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2\n").unwrap();
        let now = parse_cpu_times("cpu  150 0 75 850 75 0 0 50 0 0\n").unwrap();
        let (busy, iowait) = shares(before, now).unwrap();
        assert!((busy - 0.625).abs() < 1e-9 && (iowait - 0.125).abs() < 1e-9, "{busy} {iowait}");
        assert_eq!(shares(now, before), None);
        assert_eq!(shares(now, now), None);
    }

    #[test]
    fn guest_time_is_not_counted_twice() {
        let times = parse_cpu_times("cpu  10 0 0 90 0 0 0 0 10 0").unwrap();
        assert_eq!(times.total, 100);
    }

    #[test]
    fn iowait_that_runs_backwards_is_no_negative_share() {
        let before = parse_cpu_times("cpu 0 0 0 100 50 0 0 0").unwrap();
        let now = parse_cpu_times("cpu 100 0 0 100 49 0 0 0").unwrap();
        assert_eq!(shares(before, now), Some((1.0, 0.0)));
    }

    #[test]
    fn a_list_of_cpus_is_counted() {
        assert_eq!(parse_cpu_list("0-31,64-95"), Some(64));
        assert_eq!(parse_cpu_list("0"), Some(1));
        assert_eq!(parse_cpu_list(""), Some(0));
        assert_eq!(parse_cpu_list("3-1"), None);
        assert_eq!(parse_cpu_list("0-4294967295"), None);
    }

    #[test]
    fn load_keeps_its_digits() {
        assert_eq!(parse_load("0.52 0.58 12.59 1/977 4242\n"), Some(vec![0.52, 0.58, 12.59]));
        assert_eq!(parse_load("0.52 NaN 1.0"), None);
        assert_eq!(parse_load("0.52"), None);
    }

    #[test]
    fn the_model_is_read_from_the_first_block() {
        let text = "processor\t: 0\nmodel name\t: INTEL(R) XEON(R)   PLATINUM 8558\n";
        assert_eq!(parse_cpu_model(text).as_deref(), Some("INTEL(R) XEON(R) PLATINUM 8558"));
        assert_eq!(parse_cpu_model("CPU implementer\t: 0x41\nCPU part\t: 0xd4f\n"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_in_stride(text in "(cpu )?[0-9 .,a-z:\n-]{0,120}") {
            parse_cpu_times(&text);
            parse_cpu_list(&text);
            parse_load(&text);
            parse_cpu_model(&text);
        }
    }
}
