//! What the kernel said about the GPUs: lines of NVRM (the driver's kernel side), `Xid` and `SXid`
//! errors, and processes killed for memory.
//!
//! Truth: `/dev/kmsg`, else the kernel's lines in a log file below `/var/log`. Both are read without
//! blocking. The journal's files are not parsed and no program is started for them: the daemon
//! starts none beside production servers. A line of user space that imitates the driver is told by
//! its facility or tag and left out.
//!
//! Times from the ring are the kernel's clock added to the time of boot. That clock drifts by
//! seconds over months and stands still while the box sleeps; a line that is seen to arrive is
//! therefore dated between the last poll and this one.

mod file;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
mod join;
mod kmsg;
mod lines;
mod parse;
mod probe;
mod time;
mod xid;

use serde::{Deserialize, Serialize};

use crate::reading::Reading;

pub use parse::parse_line;
pub use probe::KernelLogProbe;
pub use xid::xid_name;

/// The kernel's lines about GPUs, newest last, at most [`KEPT_LINES`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelLog {
    /// Where lines come from: `kmsg`, `/var/log/kern.log`; absent with the reason.
    pub source: Reading<String>,
    /// The lines. Where one GPU repeats one error, the first is kept and later repeats go first.
    pub lines: Vec<KernelLine>,
    /// Records that the kernel overwrote before they were read, since the start of this probe.
    pub lost_total: u64,
}

/// How many lines a snapshot carries.
pub const KEPT_LINES: usize = 64;

/// How many repeats of one error by one GPU are kept: a burst of 200 must not push out the line
/// that came before it and names the cause.
const KEPT_REPEATS: usize = 16;

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelLine {
    /// Wall clock, milliseconds since 1970; absent where the log has no usable time.
    pub at_ms: Reading<u64>,
    /// The text without its time stamp.
    pub text: String,
    /// `xid`, `sxid`, `fallen_off_bus`, `api_mismatch`, `nvrm`, `oom_kill`.
    pub kind: String,
    /// Number of the `Xid` or `SXid`.
    pub code: Option<u32>,
    /// The earlier Xid that the line itself names as its cause.
    pub caused_by: Option<u32>,
    /// `0000:9b:00`, without the function.
    pub pci: Option<String>,
    /// Process that the line names.
    pub pid: Option<u32>,
    /// Name of that process.
    pub process: Option<String>,
    /// MIG GPU instance in the bracket.
    pub gpu_instance: Option<u32>,
}

impl KernelLog {
    fn keep(&mut self, line: KernelLine) {
        let same = |other: &KernelLine| {
            (&other.kind, other.code, &other.pci) == (&line.kind, line.code, &line.pci)
        };
        let mut repeats = self.lines.iter().enumerate().filter(|(_, other)| same(other));
        let second = repeats.nth(1).map(|(index, _)| index);
        // The first and the second are taken; what is left counts from there.
        match second {
            Some(index) if repeats.count() + 2 >= KEPT_REPEATS => {
                self.lines.remove(index);
            }
            _ if self.lines.len() >= KEPT_LINES => {
                self.lines.remove(0);
            }
            _ => {}
        }
        self.lines.push(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_does_not_push_out_the_line_that_names_the_cause() {
        let mut log = KernelLog::default();
        log.keep(parse_line("NVRM: Xid (PCI:0000:9b:00): 119, Timeout").unwrap());
        for channel in 0..200 {
            let line = format!("NVRM: Xid (PCI:0000:9b:00): 45, pid=7, name=x, Ch {channel}");
            log.keep(parse_line(&line).unwrap());
        }
        assert_eq!(log.lines.len(), 1 + KEPT_REPEATS);
        assert_eq!(log.lines[0].code, Some(119));
        assert!(log.lines[1].text.ends_with("Ch 0"));
        assert!(log.lines[KEPT_REPEATS].text.ends_with("Ch 199"));
    }

    #[test]
    fn the_newest_lines_are_kept() {
        let mut log = KernelLog::default();
        for code in 0..200 {
            log.keep(parse_line(&format!("NVRM: Xid (PCI:0000:9b:00): {code}, x")).unwrap());
        }
        assert_eq!(log.lines.len(), KEPT_LINES);
        assert_eq!(log.lines.last().unwrap().code, Some(199));
    }
}
