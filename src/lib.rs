//! The program `infertop`. It is a library only so that fuzz targets reach its parsers; the one door
//! for everything else is [`main`], which parses the command line, runs the command and prints its
//! error.

#![forbid(unsafe_code)]

mod api;
mod cli;
mod client;
mod commands;
mod config;
mod daemon;
mod dashboard;
mod exporter;
mod feed;
#[cfg(any(fuzzing, test))]
#[doc(hidden)]
pub mod fuzzing;
mod json;
mod kill;
mod moment;
mod own_cost;
mod past;
mod paths;
mod report;
mod sampler;
mod store;
mod terminal;
mod when;

use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};

/// Does what the command line says.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        None => commands::top::run(&cli.roots, &cli.screen),
        Some(Command::Replay(replay)) => commands::replay::run(&cli.roots, &replay),
        Some(Command::Record(record)) => commands::record::run(&cli.roots, &record),
        Some(Command::Export(export)) => commands::export::run(&export),
        Some(Command::Once(once)) => commands::once::run(&cli.roots, &once),
        Some(Command::Daemon(daemon)) => commands::daemon::run(&cli.roots, &daemon),
        Some(Command::Config(config)) => commands::config::run(&config),
        Some(Command::Sampler(sampler)) => commands::sampler::run(&cli.roots, &sampler),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            report::complain(&error);
            ExitCode::FAILURE
        }
    }
}
