//! `infertop daemon release` and `resume`: asks a daemon that runs, and says what came of it.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;

use crate::cli::DaemonRequest;
use crate::client::Client;
use crate::daemon::hub::Released;
use crate::{paths, report};

/// A daemon that is there answers in a thousandth of that.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks; exit code 1 when the GPUs could not be let go.
pub(super) fn run(request: &DaemonRequest, socket: Option<&PathBuf>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(ask(request, socket))
}

async fn ask(request: &DaemonRequest, socket: Option<&PathBuf>) -> anyhow::Result<ExitCode> {
    let client = find(socket).await?;
    match request {
        DaemonRequest::Release { stretch, json } => {
            let target = match stretch {
                Some(stretch) => format!("/v1/release?for={}s", stretch.as_secs()),
                None => "/v1/release".into(),
            };
            let released: Released = client.post(&target).await?;
            let text = if *json {
                serde_json::to_string_pretty(&released)? + "\n"
            } else {
                words(&released, *stretch)
            };
            report::print(&text)?;
            Ok(if released.let_go { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        DaemonRequest::Resume => {
            let answer: Value = client.post("/v1/resume").await?;
            let words = match answer["resumed"].as_bool() {
                Some(true) => "the GPUs are taken again\n",
                _ => "the GPUs had not been let go\n",
            };
            report::print(words)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The first daemon that answers.
async fn find(socket: Option<&PathBuf>) -> anyhow::Result<Client> {
    let sockets = socket.map_or_else(paths::sockets, |told| vec![told.clone()]);
    let mut reasons = Vec::new();
    for socket in sockets {
        let client = Client::new(&socket);
        let why = match tokio::time::timeout(PATIENCE, client.health()).await {
            Ok(Ok(_)) => return Ok(client),
            Ok(Err(error)) => format!("{:#}", error.root_cause()),
            Err(_) => "no answer".into(),
        };
        reasons.push(format!("{}: {why}", socket.display()));
    }
    Err(anyhow::anyhow!(
        "no daemon can be asked\n  found: {}\n  help: start one with infertop daemon, name its socket \
         with --socket, or ask as root or as a member of its group",
        reasons.join("\n  found: ")
    ))
}

fn words(released: &Released, stretch: Option<Duration>) -> String {
    let mut text = String::new();
    let seconds = released.took_ms as f64 / 1000.0;
    let _ = match (released.let_go, stretch) {
        (true, None) => writeln!(
            text,
            "the daemon has let go of the GPUs, after {seconds:.2} s; infertop daemon resume takes them again"
        ),
        (true, Some(stretch)) => writeln!(
            text,
            "the daemon has let go of the GPUs, after {seconds:.2} s, for {} s; infertop daemon resume takes them \
             again before that",
            stretch.as_secs()
        ),
        (false, _) => writeln!(text, "our GPUs are not let go yet\n  found: {}", released.why),
    };
    if released.holders.is_empty() && released.searched_all {
        text.push_str(
            "no other process that we can look at has a device file of the driver open\n",
        );
    }
    if !released.holders.is_empty() {
        text.push_str("a device file of the driver is open in\n");
    }
    for holder in &released.holders {
        let _ = writeln!(text, "{:>9} {} {}", holder.pid, holder.name, holder.devices.join(" "));
    }
    if released.denied_processes > 0 {
        let _ = writeln!(
            text,
            "{} processes could not be looked at; run the daemon as root, or with CAP_SYS_PTRACE",
            released.denied_processes
        );
    }
    if !released.searched_all {
        text.push_str("there was not enough time to look at every process\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::hub::DeviceHolder;

    #[test]
    fn the_answer_says_who_else_is_in_the_way_and_who_could_not_be_looked_at() {
        let holder =
            DeviceHolder { pid: 4711, name: "vllm".into(), devices: vec!["/dev/nvidia0".into()] };
        let released = Released {
            let_go: true,
            took_ms: 140,
            holders: vec![holder],
            denied_processes: 3,
            searched_all: true,
            why: String::new(),
        };
        assert_eq!(
            words(&released, None),
            "the daemon has let go of the GPUs, after 0.14 s; infertop daemon resume takes them again\n\
             a device file of the driver is open in\n     4711 vllm /dev/nvidia0\n\
             3 processes could not be looked at; run the daemon as root, or with CAP_SYS_PTRACE\n"
        );
    }

    #[test]
    fn a_sampler_that_is_stuck_is_the_answer() {
        let released = Released { why: "a driver call".into(), ..Released::default() };
        let words = words(&released, Some(Duration::from_mins(10)));
        assert!(
            words.starts_with("our GPUs are not let go yet\n  found: a driver call\n"),
            "{words}"
        );
        assert!(words.contains("not enough time"), "{words}");
    }
}
