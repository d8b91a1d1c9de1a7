//! The command line.

use std::ffi::OsString;
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
    /// Watch for months: keep history, serve a socket and metrics.
    Daemon(Daemon),
    /// Print the commented default configuration, or check one.
    Config(Config),
    /// Read the machine and write snapshots to standard output; started by the other commands.
    #[command(hide = true)]
    Sampler(Sampler),
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
    #[arg(long = "for", value_name = "TIME", value_parser = parse_stretch)]
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

/// What a sampler is told by who starts it.
#[derive(Args)]
pub(crate) struct Sampler {
    /// File to hold a lock of for as long as this process is there.
    #[arg(long, value_name = "PATH")]
    pub(crate) lock: Option<PathBuf>,
}

/// How the daemon runs, or what is asked of one that runs.
#[derive(Args)]
pub(crate) struct Daemon {
    #[command(subcommand)]
    pub(crate) request: Option<DaemonRequest>,
    /// Read this configuration alone, instead of the system's and the user's.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Socket to serve on, or to ask.
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Folder to keep history in.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) state: Option<PathBuf>,
    /// Serve /metrics and /healthz over TCP; without an address on 127.0.0.1:9836.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = DEFAULT_LISTEN)]
    pub(crate) listen: Option<String>,
    /// Start this program as the sampler, and wait for the store instead of leaving snapshots out;
    /// for benchmarks, which feed a day in minutes.
    #[arg(long, value_name = "PATH", hide = true)]
    pub(crate) sampler_program: Option<PathBuf>,
}

/// Where metrics are served unless told: beside the ports that Prometheus's exporters have taken.
pub(crate) const DEFAULT_LISTEN: &str = "127.0.0.1:9836";

#[derive(Subcommand)]
pub(crate) enum DaemonRequest {
    /// Let go of every device file of the GPUs, so that a reset or an unload of the module works.
    ///
    /// Says who else has one open. A daemon that is started anew takes the GPUs again.
    Release {
        /// Take them again by itself after so long: 90s, 10m, 2h.
        #[arg(long = "for", value_name = "TIME", value_parser = parse_stretch)]
        stretch: Option<Duration>,
        /// Print the answer as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Take the GPUs again.
    Resume,
}

/// The configuration, printed or checked.
#[derive(Args)]
pub(crate) struct Config {
    /// Check the configuration that a daemon would use, or this file alone.
    #[arg(long)]
    pub(crate) check: bool,
    /// The file to check.
    #[arg(value_name = "FILE", requires = "check")]
    pub(crate) file: Option<PathBuf>,
}

/// Where the machine's files are.
#[derive(Args, Clone, Default)]
pub(crate) struct Roots {
    /// Where procfs is mounted.
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) procfs: Option<PathBuf>,
    /// Where sysfs is mounted.
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) sysfs: Option<PathBuf>,
    /// Root of the host's file system, when it is mounted elsewhere.
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) rootfs: Option<PathBuf>,
    /// The driver's library, instead of searching for libnvidia-ml.so.1 [env: `INFERTOP_NVML_LIB`].
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) nvml_lib: Option<PathBuf>,
    /// Time between two snapshots: 1s, 500ms; at least 250ms.
    #[arg(long, short = 'd', global = true, value_name = "TIME", value_parser = parse_interval)]
    pub(crate) interval: Option<Duration>,
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
        let usual = Machine::default();
        Machine {
            procfs: self.procfs.clone().unwrap_or(usual.procfs),
            sysfs: self.sysfs.clone().unwrap_or(usual.sysfs),
            rootfs: self.rootfs.clone().unwrap_or(usual.rootfs),
            nvml_library: self.nvml_lib.clone().or_else(from_environment),
            frozen_ms: None,
        }
    }

    /// Whether they make the machine that a daemon on this box reads.
    pub(crate) fn are_usual(&self) -> bool {
        self.paths().iter().all(|(_, path)| path.is_none())
    }

    /// Time between two snapshots.
    pub(crate) fn interval(&self) -> Duration {
        self.interval.unwrap_or(Duration::from_secs(1))
    }

    /// Each flag with its path, if it was given.
    pub(crate) fn paths(&self) -> [(&'static str, Option<&PathBuf>); 4] {
        [
            ("--procfs", self.procfs.as_ref()),
            ("--sysfs", self.sysfs.as_ref()),
            ("--rootfs", self.rootfs.as_ref()),
            ("--nvml-lib", self.nvml_lib.as_ref()),
        ]
    }

    /// The same as arguments, for a child.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        for (flag, path) in self.paths() {
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
    let (number, scale) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 0.001),
        (None, Some(number)) => (number, 1.0),
        (None, None) => (text, 1.0),
    };
    let seconds = number.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let interval = seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds * scale).ok())
        .ok_or_else(|| format!("{text} is no time; write 1s or 500ms"))?;
    if !(SHORTEST..=LONGEST).contains(&interval) {
        return Err(format!("{text} is not between 250ms and 60s"));
    }
    Ok(interval)
}

/// `90s`, `10m`, `2h`, `1d`.
fn parse_stretch(text: &str) -> Result<Duration, String> {
    let units = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400)];
    let unit = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(*unit)?, *seconds)));
    unit.and_then(|(number, seconds)| number.parse::<u64>().ok()?.checked_mul(seconds))
        .filter(|seconds| (1..=MOST_STRETCH_SECONDS).contains(seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| format!("{text} is no stretch of time; write 90s, 10m or 2h, at most 7d"))
}

/// Longer than that is not letting go for a while, but not running a daemon.
const MOST_STRETCH_SECONDS: u64 = 7 * 86_400;

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
    #[test]
    fn stretches_are_read_as_people_write_them() {
        assert_eq!(parse_stretch("10m"), Ok(Duration::from_mins(10)));
        assert_eq!(parse_stretch("90s"), Ok(Duration::from_secs(90)));
        for wrong in ["", "m", "10", "0s", "-1m", "1.5h", "9999999999999999999d", "8d"] {
            assert!(parse_stretch(wrong).is_err(), "{wrong}");
        }
    }
}
