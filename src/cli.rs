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
