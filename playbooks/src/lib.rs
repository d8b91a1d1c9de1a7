//! Judges a snapshot. For now it says what the snapshot states outright; rules with conditions,
//! checks and fixes come as data files.

#![forbid(unsafe_code)]

use probes::finding::{Finding, Severity, Subject};
use probes::kernel_log::KernelLine;
use probes::nvml::codes::RESET_REQUIRED;
use probes::nvml::ecc::RECOVERY_ACTIONS;
use probes::pci::same_pci_device;
use probes::snapshot::{Gpu, Health, Snapshot};

/// What is wrong now, worst first; equal ones in the order of the GPUs.
pub fn judge(snapshot: &Snapshot) -> Vec<Finding> {
    let mut findings: Vec<Finding> = snapshot.driver.problem.iter().map(driver).collect();
    for gpu in snapshot.gpus.iter().filter(|gpu| gpu.mig.is_none()) {
        findings.extend(health(snapshot, gpu));
        findings.extend(memory_errors(gpu));
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

fn driver(problem: &probes::driver::DriverProblem) -> Finding {
    Finding {
        cause: problem.cause.clone(),
        severity: problem.severity(),
        subject: Subject::Box,
        title: problem.title.clone(),
        since_ms: 0,
        evidence: problem.evidence.clone(),
        help: problem.help.clone(),
    }
}

fn health(snapshot: &Snapshot, gpu: &Gpu) -> Option<Finding> {
    // Without a driver no GPU answers; the driver's own finding says why.
    if snapshot.driver.problem.as_ref().is_some_and(|problem| problem.blocking) {
        return None;
    }
    let subject = Subject::Gpu(gpu.index);
    let xids = gpu.xids.iter().map(|xid| format!("the driver reported Xid {}", xid.code));
    match &gpu.health {
        Health::Starting | Health::Answering => None,
        Health::NoAnswer { call, since_ms, thread } => {
            let seconds = snapshot.taken_at_ms.saturating_sub(*since_ms) / 1000;
            // Taking a GPU that no client and no persistence daemon holds initialises it.
            if call.starts_with("nvmlDeviceGetHandle") && seconds < 10 {
                return None;
            }
            Some(Finding {
                cause: "driver_call_stuck".into(),
                severity: Severity::Critical,
                subject,
                title: "a driver call does not return".into(),
                since_ms: *since_ms,
                evidence: [format!("{call} has not returned for {seconds} s")]
                    .into_iter()
                    .chain((!thread.is_empty()).then(|| format!("its thread is in {thread}")))
                    .chain(xids)
                    .collect(),
                help: "look for Xid lines in the kernel log; do not end processes of this GPU \
                       by force, they hang in the same driver"
                    .into(),
            })
        }
        Health::Lost { since_ms, answer } => {
            let lines: Vec<&KernelLine> = kernel_lines(snapshot, gpu).collect();
            // The kernel saw it before we began to look.
            let first = lines.iter().find_map(|line| line.at_ms.get());
            let said =
                lines.iter().take(MOST_LINES).map(|line| format!("kernel log: {}", line.text));
            let answer = format!("the driver answers: {answer}");
            Some(Finding {
                cause: "gpu_fell_off_bus".into(),
                severity: Severity::Critical,
                subject,
                title: "the GPU is lost".into(),
                since_ms: first.map_or(*since_ms, |first| first.min(*since_ms)),
                evidence: std::iter::once(answer).chain(said).chain(xids).collect(),
                help: "move the work of this GPU elsewhere; what revives it is a reboot of the \
                       node, which ends everything on it; look at power, riser and seating if it \
                       comes back lost"
                    .into(),
            })
        }
        Health::Failing { code, since_ms, answer } => {
            let reset = *code == RESET_REQUIRED;
            Some(Finding {
                cause: if reset { "gpu_reset_required" } else { "gpu_call_failed" }.into(),
                severity: Severity::Critical,
                subject,
                title: if reset {
                    "the GPU waits for a reset"
                } else {
                    "the driver refuses this GPU"
                }
                .into(),
                since_ms: *since_ms,
                evidence: std::iter::once(format!("the driver answers: {answer}"))
                    .chain(xids)
                    .collect(),
                help: if reset {
                    "stop every process on this GPU first, infertop included, then reset it; on an \
                     NVSwitch box all GPUs are reset together"
                } else {
                    "read the kernel log and the rights of the device node"
                }
                .into(),
            })
        }
    }
}

/// Lines of the kernel log that are shown as evidence.
const MOST_LINES: usize = 3;

/// What the kernel said about this GPU's fall, oldest first.
fn kernel_lines<'a>(snapshot: &'a Snapshot, gpu: &'a Gpu) -> impl Iterator<Item = &'a KernelLine> {
    let of_this = |line: &&KernelLine| {
        line.pci.as_deref().is_some_and(|pci| same_pci_device(pci, gpu.pci.text()))
    };
    let of_a_fall = |line: &&KernelLine| {
        line.kind == "fallen_off_bus" || matches!(line.code, Some(79 | 119 | 120 | 154))
    };
    snapshot.kernel_log.lines.iter().filter(of_this).filter(of_a_fall)
}

fn memory_errors(gpu: &Gpu) -> Vec<Finding> {
    let subject = Subject::Gpu(gpu.index);
    let rows = gpu.ecc.remapped_uncorrected_total.get();
    let evidence = rows.map(|rows| format!("{rows} rows remapped for uncorrected errors"));
    let mut found = Vec::new();
    if gpu.ecc.remap_failed.get() == Some(true) {
        found.push(Finding {
            cause: "row_remap_failed".into(),
            severity: Severity::Critical,
            subject: subject.clone(),
            title: "row remapping failed".into(),
            evidence: evidence.iter().cloned().collect(),
            help: "move the work elsewhere and have the GPU replaced".into(),
            ..Finding::default()
        });
    } else if gpu.ecc.remap_pending.get() == Some(true) {
        found.push(Finding {
            cause: "row_remap_pending".into(),
            severity: Severity::Warning,
            subject: subject.clone(),
            title: "rows wait for a reset to be remapped".into(),
            evidence: evidence.into_iter().collect(),
            help: "plan a reset of this GPU: every process on it must stop first".into(),
            ..Finding::default()
        });
    }
    if let Some(action @ 1..) = gpu.ecc.recovery_action.get() {
        let words = RECOVERY_ACTIONS.get(action as usize).copied().unwrap_or("an unknown action");
        found.push(Finding {
            cause: "xid_recovery_action".into(),
            severity: Severity::Critical,
            subject,
            title: format!("the driver asks for: {words}"),
            evidence: vec![format!("recovery action {action}")],
            help: "find the Xid that came before it; whatever is done ends the work on this GPU"
                .into(),
            ..Finding::default()
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(health: Health) -> Snapshot {
        let gpus = vec![Gpu { index: 5, health, ..Gpu::default() }];
        Snapshot { taken_at_ms: 20_000, gpus, ..Snapshot::default() }
    }

    #[test]
    fn a_stuck_call_is_named_with_its_age() {
        let health = Health::NoAnswer {
            call: "nvmlDeviceGetUtilizationRates".into(),
            since_ms: 13_000,
            thread: "D rpc_wait".into(),
        };
        let finding = judge(&snapshot(health)).remove(0);
        assert_eq!(finding.cause, "driver_call_stuck");
        assert_eq!(finding.subject, Subject::Gpu(5));
        assert!(
            finding.evidence[0].contains("nvmlDeviceGetUtilizationRates has not returned for 7 s")
        );
    }

    #[test]
    fn a_lost_gpu_shows_what_the_kernel_said_and_since_when() {
        let mut snapshot =
            snapshot(Health::Lost { since_ms: 19_000, answer: "GPU is lost".into() });
        snapshot.gpus[0].pci = "0000:9b:00.0".to_string().into();
        let line = |pci: &str, code| KernelLine {
            at_ms: 12_000.into(),
            text: format!("NVRM: Xid (PCI:{pci}): {code}"),
            kind: "xid".into(),
            code: Some(code),
            pci: Some(pci.into()),
            ..KernelLine::default()
        };
        snapshot.kernel_log.lines =
            vec![line("0000:9b:00", 79), line("0000:9b:00", 13), line("0000:01:00", 79)];
        let finding = judge(&snapshot).remove(0);
        assert_eq!(finding.since_ms, 12_000);
        assert_eq!(finding.evidence.len(), 2, "{:?}", finding.evidence);
    }

    #[test]
    fn a_gpu_that_is_being_initialised_is_no_fault() {
        let call = "nvmlDeviceGetHandleByIndex_v2".to_string();
        let health = Health::NoAnswer { call, since_ms: 17_500, thread: String::new() };
        assert_eq!(judge(&snapshot(health)), []);
    }

    #[test]
    fn a_healthy_box_has_no_findings_and_unknown_is_not_judged() {
        assert_eq!(judge(&snapshot(Health::Answering)), []);
    }

    #[test]
    fn a_recovery_action_of_a_newer_driver_is_still_reported() {
        let mut snapshot = snapshot(Health::Answering);
        snapshot.gpus[0].ecc.recovery_action = 12.into();
        assert!(judge(&snapshot)[0].title.contains("unknown action"));
    }
}
