//! `infertop replay`: the dashboard on recorded time.

use std::process::ExitCode;

use crate::cli::{Replay, Roots};
use crate::dashboard::{self, Subject};
use crate::paths;

/// Shows a recording, or what the daemon of this box remembers.
pub(crate) fn run(roots: &Roots, replay: &Replay) -> anyhow::Result<ExitCode> {
    let file = replay.file.clone().map_or_else(paths::store_file, Ok)?;
    dashboard::run(Subject::File(file), roots, &replay.screen, replay.screen.at.as_deref())
}
