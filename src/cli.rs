//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use probes::machine::Machine;

/// Who holds the GPU memory, what is wrong, what to do.
///
/// Without a command the dashboard starts: every GPU of this box, who holds its memory, how the bus
/// is doing. Needs no root, no configuration, no daemon.
#[derive(Parser)]
#[command(name = "infertop", version, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) roots: Roots,

    #[command(flatten)]
    pub(crate) screen: Screen,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Take one snapshot, print it as a table or as JSON, and exit.
    Once(Once),
    /// Show a recording, or what the daemon of this box remembers, in the same panels.
    Replay(Replay),
    /// Write snapshots to a file for replay, without a daemon, until it is stopped.
    Record(Record),
    /// Write a stretch of what the daemon remembers to a file that can be handed on.
    Export(Export),
    /// Read the machine and write snapshots to standard output; started by the other commands.
    #[command(hide = true)]
    Sampler,
}

/// How one snapshot is printed.
#[derive(Args)]
pub(crate) struct Once {
    /// Print JSON: schema 1, `null` for what is missing, the reasons in a map `absent` beside it.
    #[arg(long)]
    pub(crate) json: bool,
    /// Watch for so long first: rates and the costs of calls are then of this time.
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    pub(crate) after: Option<Duration>,
}

/// What is shown of the past.
#[derive(Args)]
pub(crate) struct Replay {
    /// The recording; without it, what the daemon of this box remembers.
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) screen: Screen,
}

/// What is recorded.
#[derive(Args)]
pub(crate) struct Record {
    /// The file to write; it must not exist.
    pub(crate) file: PathBuf,
    /// Stop after so long: 90s, 10m, 2h. Without it, until Ctrl-C.
    #[arg(long = "for", value_name = "TIME", value_parser = crate::duration::parse)]
    pub(crate) length: Option<Duration>,
}

/// Which stretch is handed on.
#[derive(Args)]
pub(crate) struct Export {
    /// The file to write; it must not exist.
    pub(crate) file: PathBuf,
    /// Begin: 03:12, -2h, "2026-11-30 14:00".
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) from: String,
    /// End; without it, now.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) to: Option<String>,
    /// Another file than the store of this box's daemon.
    #[arg(long, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,
    /// Leave names of host, users, containers and commands in; secrets never are.
    #[arg(long)]
    pub(crate) keep_names: bool,
}

/// Where the machine's files are.
#[derive(Args, Clone)]
pub(crate) struct Roots {
    /// Where procfs is mounted.
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        default_value = "/proc",
        hide_default_value = true
    )]
    pub(crate) procfs: PathBuf,
    /// Where sysfs is mounted.
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        default_value = "/sys",
        hide_default_value = true
    )]
    pub(crate) sysfs: PathBuf,
    /// Root of the host's file system, when it is mounted elsewhere.
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        default_value = "/",
        hide_default_value = true
    )]
    pub(crate) rootfs: PathBuf,
    /// The driver's library, instead of searching for libnvidia-ml.so.1 [env: `INFERTOP_NVML_LIB`].
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) nvml_lib: Option<PathBuf>,
    /// Time between two snapshots: 1s, 500ms; at least 250ms.
    #[arg(long, short = 'd', global = true, value_name = "TIME", value_parser = parse_interval, default_value = "1s", hide_default_value = true)]
    pub(crate) interval: Duration,
}

/// How the dashboard is drawn.
#[derive(Args, Clone)]
pub(crate) struct Screen {
    /// Draw with ASCII characters alone.
    #[arg(long)]
    pub(crate) ascii: bool,
    /// Colours; `NO_COLOR` is respected.
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true
    )]
    pub(crate) color: Color,
    /// Leave the mouse to the terminal.
    #[arg(long)]
    pub(crate) no_mouse: bool,
    /// Panel to begin with.
    #[arg(long, short = 'p', value_name = "NAME")]
    pub(crate) panel: Option<String>,
    /// Moment to begin with, where a daemon or a recording remembers it: 03:12, -2h,
    /// "2026-11-30 14:00".
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) at: Option<String>,
    /// Read this box even where a daemon answers.
    #[arg(long)]
    pub(crate) no_daemon: bool,
    /// The daemon's socket [env: `INFERTOP_SOCKET`].
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

impl Roots {
    /// The machine that these roots make.
    pub(crate) fn machine(&self) -> Machine {
        let from_environment = || std::env::var_os("INFERTOP_NVML_LIB").map(PathBuf::from);
        Machine {
            procfs: self.procfs.clone(),
            sysfs: self.sysfs.clone(),
            rootfs: self.rootfs.clone(),
            nvml_library: self.nvml_lib.clone().or_else(from_environment),
            ..Machine::default()
        }
    }

    /// Whether they make the machine that a daemon on this box reads.
    pub(crate) fn are_usual(&self) -> bool {
        let usual = Machine::default();
        self.procfs == usual.procfs
            && self.sysfs == usual.sysfs
            && self.rootfs == usual.rootfs
            && self.nvml_lib.is_none()
    }

    /// The same as arguments, for a child.
    pub(crate) fn arguments(&self) -> Vec<std::ffi::OsString> {
        let mut arguments: Vec<std::ffi::OsString> = Vec::new();
        for (flag, path) in [
            ("--procfs", Some(&self.procfs)),
            ("--sysfs", Some(&self.sysfs)),
            ("--rootfs", Some(&self.rootfs)),
            ("--nvml-lib", self.nvml_lib.as_ref()),
        ] {
            if let Some(path) = path {
                arguments.push(flag.into());
                arguments.push(path.into());
            }
        }
        arguments
    }
}

/// The shortest interval: NVML's own sample periods are 1/6 s to 1 s, and every call costs the
/// workload something.
const SHORTEST: Duration = Duration::from_millis(250);
/// Beyond this a picture is not live.
const LONGEST: Duration = Duration::from_mins(1);

/// `500ms`, `1s`, `2.5s`, `2`.
fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = crate::duration::parse(text)?;
    if !(SHORTEST..=LONGEST).contains(&interval) {
        return Err(format!("{text} is not between 250ms and 60s"));
    }
    Ok(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(parse_interval("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_interval("2.5s"), Ok(Duration::from_millis(2500)));
        assert_eq!(parse_interval("2"), Ok(Duration::from_secs(2)));
        for wrong in ["", "fast", "10ms", "2h", "-1s", "inf", "nan", "1e300s"] {
            assert!(parse_interval(wrong).is_err(), "{wrong}");
        }
    }
}
