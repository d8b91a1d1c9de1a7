//! `infertop sampler`: hidden; see [`crate::sampler`].

use std::io::BufReader;
use std::process::ExitCode;

use crate::cli::Roots;

/// Samples until standard input or output is closed.
pub(crate) fn run(roots: &Roots) -> anyhow::Result<ExitCode> {
    let commands = BufReader::new(std::io::stdin());
    crate::sampler::run(roots.machine(), roots.interval(), std::io::stdout(), commands)?;
    Ok(ExitCode::SUCCESS)
}
