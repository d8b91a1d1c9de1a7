//! What a daemon's socket answers: all that its page lists, no secret, and who may ask for what.

use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use probes::snapshot::Snapshot;
use rustix::process::Signal;

use crate::gpu_box::GpuBox;
use crate::running_daemon::Daemon;
use crate::stream::Lines;
use crate::waiting::until;
use crate::workload::Workload;

const MESSAGEPACK: &str = "application/vnd.msgpack";

/// One GPU with the processes of the test.
const BOUND: &str = "
[[gpu]]
model = 'H200'
utilization = 64

[[process]]
gpu = 0
per_gpu = 1
pid_file = 'pids'
bytes = '9GiB'
";

/// What the page tells people to type: method and target.
fn examples() -> Vec<(String, String)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/api.md");
    let page = std::fs::read_to_string(page).unwrap();
    let lines = page.lines().filter(|line| line.starts_with("curl "));
    lines
        .map(|line| {
            let method = if line.contains("-X POST") { "POST" } else { "GET" };
            let (_, target) = line.split_once("http://infertop").unwrap();
            (method.to_string(), target.trim_end_matches('\'').to_string())
        })
        .collect()
}

#[test]
fn every_line_of_the_page_can_be_typed() {
    let gpu_box = GpuBox::of("eight-h100");
    let daemon = Daemon::start(&gpu_box, &["--interval", "250ms"]);
    daemon.until_number(12);
    let examples = examples();
    assert!(examples.len() >= 15, "{examples:?}");
    for (method, target) in examples {
        if target == "/v1/frames" {
            assert_eq!(Lines::open(&daemon.socket()).next().unwrap()["schema"], 1);
            continue;
        }
        let answer = daemon.ask(&method, &target, "*/*");
        let body = String::from_utf8_lossy(&answer.body);
        assert_eq!(answer.status, 200, "{method} {target}: {body}");
        assert!(!answer.body.is_empty(), "{method} {target}");
    }
}

#[test]
fn no_secret_goes_out_over_the_socket_or_into_the_store() {
    let secrets = ["sk-proj-Zb81kQmWx92LsVt47Yc0", "hunter2hunter2"];
    let arguments = ["serve", "SIGN/model", "--api-key", secrets[0], "--password", secrets[1]];
    let workload = Workload::with_arguments(&arguments);
    let gpu_box = GpuBox::written(BOUND);
    gpu_box.bind(&[workload.pid()]);
    let mut daemon = Daemon::start(&gpu_box, &["--interval", "250ms"]);
    let mut said = Vec::new();
    for line in Lines::open(&daemon.socket()) {
        let line = line.to_string();
        said.extend(line.as_bytes());
        if line.contains("SIGN/model") {
            break;
        }
    }
    until("a stored snapshot", || {
        let stored = daemon.ask("GET", "/v1/snapshot?at=now", MESSAGEPACK);
        let snapshot = Snapshot::decode(&stored.body).unwrap_or_default();
        said.extend(stored.body);
        snapshot.processes.iter().any(|process| process.command.text().contains("SIGN/model"))
    });
    for target in ["snapshot", "snapshot?at=now", "window", "marks", "findings", "health", "self"] {
        let answer = daemon.get(&format!("/v1/{target}"));
        said.extend(answer.head.into_bytes());
        said.extend(answer.body);
    }
    said.extend(daemon.ask("GET", "/v1/snapshot", MESSAGEPACK).body);
    assert!(daemon.end().success());
    said.extend(daemon.log().into_bytes());
    for entry in std::fs::read_dir(daemon.store().parent().unwrap()).unwrap() {
        said.extend(std::fs::read(entry.unwrap().path()).unwrap());
    }
    for secret in secrets {
        // Not in parts either.
        for needle in [&secret[..10], &secret[secret.len() - 10..]] {
            let found = said.windows(needle.len()).any(|part| part == needle.as_bytes());
            assert!(!found, "{needle} got out");
        }
    }
}

/// Runs `infertop` as a user without rights.
fn as_nobody(socket: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_infertop"))
        .args(arguments)
        .args(["--socket".as_ref(), socket.as_os_str()])
        .env_clear()
        .uid(65_534)
        .gid(65_534)
        .output()
        .unwrap()
}

