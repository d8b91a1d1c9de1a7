//! One line of text, with or without the prefix that a log puts before it.
//!
//! Formats as the driver of release 595 prints them, and as older ones did: without `PCI:`, with
//! `pid='<unknown>'`, without a name, without a process at all. The bus address has no function.

use super::KernelLine;
use super::time::parse_time;
use crate::pci::parse_pci_word;
use crate::reading::{Absence, Reading};

const DRIVER_MARK: &str = "NVRM:";
const SWITCH_MARK: &str = "nvidia-nvswitch";
const KILL_MARK: &str = "Killed process ";
/// What is kept of a line.
const TEXT_CHARS: usize = 600;

/// Whether a line can be one of ours: cheap, for the many that are not.
pub(super) fn may_matter(line: &str) -> bool {
    [DRIVER_MARK, SWITCH_MARK, KILL_MARK].iter().any(|mark| line.contains(mark))
}

/// What a line says about a GPU or a killed process; `None` for all other lines.
///
/// The time is absent unless the line begins with a full date and zone.
pub fn parse_line(line: &str) -> Option<KernelLine> {
    let at_ms = line
        .split_whitespace()
        .next()
        .and_then(parse_time)
        .map_or(Reading::Absent(Absence::NoData), Reading::Value);
    let parsed = if let Some(start) = line.find(DRIVER_MARK) {
        parse_driver_line(&line[start..])
    } else if let Some(start) = line.find(SWITCH_MARK) {
        parse_switch_line(&line[start..])?
    } else {
        parse_kill(line)?
    };
    Some(KernelLine { at_ms, ..parsed })
}

fn parse_driver_line(text: &str) -> KernelLine {
    let body = text.strip_prefix(DRIVER_MARK).unwrap_or(text).trim_start();
    if let Some(xid) = body.strip_prefix("Xid (").and_then(|rest| parse_error(rest, "xid")) {
        return KernelLine { text: cut(text), ..xid };
    }
    let line = KernelLine { text: cut(text), pci: find_pci(body), ..KernelLine::default() };
    if body.contains("fallen off the bus") {
        return KernelLine { kind: "fallen_off_bus".into(), ..line };
    }
    if body.starts_with("API mismatch") {
        return KernelLine {
            kind: "api_mismatch".into(),
            pid: between(body, "(pid ", ")").and_then(|pid| pid.parse().ok()),
            process: between(body, "the client '", "'").map(cut),
            ..line
        };
    }
    KernelLine { kind: "nvrm".into(), ..line }
}

fn parse_switch_line(text: &str) -> Option<KernelLine> {
    let error = parse_error(between(text, "SXid (", "")?, "sxid")?;
    Some(KernelLine { text: cut(text), ..error })
}

/// What follows `Xid (`: `PCI:0000:9b:00 GPU-I:05): 119, pid=7, name=x, …`.
fn parse_error(rest: &str, kind: &str) -> Option<KernelLine> {
    let (place, message) = rest.split_once("):")?;
    let message = message.trim_start();
    let digits = message.find(|c: char| !c.is_ascii_digit()).unwrap_or(message.len());
    let code = message[..digits].parse().ok()?;
    let field = |name: &str| {
        let value = between(message, name, "")?;
        let value = value.split(',').next()?.trim().trim_matches('\'');
        (!value.is_empty() && value != "<unknown>").then_some(value)
    };
    Some(KernelLine {
        kind: kind.into(),
        code: Some(code),
        caused_by: between(message, "caused by previous Xid ", "")
            .and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()),
        pci: place
            .split_whitespace()
            .next()
            .and_then(|word| parse_pci_word(word.strip_prefix("PCI:").unwrap_or(word))),
        pid: field(" pid=").and_then(|pid| pid.parse().ok()),
        process: field(" name=").map(cut),
        gpu_instance: place
            .split_whitespace()
            .find_map(|word| word.strip_prefix("GPU-I:")?.parse().ok()),
        ..KernelLine::default()
    })
}

