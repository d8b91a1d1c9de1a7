//! `infertop` alone: the dashboard on this box.

use std::process::ExitCode;

use crate::cli::{Roots, Screen};
use crate::dashboard::{self, Subject};
use crate::paths;

/// Shows the dashboard: on a daemon where one answers, else on an own sampler.
pub(crate) fn run(roots: &Roots, screen: &Screen) -> anyhow::Result<ExitCode> {
    // A daemon tells of the machine that it was started on, not of the one that the flags make.
    let sockets = match &screen.socket {
        Some(socket) => vec![socket.clone()],
        None if screen.no_daemon || !roots.are_usual() => Vec::new(),
        None => paths::sockets(),
    };
    let is_asked_for = screen.socket.is_some() || screen.at.is_some();
    dashboard::run(Subject::Live { sockets, is_asked_for }, roots, screen, screen.at.as_deref())
}
