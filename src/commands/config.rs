//! `infertop config`: the commented default, or a check of what there is.

use std::fmt::Write as _;
use std::process::ExitCode;

use crate::cli;
use crate::config::{Layers, commented_default};
use crate::report;

/// Prints the default, or checks a configuration: exit code 1 when something is wrong with it.
pub(crate) fn run(options: &cli::Config) -> anyhow::Result<ExitCode> {
    if !options.check {
        report::print(&commented_default())?;
        return Ok(ExitCode::SUCCESS);
    }
    let layers = match &options.file {
        Some(file) => Layers::of_file(file)?,
        None => Layers { variables: std::env::vars_os().collect(), ..Layers::of_system() },
    };
    layers.load()?;
    let read: Vec<_> = layers.files.iter().filter(|file| file.exists()).collect();
    let mut text = String::new();
    for file in &read {
        let _ = writeln!(text, "{}: nothing is wrong", file.display());
    }
    if read.is_empty() {
        text.push_str("no file, and nothing is wrong with the environment: the defaults hold\n");
    }
    report::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
