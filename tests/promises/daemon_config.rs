//! The configuration: layers, refusals with the place, reloads by signal and by itself; a broken one
//! never takes effect.

use std::process::{Command, Output};

use rustix::process::Signal;

use crate::daemon_home::Home;
use crate::gpu_box::GpuBox;

fn config(home: &Home, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_infertop"))
        .env_clear()
        .env("HOME", home.path(""))
        .arg("config")
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn what_is_printed_as_the_default_is_taken_as_one() {
    let home = Home::new();
    let printed = config(&home, &[]);
    assert!(printed.status.success() && printed.stderr.is_empty());
    let printed = text(&printed.stdout);
    for words in ["#interval_ms = 1000", "[store]", "#raw_days = 7", "INFERTOP_METRICS_LISTEN"] {
        assert!(printed.contains(words), "no {words:?} in\n{printed}");
    }
    home.configure(&printed);
    let path = home.path("config.toml");
    let checked = config(&home, &["--check", path.to_str().unwrap()]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    assert!(text(&checked.stdout).contains("nothing is wrong"));
}

#[test]
fn a_key_that_is_none_is_refused_with_file_line_and_what_was_meant() {
    let (home, gpu_box) = (Home::new(), GpuBox::of("empty"));
    home.configure("interval_ms = 500\n\n[store]\nraw_day = 3\n");
    let path = home.path("config.toml");
    let checked = config(&home, &["--check", path.to_str().unwrap()]);
    assert_eq!(checked.status.code(), Some(1));
    for errors in [home.refused(&gpu_box, &[]), text(&checked.stderr)] {
        assert!(errors.starts_with("error: unknown key raw_day in [store]\n"), "{errors}");
        assert!(errors.contains(&format!("line 4 of {}", path.display())), "{errors}");
        assert!(errors.contains("did you mean raw_days?"), "{errors}");
    }
    assert!(!home.path("state").exists());
}

#[test]
fn the_users_file_the_environment_and_flags_count_in_this_order() {
    let (home, gpu_box) = (Home::new(), GpuBox::of("empty"));
    std::fs::create_dir_all(home.path(".config/infertop")).unwrap();
    std::fs::write(home.path(".config/infertop/config.toml"), "interval_ms = 700\n").unwrap();
    let interval = |daemon: &crate::running_daemon::Daemon| {
        daemon.wait_for_sampling("running");
        daemon.json("/v1/snapshot")["interval_ms"].clone()
    };
    assert_eq!(interval(&home.start(&gpu_box, &[])), 700);
    let mut command = home.command(&gpu_box, &[]);
    let daemon = home.start_as(&gpu_box, command.env("INFERTOP_INTERVAL_MS", "600"));
    assert_eq!(interval(&daemon), 600);
    drop(daemon);
    let mut command = home.command(&gpu_box, &["--interval", "500ms"]);
    let daemon = home.start_as(&gpu_box, command.env("INFERTOP_INTERVAL_MS", "600"));
    assert_eq!(interval(&daemon), 500);
}

#[test]
fn a_file_that_changes_is_taken_by_itself_and_a_broken_one_is_said_and_not_taken() {
    let (home, gpu_box) = (Home::new(), GpuBox::of("empty"));
    home.configure("interval_ms = 1000\n");
    let daemon = home.start(&gpu_box, &[]);
    daemon.wait_for_sampling("running");
    let sampler = daemon.sampler();
    let wait_for = |ms: u64| {
        daemon.wait_for("/v1/snapshot", "the new pace", |snapshot| snapshot["interval_ms"] == ms);
    };
    home.configure("interval_ms = 250\n");
    wait_for(250);
    daemon.wait_for_log("configuration: interval_ms: 250 instead of 1000");

    home.configure("interval_ms = 250\ninterval = 300\n");
    daemon.wait_for_log("unknown key interval");
    daemon.wait_for("/v1/health", "a word of it", |health| {
        health["reasons"].to_string().contains("unknown key interval")
    });
    assert_eq!(daemon.json("/v1/snapshot")["interval_ms"], 250);

    home.configure("interval_ms = 300\ngroup = \"ops\"\n");
    wait_for(300);
    daemon.wait_for_log("the configuration is whole again");
    daemon.wait_for_log("once the daemon is restarted");
    assert_eq!(daemon.sampler(), sampler, "the sampler was started again");
}

#[test]
fn sighup_and_a_request_read_it_again() {
    let (home, gpu_box) = (Home::new(), GpuBox::of("empty"));
    home.configure("");
    let daemon = home.start(&gpu_box, &[]);
    daemon.wait_for_sampling("running");
    let (status, answer) = daemon.post("/v1/reload");
    assert_eq!((status, answer["changed"].to_string().as_str()), (200, "[]"));
    home.configure("interval_ms = 500\n[store]\nraw_days = 3\n");
    daemon.signal(Signal::HUP);
    daemon.wait_for_log("configuration: store.raw_days: 3 instead of 7");
    daemon.wait_for("/v1/snapshot", "the new pace", |snapshot| snapshot["interval_ms"] == 500);
    home.configure("interval_ms = 1\n");
    let (status, answer) = daemon.post("/v1/reload");
    assert_eq!(status, 422, "{answer}");
    assert!(answer["error"].as_str().unwrap().contains("a number from 250 to 60000"), "{answer}");
}
