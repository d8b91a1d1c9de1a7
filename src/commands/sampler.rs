//! `infertop sampler`: hidden; see [`crate::sampler`].

use std::io::BufReader;
use std::process::ExitCode;

use crate::cli::{self, Roots};
use crate::daemon::lock::{Asked, Lock};

/// Samples until standard input or output is closed.
pub(crate) fn run(roots: &Roots, options: &cli::Sampler) -> anyhow::Result<ExitCode> {
    // The kernel gives it back when the last thread of this process is gone, and a thread in a driver
    // call that does not return is the last.
    let _lock = match options.lock.as_deref().map(Lock::of) {
        Some(Asked::Taken(lock)) => Some(lock),
        Some(Asked::Held(pid)) => {
            let who = pid.map_or("another process".into(), |pid| format!("process {pid}"));
            anyhow::bail!("an earlier sampler, {who}, has not ended yet")
        }
        // Without a lock it is as before there was one.
        Some(Asked::Impossible(_)) | None => None,
    };
    let commands = BufReader::new(std::io::stdin());
    crate::sampler::run(roots.machine(), roots.interval(), std::io::stdout(), commands)?;
    Ok(ExitCode::SUCCESS)
}
