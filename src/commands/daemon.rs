//! `infertop daemon`: starts one in this process; see [`crate::daemon`].

mod asking;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;

use crate::cli::{self, Roots};
use crate::config::{Config, Layers};
use crate::daemon::hub::Paths;
use crate::daemon::lock::{self, Asked, Lock};
use crate::daemon::{self, Begin, log};
use crate::feed::child::{self, Program};
use crate::paths::Whereabouts;

/// Looking into the past, searching `/proc` and reading the configuration block; so many at a time.
const BLOCKING_THREADS: usize = 8;
const STACK_BYTES: usize = 1 << 20;

/// Runs a daemon, or asks one that runs.
pub(crate) fn run(roots: &Roots, options: &cli::Daemon) -> anyhow::Result<ExitCode> {
    if let Some(request) = &options.request {
        return asking::run(request, options.socket.as_ref());
    }
    // What is remembered names users and command lines: it is for the daemon's group, not for all.
    rustix::process::umask(rustix::fs::Mode::RWXO | rustix::fs::Mode::WGRP);
    let layers = Layers::of_daemon(roots, options)?;
    let config = layers.load()?;
    log::set_level(config.log_level);
    let paths = paths(&config)?;
    let _lock = take_lock(&paths.state)?;
    let sampler = match &options.sampler_program {
        Some(program) => Program { path: program.clone(), lock: None },
        None => Program { path: child::own_program()?, lock: Some(lock::of_sampler(&paths.state)) },
    };
    let waits_for_store = options.sampler_program.is_some();
    let begin = Begin { config, layers, paths, sampler, waits_for_store };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_stack_size(STACK_BYTES)
        .build()
        .context("cannot start the daemon's loop")?;
    let ended = runtime.block_on(daemon::run(begin));
    // Whatever still reads a disk or a stuck process must not hold the end up.
    runtime.shutdown_background();
    ended.map(|()| ExitCode::SUCCESS)
}

fn paths(config: &Config) -> anyhow::Result<Paths> {
    let whereabouts = Whereabouts::default();
    let told = |path: &Option<_>, usual: &dyn Fn() -> _| path.clone().map_or_else(usual, Ok);
    Ok(Paths {
        socket: told(&config.socket, &|| whereabouts.socket())?,
        state: told(&config.store.folder, &|| whereabouts.state())?,
    })
}

fn take_lock(folder: &Path) -> anyhow::Result<Option<Lock>> {
    match lock::take(folder) {
        Asked::Taken(lock) => Ok(Some(lock)),
        Asked::Held(pid) => {
            let who = pid.map_or("another daemon".into(), |pid| format!("process {pid}"));
            let place = folder.display();
            anyhow::bail!(
                "a daemon runs on this state folder already\n  found: {who} holds the lock of {place}\n  \
                 help: end it, or name another folder with --state and another socket with --socket"
            )
        }
        // That the socket is free must do.
        Asked::Impossible(error) => {
            log::warning(&format!(
                "cannot lock the state folder: {error}\n  found: {}\n  \
                 help: make it writable for this user, or name another one with --state",
                folder.display()
            ));
            Ok(None)
        }
    }
}