/// `Out of memory: Killed process 48190 (vllm) total-vm:…` of the host, of a memory cgroup, and of
/// kernels that print no reason before it. The announcement `Kill process …` of old kernels is left
/// out: it is followed by the line we take.
fn parse_kill(line: &str) -> Option<KernelLine> {
    let start = line.find(KILL_MARK)?;
    let (pid, rest) = line[start + KILL_MARK.len()..].split_once(' ')?;
    let pid = pid.trim_end_matches(',').parse().ok()?;
    // A process may have brackets in its name.
    let end = rest.find(") total-vm").or_else(|| rest.find("),")).or_else(|| rest.rfind(')'))?;
    let process = rest.get(..end)?.strip_prefix('(')?;
    let reason = ["Memory cgroup out of memory: ", "Out of memory: "]
        .iter()
        .find(|reason| line[..start].ends_with(*reason))
        .map_or(0, |reason| reason.len());
    Some(KernelLine {
        text: cut(&line[start - reason..]),
        kind: "oom_kill".into(),
        pid: Some(pid),
        process: Some(cut(process)),
        ..KernelLine::default()
    })
}

fn find_pci(text: &str) -> Option<String> {
    text.split_whitespace()
        .find_map(|word| parse_pci_word(word.trim_start_matches('(').trim_start_matches("PCI:")))
}

/// The text after `start` and before `end`; an empty `end` takes all the rest.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    if end.is_empty() { Some(rest) } else { rest.split_once(end).map(|(inner, _)| inner) }
}

