//! What holds on every machine, whatever the goldens say.

use probes::snapshot::{Gpu, Snapshot};

use super::recorded::Machine;
use super::screens::Picture;

/// Total = reserved + used + free, and used = holders + nobody (or less, where memory is shared).
pub fn memory_adds_up(picture: &Picture) {
    // The driver's figures are whole MiB and may each be rounded.
    const SLACK: u64 = 4 << 20;
    for (gpu, ledger) in picture.snapshot.gpus.iter().zip(&picture.ledgers) {
        let memory = &gpu.memory;
        let (Some(total), Some(used), Some(free)) =
            (memory.total_bytes.get(), memory.used_bytes.get(), memory.free_bytes.get())
        else {
            continue;
        };
        let reserved = memory.reserved_bytes.get().unwrap_or(0);
        let label = gpu.label();
        assert!(
            total.abs_diff(reserved + used + free) <= SLACK,
            "GPU {label}: {total} is not {reserved} + {used} + {free}"
        );
        if let Some(nobody) = ledger.unattributed_bytes.get() {
            let parts = ledger.held_bytes() + nobody;
            assert_eq!(parts, used + ledger.shared_bytes, "GPU {label}: the holders");
        }
    }
}

/// GPUs stand in the order of their numbers, each followed by its instances, none missing.
pub fn numbers_are_in_order(snapshot: &Snapshot) {
    let whole: Vec<u32> =
        snapshot.gpus.iter().filter(|gpu| gpu.mig.is_none()).map(|gpu| gpu.index).collect();
    assert!(whole.iter().copied().eq(0..u32::try_from(whole.len()).unwrap()), "{whole:?}");
    assert!(snapshot.gpus.is_sorted_by_key(|gpu| (gpu.index, gpu.mig.is_some())));
}

/// Each process that is in the recording is known as such, whatever the driver says.
pub fn listed_pids_are_known(machine: &Machine, snapshot: &Snapshot) {
    for process in &snapshot.processes {
        let recorded = machine.file(&format!("proc/{}/stat", process.pid)).exists();
        let known = process.exists.get() == Some(true);
        assert_eq!(known, recorded, "process {}: {:?}", process.pid, process.exists);
    }
}

/// A GPU that does not answer shows no zeros as if it had measured them; one without its own memory
/// has no reserve of 0.
pub fn nothing_absent_is_zero(machine: &Machine, snapshot: &Snapshot) {
    let figures = |gpu: &Gpu| {
        [
            gpu.utilization.gpu_ratio.get(),
            gpu.power.draw_watts.get(),
            gpu.memory.used_bytes.number().get(),
            gpu.memory.total_bytes.number().get(),
            gpu.temperature.gpu_celsius.number().get(),
        ]
    };
    for gpu in &snapshot.gpus {
        let label = gpu.label();
        if !gpu.answers() {
            assert!(figures(gpu).iter().all(|figure| *figure != Some(0.0)), "GPU {label}");
        }
        assert_ne!(gpu.memory.total_bytes.get(), Some(0), "GPU {label}: no memory at all");
        if gpu.memory.unified {
            assert_eq!(gpu.memory.reserved_bytes.get(), None, "GPU {label}");
        }
        for process in gpu.processes.list.value().into_iter().flatten() {
            assert_ne!(process.used_bytes.get(), Some(0), "{}: {}", machine.name, process.pid);
        }
    }
}

/// None of the planted secrets is in any of these texts.
pub fn no_secret(machine: &Machine, texts: &[String]) {
    for secret in &machine.about.secrets {
        for text in texts {
            let at = text.find(secret.as_str());
            assert!(at.is_none(), "a secret is shown: …{}", &text[at.unwrap_or(0)..][..60]);
        }
    }
}

/// No line is longer than the terminal, and none has control characters.
pub fn within_columns(what: &str, text: &str, columns: usize) {
    for line in text.lines() {
        assert!(!line.chars().any(char::is_control), "{what}: control characters in {line:?}");
        let width = ratatui::text::Span::raw(line).width();
        assert!(width <= columns, "{what}: {width} columns: {line}");
    }
}
