//! A disk that is full or cannot be written costs the past its present, and nobody anything else.
//!
//! The disk is a small one in memory, in a mount namespace of the daemon's own. Where the kernel
//! gives none, the tests say so and are passed over; the same errors are met one layer deeper in the
//! store's own tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::daemon_home::Home;
use crate::gpu_box::GpuBox;
use crate::running_daemon::Daemon;
use crate::waiting::{patience, pause};

/// A shell in a namespace in which the state folder is a disk of so many KiB.
fn on_a_small_disk(home: &Home, gpu_box: &GpuBox, kib: u32) -> Option<Command> {
    let state = home.path("state");
    std::fs::create_dir_all(&state).unwrap();
    let enter = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", script]);
        command
    };
    let mount = format!("mount -t tmpfs -o size={kib}k tmpfs '{}'", state.display());
    let works = enter(&mount).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !works.is_ok_and(|status| status.success()) {
        return None;
    }
    let daemon = home.command(gpu_box, &["--interval", "250ms"]);
    let mut command = enter(&format!("{mount} && exec \"$0\" \"$@\""));
    command.arg(daemon.get_program()).args(daemon.get_args()).env_clear();
    command.envs(daemon.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Some(command)
}

/// A path as the daemon's namespace has it.
fn inside(daemon: &Daemon, path: &Path) -> PathBuf {
    let root = PathBuf::from("/proc").join(daemon.pid().to_string()).join("root");
    root.join(path.strip_prefix("/").unwrap())
}

fn state(health: &Value) -> &str {
    health["store"]["state"]["state"].as_str().unwrap_or_default()
}

fn kept(health: &Value) -> u64 {
    health["store"]["frames_kept"].as_u64().unwrap_or(0)
}

#[test]
fn a_full_disk_is_told_and_what_came_after_it_is_stored() {
    let (gpu_box, home) = (GpuBox::of("bench-cheap-8"), Home::new());
    let Some(mut command) = on_a_small_disk(&home, &gpu_box, 4096) else {
        eprintln!("skipped: no mount namespace can be made here");
        return;
    };
    let daemon = home.start_as(&gpu_box, &mut command);
    daemon.wait_for("/v1/health", "a snapshot stored", |health| kept(health) > 2);
    let filler = inside(&daemon, &home.path("state/filler"));
    // Fails when the disk is full, which is what is wanted.
    let _ = std::fs::write(&filler, vec![0; 8 << 20]);
    let full =
        daemon.wait_for("/v1/health", "a full disk", |health| state(health) == "unavailable");
    let words = full["store"]["state"].to_string();
    assert!(words.contains("full") && words.contains("free some space on the disk of"), "{words}");
    assert_eq!(full["status"], "degraded");
    // Everything else goes on.
    let before = daemon.json("/v1/snapshot")["sequence"].as_u64().unwrap();
    daemon.wait_for("/v1/snapshot", "newer snapshots", |now| {
        now["sequence"].as_u64().is_some_and(|now| now > before + 2)
    });
    std::fs::remove_file(&filler).unwrap();
    // It is tried again every minute.
    let deadline = Instant::now() + Duration::from_secs(75) * patience();
    let again = loop {
        let health = daemon.json("/v1/health");
        if state(&health) == "ok" && kept(&health) > kept(&full) {
            break health;
        }
        assert!(Instant::now() < deadline, "never tried again: {health}");
        pause();
    };
    let lost = again["store"]["frames_lost"].as_u64().unwrap();
    let marks = daemon.json("/v1/marks?from=0");
    let told: u64 = marks
        .as_array()
        .unwrap()
        .iter()
        .filter(|mark| mark["kind"] == "not_stored")
        .filter_map(|mark| mark["text"].as_str()?.split(' ').next()?.parse::<u64>().ok())
        .sum();
    assert!(lost > 2 && told == lost, "{lost} {marks}");
}

#[test]
fn a_folder_that_cannot_be_written_is_told_and_sampling_goes_on() {
    let (gpu_box, home) = (GpuBox::of("bench-cheap-8"), Home::new());
    let Some(mut command) = on_a_small_disk(&home, &gpu_box, 4096) else {
        eprintln!("skipped: no mount namespace can be made here");
        return;
    };
    let mut arguments: Vec<_> = command.get_args().map(std::ffi::OsStr::to_os_string).collect();
    let script = arguments[4].to_str().unwrap().replace(
        " && exec",
        &format!(" && mount -o remount,ro '{}' && exec", home.path("state").display()),
    );
    arguments[4] = script.into();
    let mut read_only = Command::new("unshare");
    read_only.args(arguments).env_clear();
    read_only.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command = read_only;
    let daemon = home.start_as(&gpu_box, &mut command);
    let health = daemon
        .wait_for("/v1/health", "a store out of reach", |health| state(health) == "unavailable");
    let words = health["store"]["state"].to_string();
    assert!(words.contains("writable for the daemon's user"), "{words}");
    daemon.wait_for("/v1/snapshot", "snapshots", |now| now["sequence"].as_u64() > Some(3));
}
