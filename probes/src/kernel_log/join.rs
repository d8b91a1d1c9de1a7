//! Puts together what the driver prints over several lines: version mismatch, a GPU that is off
//! the bus, a GPU that the open module does not support.
//!
//! Such a message ends with a full stop at the end of a line. When the rest does not come, what is
//! there is given out at the next poll but one.

use super::{KernelLine, parse_line};
use crate::reading::Reading;

/// More lines than any known message has.
const MESSAGE_LINES: usize = 8;
const MARK: &str = "NVRM:";

#[derive(Debug, Default)]
pub(super) struct Joiner {
    pending: Option<Pending>,
}

#[derive(Debug)]
struct Pending {
    at_ms: Reading<u64>,
    text: String,
    lines: usize,
    polls: usize,
}

impl Joiner {
    /// Takes one line; gives what is complete with it.
    pub(super) fn push(&mut self, at_ms: Reading<u64>, line: &str, out: &mut Vec<KernelLine>) {
        let body = line.find(MARK).map(|start| line[start + MARK.len()..].trim());
        let Some(body) = body else {
            out.extend(dated(at_ms, line));
            return;
        };
        if opens(body) {
            self.flush(out);
            self.pending =
                Some(Pending { at_ms, text: format!("{MARK} {body}"), lines: 1, polls: 0 });
            return;
        }
        match &mut self.pending {
            Some(pending) if !stands_alone(body) => {
                pending.text.push(' ');
                pending.text.push_str(body);
                pending.lines += 1;
                if body.ends_with('.') || pending.lines >= MESSAGE_LINES {
                    self.flush(out);
                }
            }
            _ => {
                self.flush(out);
                out.extend(dated(at_ms, line));
            }
        }
    }

    /// The end of a poll: a message that has waited for two is given out as it is.
    pub(super) fn end_of_poll(&mut self, out: &mut Vec<KernelLine>) {
        if let Some(pending) = &mut self.pending {
            pending.polls += 1;
            if pending.polls > 1 {
                self.flush(out);
            }
        }
    }

    fn flush(&mut self, out: &mut Vec<KernelLine>) {
        if let Some(pending) = self.pending.take() {
            out.extend(dated(pending.at_ms, &pending.text));
        }
    }
}

/// A line that more lines follow.
fn opens(body: &str) -> bool {
    let mismatch =
        body.starts_with("API mismatch: the client") && !body.contains("has the version");
    mismatch || (body.starts_with("The NVIDIA GPU ") && !body.ends_with('.'))
}

/// A line that cannot continue another.
fn stands_alone(body: &str) -> bool {
    ["Xid (", "GPU ", "API mismatch", "The NVIDIA ", "loading "]
        .iter()
        .any(|start| body.starts_with(start))
}

fn dated(at_ms: Reading<u64>, text: &str) -> Option<KernelLine> {
    let line = parse_line(text)?;
    Some(KernelLine { at_ms: at_ms.or_else(|| line.at_ms.clone()), ..line })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(text: &str) -> Vec<KernelLine> {
        let (mut joiner, mut out) = (Joiner::default(), Vec::new());
        for line in text.lines() {
            joiner.push(7.into(), line, &mut out);
        }
        joiner.end_of_poll(&mut out);
        joiner.end_of_poll(&mut out);
        out
    }

    #[test]
    fn a_version_mismatch_over_five_lines_is_one_line() {
        let lines = join(
            "NVRM: API mismatch: the client 'nvidia-smi' (pid 4242)\n\
             NVRM: has the version 570.133.07, but this kernel module has\n\
             NVRM: the version 570.124.06.  Please make sure that this\n\
             NVRM: kernel module and all NVIDIA driver components\n\
             NVRM: have the same version.\n\
             NVRM: Xid (PCI:0000:9b:00): 79, x",
        );
        assert_eq!(lines.len(), 2);
        assert_eq!(
            (lines[0].kind.as_str(), lines[0].pid, lines[0].process.as_deref()),
            ("api_mismatch", Some(4242), Some("nvidia-smi"))
        );
        assert!(lines[0].text.contains("has the version 570.133.07, but this"));
        assert!(lines[0].text.ends_with("have the same version."));
    }

    #[test]
    fn a_gpu_off_the_bus_over_three_lines_is_one_line() {
        let lines = join(
            "NVRM: The NVIDIA GPU 0000:b3:00.0\n\
             NVRM: (PCI ID: 10de:2330) installed in this system has\n\
             \x20              NVRM: fallen off the bus and is not responding to commands.",
        );
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].kind, "fallen_off_bus");
        assert_eq!(lines[0].pci.as_deref(), Some("0000:b3:00"));
        assert_eq!(lines[0].at_ms, 7.into());
    }

    #[test]
    fn a_message_that_breaks_off_is_given_out_as_it_is() {
        let lines = join("NVRM: The NVIDIA GPU 0000:b3:00.0\nNVRM: Xid (PCI:0000:9b:00): 31, x");
        let kinds: Vec<&str> = lines.iter().map(|line| line.kind.as_str()).collect();
        assert_eq!(kinds, ["nvrm", "xid"]);
        assert_eq!(join("NVRM: API mismatch: the client 'x' (pid 1)").len(), 1);
    }

    #[test]
    fn lines_of_other_origin_pass_between() {
        let lines = join(
            "NVRM: The NVIDIA GPU 0000:b3:00.0\n\
             Out of memory: Killed process 1 (x) total-vm:9kB\n\
             NVRM: (PCI ID: 10de:2330) installed in this system has\n\
             NVRM: fallen off the bus and is not responding to commands.",
        );
        let kinds: Vec<&str> = lines.iter().map(|line| line.kind.as_str()).collect();
        assert_eq!(kinds, ["oom_kill", "fallen_off_bus"]);
    }

    proptest::proptest! {
        #[test]
        fn any_lines_are_taken_in_stride(
            text in "((NVRM: |NVRM: API mismatch: the client|NVRM: The NVIDIA GPU )?.{0,20}\n){0,12}"
        ) {
            join(&text);
        }
    }
}
