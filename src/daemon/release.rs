//! What a request to let the GPUs go is answered: whether our own sampler is gone, and who else has
//! a device file open, which a reset or an unload of the module would fail on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use probes::machine::Machine;
use probes::proc::{Holder, Holders, find_holders};
use probes::reading::Absence;
use tokio::sync::{Semaphore, oneshot};

use super::hub::{DeviceHolder, Hub, Released, Sampling};
use super::log;

/// The sampler is gone by then, or a driver call holds it.
const GONE_WITHIN: Duration = Duration::from_millis(900);
/// Looking at everybody takes milliseconds; a box with a hundred thousand processes takes longer.
const SEARCH: Duration = Duration::from_millis(1500);

/// Waits until the GPUs are let go, which has been asked for, and answers. Runs beside the loop.
pub(crate) async fn answer(
    hub: Arc<Hub>,
    machine: Machine,
    sampler: Option<u32>,
    searching: Arc<Semaphore>,
    back: oneshot::Sender<Released>,
) {
    let began = Instant::now();
    let mut sampling = hub.sampling.subscribe();
    let gone = sampling.wait_for(|sampling| matches!(sampling, Sampling::Released { .. }));
    let gone = tokio::time::timeout(GONE_WITHIN, gone).await.is_ok_and(|waited| waited.is_ok());
    let took = began.elapsed();
    let found = search(machine, searching).await;
    let released = released(gone, took, sampler, found);
    if !released.why.is_empty() {
        log::warning(&format!("cannot let go of the GPUs yet\n  found: {}", released.why));
    }
    // Whoever asked may have left.
    let _ = back.send(released);
}

/// A process whose files cannot be read in time holds up one thread, and not the answer.
async fn search(machine: Machine, searching: Arc<Semaphore>) -> Result<Holders, Absence> {
    let until = Instant::now() + SEARCH;
    let whole = async {
        // Never closed.
        let Ok(turn) = searching.acquire_owned().await else { return Err(Absence::NoAnswer) };
        let search = tokio::task::spawn_blocking(move || {
            let found = find_holders(&machine, until);
            drop(turn);
            found
        });
        search.await.map_err(|panic| Absence::Failed { what: panic.to_string() })?
    };
    tokio::time::timeout(SEARCH * 2, whole).await.unwrap_or(Err(Absence::NoAnswer))
}

fn released(
    gone: bool,
    took: Duration,
    sampler: Option<u32>,
    found: Result<Holders, Absence>,
) -> Released {
    let Holders { holders, denied, complete } = found.unwrap_or_default();
    let is_ours =
        |holder: &&Holder| sampler == Some(holder.pid) || holder.pid == std::process::id();
    let ours = holders.iter().find(is_ours);
    let why = match (gone, sampler, ours) {
        (true, ..) => String::new(),
        (false, Some(pid), Some(ours)) => format!(
            "our sampler, process {pid}, is in a driver call that does not return, and has {} open; \
             it lets go when the driver does: only a reset of the GPU from outside, or a boot, \
             helps then",
            paths(&ours.nodes).join(", ")
        ),
        (false, Some(pid), None) => format!("our sampler, process {pid}, has not ended yet"),
        (false, None, _) => "our sampler has not ended yet".into(),
    };
    Released {
        let_go: gone,
        took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        holders: holders
            .iter()
            .filter(|holder| !is_ours(holder))
            .map(|holder| DeviceHolder {
                pid: holder.pid,
                name: holder.name.clone(),
                devices: paths(&holder.nodes),
            })
            .collect(),
        denied_processes: denied,
        searched_all: complete,
        why,
    }
}

fn paths(nodes: &[String]) -> Vec<String> {
    nodes.iter().map(|node| format!("/dev/{node}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> Holders {
        let holder = |pid, name: &str| Holder {
            pid,
            name: name.into(),
            nodes: vec!["nvidia3".into(), "nvidiactl".into()],
        };
        let holders = vec![holder(100, "infertop"), holder(200, "vllm")];
        Holders { holders, denied: 2, complete: true }
    }

    #[test]
    fn others_that_hold_a_device_file_are_named_and_ours_are_not() {
        let released = released(true, Duration::from_millis(80), Some(100), Ok(found()));
        assert!(released.let_go && released.why.is_empty() && released.searched_all);
        let [vllm] = &released.holders[..] else { panic!("{released:?}") };
        assert_eq!((vllm.pid, vllm.name.as_str()), (200, "vllm"));
        assert_eq!(vllm.devices, ["/dev/nvidia3", "/dev/nvidiactl"]);
        assert_eq!(released.denied_processes, 2);
    }

    #[test]
    fn a_sampler_that_is_stuck_is_explained() {
        let released = released(false, GONE_WITHIN, Some(100), Ok(found()));
        assert!(!released.let_go);
        assert!(released.why.contains("process 100"), "{}", released.why);
        assert!(released.why.contains("/dev/nvidia3, /dev/nvidiactl"), "{}", released.why);
        assert_eq!(released.holders.len(), 1);
    }

    #[test]
    fn a_search_that_came_to_nothing_is_not_taken_for_nobody() {
        let released = released(true, Duration::ZERO, None, Err(Absence::NoAnswer));
        assert!(released.holders.is_empty() && !released.searched_all);
    }
}