#[test]
fn who_may_look_may_not_change_anything() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can ask as another user");
        return;
    }
    let gpu_box = GpuBox::of("eight-h100");
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open(folder.path(), 0o755);
    let daemon = Daemon::again(&gpu_box, folder, &[]);
    daemon.until_number(2);
    let refused = as_nobody(&daemon.socket(), &["daemon", "release"]);
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && words.contains("ermission denied"), "{words}");
    // As for a member of the group.
    open(&daemon.socket(), 0o666);
    for request in ["release", "resume"] {
        let refused = as_nobody(&daemon.socket(), &["daemon", request]);
        let words = String::from_utf8_lossy(&refused.stderr);
        assert!(words.contains("user 65534 may look, and may not"), "{words}");
        assert!(words.contains("help: ask as root"), "{words}");
        assert!(!refused.status.success());
    }
    assert_eq!(daemon.json("/v1/health")["sampling"]["state"], "running");
    assert_eq!(daemon.ask("POST", "/v1/release?for=10m", "*/*").status, 200);
    let released = &daemon.json("/v1/health");
    assert_eq!(
        (&released["status"], &released["sampling"]["state"]),
        (&"released".into(), &"released".into())
    );
    assert_eq!(daemon.ask("POST", "/v1/resume", "*/*").json()["resumed"], true);
}

#[test]
fn the_socket_is_for_owner_and_group() {
    let gpu_box = GpuBox::of("eight-h100");
    let mode = |daemon: &Daemon| {
        let found = std::fs::symlink_metadata(daemon.socket()).unwrap();
        assert!(found.file_type().is_socket());
        found.permissions().mode() & 0o777
    };
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let file = folder.path().join("config.toml");
    let own = rustix::process::getegid().as_raw();
    std::fs::write(&file, format!("group = '{own}'\n")).unwrap();
    let daemon = Daemon::again(&gpu_box, Arc::clone(&folder), &[]);
    assert_eq!(mode(&daemon), 0o660);
    drop(daemon);
    std::fs::write(&file, "group = 'no-such-group-here'\n").unwrap();
    let daemon = Daemon::again(&gpu_box, folder, &[]);
    assert_eq!(mode(&daemon), 0o600);
    until("word in the log", || daemon.log().contains("there is no group no-such-group-here"));
}

#[test]
fn a_stream_ends_with_its_daemon_and_another_begins_with_the_next() {
    let gpu_box = GpuBox::of("eight-h100");
    let mut daemon = Daemon::start(&gpu_box, &["--interval", "250ms"]);
    let mut lines = Lines::open(&daemon.socket());
    assert!(lines.next().is_some());
    assert!(daemon.end().success());
    lines.for_each(drop);
    assert!(!daemon.socket().exists(), "the socket was left behind");

    let mut daemon = Daemon::again(&gpu_box, daemon.folder(), &["--interval", "250ms"]);
    let lines = Lines::open(&daemon.socket());
    daemon.signal(Signal::KILL);
    daemon.wait();
    lines.for_each(drop);
    assert!(daemon.socket().exists());
    // The file that a killed one left is no hindrance.
    let daemon = Daemon::again(&gpu_box, daemon.folder(), &["--interval", "250ms"]);
    let numbers: Vec<_> =
        Lines::open(&daemon.socket()).filter_map(|line| line["number"].as_u64()).take(4).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
}

#[test]
fn health_is_told_from_memory_while_gpus_and_disk_are_stuck() {
    let gpu_box = GpuBox::of("hang-from-start");
    let folder = Arc::new(tempfile::tempdir().unwrap());
    // No folder can be made there.
    std::fs::write(folder.path().join("state"), "a file").unwrap();
    let daemon = Daemon::launch(&gpu_box, folder, &["--interval", "250ms"]);
    until("an answer", || daemon.socket().exists());
    until("word that nothing is stored", || {
        let health = daemon.json("/v1/health");
        health["status"] == "degraded"
            && health["reasons"].to_string().contains("nothing is stored")
            && health["store"]["state"]["state"] == "unavailable"
    });
    let refused = daemon.get("/v1/span");
    assert_eq!(refused.status, 503);
    assert!(!refused.json()["help"].as_str().unwrap().is_empty());
}