/// Text to keep, for a terminal: a process may have any name, and the kernel repeats it.
fn cut(text: &str) -> String {
    let plain = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    text.trim_end().chars().take(TEXT_CHARS).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kind, code, bus, pid, process, instance.
    type Facts<'a> =
        (&'a str, Option<u32>, Option<&'a str>, Option<u32>, Option<&'a str>, Option<u32>);

    #[test]
    fn each_format_of_each_driver_is_understood() {
        let bus = Some("0000:9b:00");
        let cases: &[(&str, Facts)] = &[
            (
                "NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s of waiting for RPC response from GPU4 GSP! Expected function 103 (GSP_RM_ALLOC) (0x2081 0x4).",
                ("xid", Some(119), bus, Some(2_024_380), Some("nvidia-smi"), None),
            ),
            (
                "[93297.027938] NVRM: Xid (PCI:0000:9b:00): 13, pid='<unknown>', name=<unknown>, Graphics Exception: ESR 0x52e7b0=0x101000e",
                ("xid", Some(13), bus, None, None, None),
            ),
            (
                "NVRM: Xid (PCI:0000:9b:00): 94, pid=7194, Contained: SM (0x1)",
                ("xid", Some(94), bus, Some(7194), None, None),
            ),
            (
                "[Fri Aug 30 11:43:14 2024] NVRM: Xid (0000:9b:00): 14, Channel 00000001",
                ("xid", Some(14), bus, None, None, None),
            ),
            (
                "NVRM: Xid (PCI:0000:9b:00 GPU-I:05 GPU-CI:00): 43, pid=12, name=python3, Ch 8",
                ("xid", Some(43), bus, Some(12), Some("python3"), Some(5)),
            ),
            (
                "Dec  1 03:56:57 node7 kernel: [ 12.5] NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.",
                ("xid", Some(79), bus, None, None, None),
            ),
            (
                "NVRM: Xid (PCI:0000:9b:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x00000000)",
                ("xid", Some(149), bus, None, None, None),
            ),
            (
                "NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)",
                ("xid", Some(154), bus, None, None, None),
            ),
            (
                "nvidia-nvswitch3: SXid (PCI:0000:9b:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error",
                ("sxid", Some(12028), bus, None, None, None),
            ),
            (
                "NVRM: GPU 0000:9b:00.0: GPU has fallen off the bus.",
                ("fallen_off_bus", None, bus, None, None, None),
            ),
            (
                "NVRM: API mismatch: the client 'nvidia-smi' (pid 4242) has the version 570.133.07, but this kernel module has the version 570.124.06.  Please make sure",
                ("api_mismatch", None, None, Some(4242), Some("nvidia-smi"), None),
            ),
            (
                "NVRM: API mismatch: client version 570.133.07, kernel module version 570.124.06",
                ("api_mismatch", None, None, None, None, None),
            ),
            ("NVRM: GPU at PCI:0000:9b:00: GPU-6d6e", ("nvrm", None, bus, None, None, None)),
            (
                "Out of memory: Killed process 48190 (vllm) total-vm:9kB, anon-rss:8kB",
                ("oom_kill", None, None, Some(48190), Some("vllm"), None),
            ),
            (
                "Memory cgroup out of memory: Killed process 31 (VLLM::Worker (1)) total-vm:9kB",
                ("oom_kill", None, None, Some(31), Some("VLLM::Worker (1)"), None),
            ),
            ("Killed process 31, UID 0, (python) total-vm:9kB", ("", None, None, None, None, None)),
        ];
        for (text, wanted) in cases {
            let line = parse_line(text).unwrap_or_default();
            let facts: Facts = (
                &line.kind,
                line.code,
                line.pci.as_deref(),
                line.pid,
                line.process.as_deref(),
                line.gpu_instance,
            );
            assert_eq!(facts, *wanted, "{text}");
        }
    }

    #[test]
    fn the_earlier_error_that_a_line_names_is_kept() {
        let line = parse_line(
            "NVRM: Xid (PCI:0000:dc:00): 45, pid=1, name=p, Ch 1 caused by previous Xid 149",
        );
        assert_eq!(line.unwrap().caused_by, Some(149));
    }

    #[test]
    fn a_text_starts_at_the_message_and_a_full_date_is_its_time() {
        let line = parse_line(
            "2026-12-01T03:56:57.250000+01:00 node7 kernel: NVRM: Xid (PCI:0000:9b:00): 79, x\n",
        )
        .unwrap();
        assert_eq!(line.text, "NVRM: Xid (PCI:0000:9b:00): 79, x");
        assert_eq!(line.at_ms, 1_796_093_817_250.into());
    }

    #[test]
    fn other_lines_are_none_of_ours() {
        for line in [
            "",
            "EXT4-fs (vda): mounted filesystem",
            "Out of memory: Kill process 12 (x) score 900 or sacrifice child",
            "nvidia-nvswitch0: open (major=234)",
            "Killed process ",
        ] {
            assert_eq!(parse_line(line), None, "{line}");
        }
    }

    #[test]
    fn a_broken_error_line_is_still_a_line_of_the_driver() {
        for line in ["NVRM: Xid (", "NVRM: Xid (PCI:0000:9b:00): x", "NVRM: Xid (): 99999999999,"] {
            assert_eq!(parse_line(line).unwrap().kind, "nvrm", "{line}");
        }
    }

    #[test]
    fn a_name_that_would_move_the_cursor_is_kept_without_its_escapes() {
        for line in [
            "NVRM: Xid (PCI:0000:9b:00): 13, pid=7, name=a\u{1b}[2Jb, x",
            "NVRM: API mismatch: the client 'a\u{1b}[2Jb' (pid 7)",
            "Out of memory: Killed process 7 (a\u{1b}[2Jb) total-vm:1kB",
        ] {
            let parsed = parse_line(line).unwrap();
            assert_eq!(parsed.process.as_deref(), Some("a\u{fffd}[2Jb"));
            assert!(parsed.text.contains("a\u{fffd}[2Jb"));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_in_stride(
            text in "(NVRM: Xid \\(|nvidia-nvswitch0: SXid \\(|Killed process |NVRM: )?(.|\n){0,120}"
        ) {
            parse_line(&text);
        }

        #[test]
        fn any_bytes_are_taken_in_stride(bytes: Vec<u8>) {
            parse_line(&String::from_utf8_lossy(&bytes));
        }
    }
}
