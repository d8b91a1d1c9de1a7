//! Rows for processes that the driver lists and that our `/proc` does not have.
//!
//! One that was followed and has ended keeps what was known of it while the driver still lists it. One
//! that was never seen had ended before, or lives in another PID namespace: each of its readings says
//! so.

use std::collections::BTreeMap;

use crate::reading::{Absence, Reading};
use crate::snapshot::Stamp;

use super::namespace::View;
use super::tracked::Tracked;
use super::{GpuUse, Process};

/// The rows, by the driver's number.
#[derive(Debug, Default)]
pub(crate) struct NotHere {
    by_pid: BTreeMap<u32, Process>,
}

impl NotHere {
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Process> {
        self.by_pid.values()
    }

    /// Takes those that are absent in this tick, and forgets all others.
    pub(crate) fn keep(
        &mut self,
        absent: BTreeMap<u32, Vec<GpuUse>>,
        mut gone_now: BTreeMap<u32, Process>,
        view: &View,
        now_ms: u64,
    ) {
        let mut before = std::mem::take(&mut self.by_pid);
        for (pid, gpus) in absent {
            let process = before.remove(&pid).unwrap_or_else(|| {
                let ended = gone_now.remove(&pid);
                let ended =
                    ended.unwrap_or_else(|| Tracked::unknown(pid).into_gone(Absence::Gone, now_ms));
                // Only one that was never seen here can live elsewhere.
                if ended.start_ticks.value().is_some() {
                    return ended;
                }
                let why = match ended.exists.absence() {
                    Some(why) if why != &Absence::Gone => why.clone(),
                    _ => view.unseen(),
                };
                never_seen(ended, &why)
            });
            let read = Stamp { at_ms: now_ms, took_us: 0 };
            self.by_pid.insert(pid, Process { read, gpus, ..process });
        }
    }
}

/// The driver's lists are all there is.
pub(crate) fn without_procfs(
    uses: &BTreeMap<u32, Vec<GpuUse>>,
    why: &Absence,
    now_ms: u64,
) -> Vec<Process> {
    let row = |(&pid, gpus): (&u32, &Vec<GpuUse>)| Process {
        pid,
        read: Stamp { at_ms: now_ms, took_us: 0 },
        exists: Reading::Absent(why.clone()),
        gpus: gpus.clone(),
        ..Process::default()
    };
    uses.iter().map(row).collect()
}

/// One that was never here: whatever is not known of it, is not for this one reason.
fn never_seen(mut process: Process, why: &Absence) -> Process {
    macro_rules! all_for_that_reason {
        ($($field:ident)*) => {$(
            if process.$field.value().is_none() {
                process.$field = Reading::Absent(why.clone());
            }
        )*};
    }
    all_for_that_reason!(
        exists parent user uid comm command secret_exposed state wchan start_ticks started_at_ms
        cpu_seconds_total cpu_ratio rss_bytes pinned_bytes locked_bytes swap_bytes threads
        namespace_pids cgroup container container_name pod unit slurm_job engine listening_ports
        device_files device_maps libraries
    );
    process
}
