//! `infertop once`: one snapshot as a table or as JSON.
//!
//! Rates need two samples, so the third snapshot of a fresh sampler is taken (a quarter of a second
//! after its start), or the best one so far when a GPU does not answer.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use probes::driver::Session;
use probes::snapshot::{Health, Snapshot};

use crate::cli::{Once, Roots};
use crate::feed::child::ChildFeed;
use crate::{json, report};

/// The snapshot with the first rates.
const FIRST_RATES: u64 = 3;
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
    let mut feed = ChildFeed::start(roots, roots.interval)?;
    let earliest = Instant::now() + after;
    let deadline = earliest + PATIENCE;
    let mut best = feed.next().await?;
    while !(is_complete(&best) && Instant::now() >= earliest) && Instant::now() < deadline {
        match tokio::time::timeout(deadline - Instant::now(), feed.next()).await {
            Ok(snapshot) => best = snapshot?,
            Err(_) => break,
        }
    }
    feed.finish().await;
    Ok(best)
}

fn is_complete(snapshot: &Snapshot) -> bool {
    let settled = match &snapshot.driver.session {
        Session::Starting | Session::NoAnswer { .. } => false,
        Session::Failed { .. } => return snapshot.sequence >= 2,
        Session::Open => snapshot.gpus.iter().all(|gpu| match &gpu.health {
            Health::Starting => false,
            // Being initialised; a call that hangs for good is given up by the deadline.
            Health::NoAnswer { call, .. } => !call.starts_with("nvmlDeviceGetHandle"),
            _ => true,
        }),
    };
    settled && snapshot.sequence >= FIRST_RATES
}
