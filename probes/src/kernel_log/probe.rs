//! Chooses a source, follows it, keeps the newest lines.

use std::path::PathBuf;

use super::file::LogFile;
use super::join::Joiner;
use super::kmsg::Kmsg;
use super::{KernelLine, KernelLog, parse_line};
use crate::machine::{Machine, read_line};
use crate::reading::{Absence, Reading};

const LOG_FILES: [&str; 3] = ["/var/log/kern.log", "/var/log/messages", "/var/log/syslog"];
/// How long a source that cannot be opened is left alone.
const RETRY_MS: u64 = 30_000;
const GRANT: &str =
    "CAP_SYSLOG or kernel.dmesg_restrict=0 for /dev/kmsg, or group adm for the files in /var/log";

/// Follows the kernel's log.
#[derive(Debug)]
pub struct KernelLogProbe {
    machine: Machine,
    source: Source,
    joiner: Joiner,
    log: KernelLog,
    /// When the source had nothing more to give; `None` while its past is still read.
    caught_up_at_ms: Option<u64>,
}

#[derive(Debug)]
enum Source {
    Closed { retry_at_ms: u64 },
    Kmsg(Kmsg),
    File(LogFile),
}

impl KernelLogProbe {
    /// A probe that has read nothing yet.
    pub fn new(machine: Machine) -> Self {
        Self {
            machine,
            source: Source::Closed { retry_at_ms: 0 },
            joiner: Joiner::default(),
            log: KernelLog::default(),
            caught_up_at_ms: None,
        }
    }

    /// Takes in what is new, without blocking. The first polls bring the past.
    pub fn poll(&mut self) -> &KernelLog {
        let now_ms = self.machine.now_ms();
        if let Source::Closed { retry_at_ms } = self.source
            && now_ms >= retry_at_ms
        {
            self.open(now_ms);
        }
        let mut found = Vec::new();
        let polled = match &mut self.source {
            Source::Closed { .. } => return &self.log,
            Source::Kmsg(kmsg) => {
                let clock = BootClock { machine: &self.machine, now_ms };
                let mut boot_ms = None;
                let joiner = &mut self.joiner;
                let live_since = self.caught_up_at_ms;
                let before = kmsg.lost_total;
                let polled = kmsg.poll(|record| {
                    let boot_ms = boot_ms.get_or_insert_with(|| clock.read_boot_ms());
                    let at_ms = boot_ms.clone().map(|boot| {
                        let at_ms = boot.saturating_add(record.usec / 1000);
                        live_since.map_or(at_ms, |since| at_ms.clamp(since.min(now_ms), now_ms))
                    });
                    for line in record.text.lines() {
                        joiner.push(at_ms.clone(), line, &mut found);
                    }
                });
                self.log.lost_total += kmsg.lost_total - before;
                polled
            }
            Source::File(file) => {
                let joiner = &mut self.joiner;
                let arrives = self.caught_up_at_ms.is_some();
                file.poll(|line| {
                    let written = parse_line(line).map(|line| line.at_ms).unwrap_or_default();
                    let at_ms = if arrives { written.or_else(|| now_ms.into()) } else { written };
                    joiner.push(at_ms, line, &mut found);
                })
            }
        };
        self.joiner.end_of_poll(&mut found);
        self.keep(found);
        match polled {
            Ok(true) => self.caught_up_at_ms = Some(now_ms),
            Ok(false) => {}
            Err(absence) => {
                self.log.source = Reading::Absent(absence);
                self.source = Source::Closed { retry_at_ms: now_ms.saturating_add(RETRY_MS) };
            }
        }
        &self.log
    }

    fn keep(&mut self, found: Vec<KernelLine>) {
        for line in found {
            self.log.keep(line);
        }
    }

    fn open(&mut self, now_ms: u64) {
        // A source opened again tells its past again.
        let ring = Kmsg::open(&self.machine);
        let denied_ring = matches!(ring, Err(Absence::Denied { .. }));
        if let Ok(kmsg) = ring {
            return self.start(Source::Kmsg(kmsg), "kmsg");
        }
        let mut denied_file = false;
        for name in LOG_FILES {
            let path: PathBuf = self.machine.root(name);
            match LogFile::open(&path) {
                Ok(file) => return self.start(Source::File(file), name),
                Err(Absence::Denied { .. }) => denied_file = true,
                Err(_) => {}
            }
        }
        self.log.source = Reading::Absent(if denied_ring || denied_file {
            Absence::Denied { need: GRANT.into() }
        } else {
            Absence::Failed {
                what: "no /dev/kmsg here and no kern.log, messages or syslog in /var/log; the journal is not read".into(),
            }
        });
        self.source = Source::Closed { retry_at_ms: now_ms.saturating_add(RETRY_MS) };
    }

