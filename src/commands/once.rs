//! `infertop once`: one snapshot as a table or as JSON.
//!
//! Taken when every GPU that answers has told everything once, rates and topology included, which is
//! after half a second; or the best so far when one does not answer.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use probes::driver::Session;
use probes::reading::{Absence, Reading};
use probes::snapshot::{Gpu, Health, Snapshot};

use crate::cli::{Once, Roots};
use crate::feed::child::ChildFeed;
use crate::{json, report};

/// The sampler is another process just because a driver's library may end it.
const NO_SNAPSHOT: &str = "cannot take a snapshot: the process that reads the driver has ended\n  \
    help: read the kernel log for NVRM lines; with --nvml-lib /dev/null everything but the driver is read";
/// Snapshots follow each other so fast: nobody waits for the pace of a dashboard.
const PACE: Duration = Duration::from_millis(250);
/// A GPU without persistence takes seconds to answer; one that takes longer is shown as silent.
const PATIENCE: Duration = Duration::from_secs(6);

/// Prints one snapshot. Exit code 3: the driver does not answer, and the output says why.
pub(crate) fn run(roots: &Roots, once: &Once) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let snapshot = runtime.block_on(take(roots, once.after.unwrap_or_default()))?;
    let text = if once.json { json::document(&snapshot)? } else { report::table(&snapshot) };
    report::print(&text)?;
    let blocked = snapshot.driver.problem.is_some_and(|problem| problem.blocking);
    Ok(if blocked { ExitCode::from(3) } else { ExitCode::SUCCESS })
}

async fn take(roots: &Roots, after: Duration) -> anyhow::Result<Snapshot> {
    let mut feed = ChildFeed::start(roots, PACE)?;
    let earliest = Instant::now() + after;
    let deadline = earliest + PATIENCE;
    let mut best = feed.next().await.context(NO_SNAPSHOT)?.snapshot;
    while !(is_complete(&best) && Instant::now() >= earliest) && Instant::now() < deadline {
        match tokio::time::timeout(deadline - Instant::now(), feed.next()).await {
            Ok(frame) => best = frame.context(NO_SNAPSHOT)?.snapshot,
            Err(_) => break,
        }
    }
    feed.finish().await;
    Ok(best)
}

fn is_complete(snapshot: &Snapshot) -> bool {
    // Mappings are the last that is read of a process, on a thread of its own.
    let unread = |maps: &Reading<_>| maps.absence() == Some(&Absence::NotRead);
    let is_known = !snapshot.processes.iter().any(|process| unread(&process.device_maps));
    match &snapshot.driver.session {
        Session::Starting | Session::NoAnswer { .. } => false,
        Session::Failed { .. } => snapshot.sequence >= 2 && is_known,
        Session::Open => {
            let unread = |text: &Reading<String>| text.absence() == Some(&Absence::NotRead);
            let driver = &snapshot.driver;
            is_known
                && !unread(&driver.cuda_version)
                && !unread(&driver.branch)
                && snapshot.gpus.iter().all(|gpu| match &gpu.health {
                    Health::Starting => false,
                    Health::Answering => is_told(gpu),
                    // Being initialised; a call that hangs for good is given up by the deadline.
                    Health::NoAnswer { call, .. } => !call.starts_with("nvmlDeviceGetHandle"),
                    Health::Lost { .. } | Health::Failing { .. } => true,
                })
        }
    }
}

/// Whether a GPU has told everything once.
fn is_told(gpu: &Gpu) -> bool {
    let averages = gpu.gpm.read.at_ms > 0 || gpu.gpm.supported.get() != Some(true);
    let known = gpu.gpm.supported.absence() != Some(&Absence::NotRead);
    let instance = gpu.mig.is_some();
    let topology = instance || gpu.topology.read.at_ms > 0;
    let identity = instance || gpu.identity.read.at_ms > 0;
    let traffic = instance || gpu.pcie.tx_bytes_per_second.absence() != Some(&Absence::NotRead);
    averages && known && topology && identity && traffic
}
