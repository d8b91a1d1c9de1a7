//! A line of the kernel log as people read it.

use std::fmt::Write;

use probes::kernel_log::KernelLine;
use probes::units;

use crate::view::View;

/// A line of the kernel log: when, and what, led by the GPU that it is about. What the driver puts in
/// front of its lines (its name, the address, the number of the error) is taken off where it is said.
pub(crate) fn read_out(view: &View, line: &KernelLine) -> (String, String) {
    let at = line
        .at_ms
        .get()
        .map_or("time ?".into(), |at| units::moment(at, view.at_ms(), view.utc_offset_seconds));
    let mut rest = line.text.strip_prefix("NVRM: ").unwrap_or(&line.text);
    let address = line.pci.as_deref().filter(|pci| !pci.is_empty());
    let mut subject = address.map_or(String::new(), |address| {
        let gpus = &view.snapshot.gpus;
        let gpu = gpus.iter().find(|gpu| gpu.pci.text().starts_with(address));
        gpu.map_or_else(|| address.into(), |gpu| format!("GPU {}", gpu.index))
    });
    if let Some(code) = line.code {
        let name = if line.kind == "sxid" { "SXid" } else { "Xid" };
        let gap = if subject.is_empty() { "" } else { " " };
        let _ = write!(subject, "{gap}{name} {code}");
        // `Xid (PCI:0000:5d:00): 79, pid=…`
        let number = format!("): {code}, ");
        if let Some((head, words)) = rest.split_once(&number)
            && head.starts_with(&format!("{name} ("))
        {
            rest = words;
        }
    } else if let Some(address) = address {
        // `GPU 0000:5d:00.0: GPU has fallen off the bus.`
        let named = rest.strip_prefix("GPU ").and_then(|rest| rest.strip_prefix(address));
        if let Some((function, words)) = named.and_then(|rest| rest.split_once(": "))
            && function.len() <= 2
        {
            rest = words;
        }
    } else if line.kind != "oom_kill" {
        subject = "NVRM".into();
    }
    if subject.is_empty() { (at, rest.into()) } else { (at, format!("{subject}: {rest}")) }
}

#[cfg(test)]
mod tests {
    use probes::kernel_log::parse_line;
    use probes::snapshot::{Gpu, Snapshot};

    use super::*;
    use crate::view::Feed;

    #[test]
    fn what_leads_a_line_is_not_said_twice() {
        let gpus = vec![Gpu { index: 3, pci: "0000:5d:00.0".to_string().into(), ..Gpu::default() }];
        let snapshot = Snapshot { gpus, ..Snapshot::default() };
        let (history, feed) = (probes::history::History::new(1), Feed::default());
        let view = View {
            snapshot: &snapshot,
            ledgers: &[],
            history: &history,
            findings: &[],
            feed: &feed,
            past: &crate::view::Past::default(),
            now_ms: 0,
            utc_offset_seconds: 0,
        };
        for (line, words) in [
            (
                "NVRM: Xid (PCI:0000:5d:00): 79, pid=7, name=x, GPU has fallen off the bus.",
                "GPU 3 Xid 79: pid=7, name=x, GPU has fallen off the bus.",
            ),
            ("NVRM: Xid (PCI:0000:9b:00): 31, MMU Fault", "0000:9b:00 Xid 31: MMU Fault"),
            (
                "NVRM: GPU 0000:5d:00.0: GPU has fallen off the bus.",
                "GPU 3: GPU has fallen off the bus.",
            ),
            (
                "NVRM: GPU Board Serial Number: 1653922004411",
                "NVRM: GPU Board Serial Number: 1653922004411",
            ),
            (
                "Out of memory: Killed process 4 (vllm) total-vm:1kB",
                "Out of memory: Killed process 4 (vllm) total-vm:1kB",
            ),
        ] {
            assert_eq!(read_out(&view, &parse_line(line).unwrap()).1, words);
        }
    }
}