    fn start(&mut self, source: Source, name: &str) {
        self.source = source;
        self.log.source = name.to_string().into();
        self.log.lines.clear();
        self.joiner = Joiner::default();
        self.caught_up_at_ms = None;
    }
}

/// Wall clock of the boot, from `uptime`: read only when a line needs it.
struct BootClock<'a> {
    machine: &'a Machine,
    now_ms: u64,
}

impl BootClock<'_> {
    fn read_boot_ms(&self) -> Reading<u64> {
        let uptime = read_line(&self.machine.proc("uptime")).unwrap_or_default();
        parse_uptime_ms(&uptime).map_or(Reading::Absent(Absence::NoData), |uptime_ms| {
            self.now_ms.saturating_sub(uptime_ms).into()
        })
    }
}

/// `5212.75 9000.00` as milliseconds; the file has two decimals.
pub(super) fn parse_uptime_ms(text: &str) -> Option<u64> {
    let (seconds, hundredths) = text.split_whitespace().next()?.split_once('.')?;
    let (seconds, hundredths): (u64, u64) = (seconds.parse().ok()?, hundredths.parse().ok()?);
    (hundredths < 100).then(|| seconds.checked_mul(1000)?.checked_add(hundredths * 10))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_tree::FakeTree;

    const NOW_MS: u64 = 1_800_000_000_000;

    #[test]
    fn the_ring_gives_its_past_and_then_what_is_new() {
        let tree = FakeTree::new(&[
            ("proc/uptime", "5000.50 1.0\n"),
            (
                "dev/kmsg",
                "6,1,1,-;Linux version 6.8\n4,2,60000000,-;NVRM: Xid (PCI:0000:9b:00): 31, x\n",
            ),
        ]);
        let mut probe = KernelLogProbe::new(tree.machine.clone());
        let log = probe.poll().clone();
        assert_eq!(log.source.text(), "kmsg");
        assert_eq!(log.lines.len(), 1);
        assert_eq!(log.lines[0].at_ms, (NOW_MS - 5_000_500 + 60_000).into());
        tree.append(
            "dev/kmsg",
            b"4,3,61000000,-;NVRM: The NVIDIA GPU 0000:b3:00.0\\x0aNVRM: (PCI ID: 10de:2330) installed in this system has\\x0aNVRM: fallen off the bus and is not responding to commands.\n",
        );
        let log = probe.poll();
        assert_eq!(log.lines[1].kind, "fallen_off_bus");
        // It arrived just now, whatever the kernel's clock says.
        assert_eq!(log.lines[1].at_ms, NOW_MS.into());
    }

    #[test]
    fn without_the_ring_a_log_file_is_followed() {
        let tree = FakeTree::new(&[(
            "var/log/messages",
            "Dec  1 03:56:57 node7 kernel: NVRM: Xid (PCI:0000:9b:00): 79, x\n",
        )]);
        let mut probe = KernelLogProbe::new(tree.machine.clone());
        let log = probe.poll().clone();
        assert_eq!(log.source.text(), "/var/log/messages");
        assert_eq!(log.lines[0].at_ms.absence(), Some(&Absence::NoData));
        tree.append(
            "var/log/messages",
            b"Dec  1 03:56:58 node7 kernel: Out of memory: Killed process 48190 (vllm) total-vm:1kB\n",
        );
        let log = probe.poll();
        assert_eq!(log.lines[1].process.as_deref(), Some("vllm"));
        assert_eq!(log.lines[1].at_ms, NOW_MS.into());
    }

    #[test]
    fn a_box_without_any_log_has_a_reason() {
        let mut probe = KernelLogProbe::new(FakeTree::new(&[]).machine.clone());
        let reason = probe.poll().source.absence().unwrap().to_string();
        assert_eq!(
            reason,
            "no /dev/kmsg here and no kern.log, messages or syslog in /var/log; the journal is not read"
        );
    }

    #[test]
    fn uptime_is_read_to_the_hundredth() {
        assert_eq!(parse_uptime_ms("5000.05 1.0"), Some(5_000_050));
        assert_eq!(parse_uptime_ms("x"), None);
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(32))]
        #[test]
        fn a_log_full_of_garbage_is_taken_in_stride(bytes: Vec<u8>) {
            let tree = FakeTree::new(&[]);
            tree.write("dev/kmsg", &bytes);
            tree.write("var/log/syslog", &bytes);
            KernelLogProbe::new(tree.machine.clone()).poll();
            std::fs::remove_file(tree.path("dev/kmsg")).unwrap();
            KernelLogProbe::new(tree.machine.clone()).poll();
        }
    }
}
