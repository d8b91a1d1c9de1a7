//! `infertop`: parses the command line, runs the command, prints its error.

#![forbid(unsafe_code)]

mod cli;
mod commands;
mod feed;
mod json;
mod kill;
mod own_cost;
mod report;
mod sampler;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        None => commands::top::run(&cli.roots, &cli.screen),
        Some(Command::Once(once)) => commands::once::run(&cli.roots, &once),
        Some(Command::Sampler) => commands::sampler::run(&cli.roots),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            report::complain(&error);
            ExitCode::FAILURE
        }
    }
}
