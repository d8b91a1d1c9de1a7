//! The daemon and its sampler: one that ends is replaced, one that is stuck is not doubled, and time
//! that jumps accuses nobody.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::daemon_ending::signal;
use crate::daemon_home::Home;
use crate::gpu_box::GpuBox;
use crate::waiting::{children, is_alive, patience, until, until_gone};

const TWO: &str = "[[gpu]]\nmodel = 'H100 80GB HBM3'\ncount = 2\nutilization = 50\n";

#[test]
fn a_sampler_that_dies_is_said_and_replaced_and_numbers_go_on() {
    let (home, gpu_box) = (Home::new(), GpuBox::written(TWO));
    let daemon = home.start(&gpu_box, &[]);
    let number = daemon.wait_for_sampling("running")["number"].as_u64().unwrap();
    let first = daemon.sampler();
    signal(first, Signal::KILL);
    daemon.wait_for_log("the sampler has ended: signal: 9");
    let ended = daemon.wait_for_sampling("ended");
    assert!(ended["reasons"].to_string().contains("the sampler has ended"), "{ended}");
    let health = daemon.wait_for_sampling("running");
    assert!(health["number"].as_u64().unwrap() > number, "{health}");
    assert_ne!(daemon.sampler(), first);
    daemon.wait_for_log("snapshots come again");
    assert_eq!(daemon.json("/v1/self")["sampler_starts"], 2);
}

#[test]
fn a_program_that_is_no_sampler_is_tried_ever_more_seldom_and_said_once() {
    let (home, gpu_box) = (Home::new(), GpuBox::of("empty"));
    let daemon = home.start(&gpu_box, &["--sampler-program", "/bin/false"]);
    let starts = |daemon: &crate::running_daemon::Daemon| {
        daemon.json("/v1/self")["sampler_starts"].as_u64().unwrap()
    };
    // After 1 s, 2 s and 4 s.
    until("a third start", || starts(&daemon) >= 3);
    assert!(daemon.age() >= Duration::from_secs(3), "{:?}", daemon.age());
    assert_eq!(daemon.log().matches("the sampler has ended").count(), 1, "{}", daemon.log());
    assert!(daemon.end_timed().0.success());
}

#[test]
fn a_silent_sampler_is_asked_to_finish_and_another_comes_only_when_it_is_gone() {
    let (home, gpu_box) = (Home::new(), GpuBox::written(TWO));
    let daemon = home.start(&gpu_box, &["--interval", "250ms"]);
    daemon.wait_for("/v1/snapshot", "both GPUs", |snapshot| {
        snapshot["gpus"].as_array().is_some_and(|gpus| gpus.len() == 2)
    });
    let stuck = daemon.sampler();
    signal(stuck, Signal::STOP);
    let silent = daemon.wait_for_sampling("silent");
    assert_eq!(silent["status"], "degraded", "{silent}");
    daemon.wait_for_log("has sent nothing for 10 s");
    daemon.wait_for_log("was asked to finish and has not");
    assert_eq!(children(daemon.pid()), [stuck], "another one was started beside it");
    assert!(is_alive(stuck), "it was killed");
    // The picture stays as it was, with its age.
    assert!(silent["snapshot_age_ms"].as_u64().unwrap() >= 9_000, "{silent}");
    assert_eq!(daemon.json("/v1/snapshot")["gpus"].as_array().unwrap().len(), 2);
    signal(stuck, Signal::CONT);
    until_gone(stuck);
    daemon.wait_for_sampling("running");
    assert_ne!(daemon.sampler(), stuck);
    assert!(daemon.end_timed().0.success());
}

#[test]
fn a_sampler_that_outlives_its_daemon_is_waited_for_by_the_next_one() {
    let (home, gpu_box) = (Home::new(), GpuBox::written(TWO));
    let mut daemon = home.start(&gpu_box, &[]);
    daemon.wait_for_sampling("running");
    let stuck = daemon.sampler();
    signal(stuck, Signal::STOP);
    daemon.child.kill().unwrap();
    daemon.wait_for_end();
    let next = home.start(&gpu_box, &[]);
    let words = format!("the sampler of an earlier daemon, process {stuck}, has not ended");
    next.wait_for_log(&words);
    assert!(next.wait_for_sampling("ended")["reasons"].to_string().contains(&words));
    assert!(children(next.pid()).is_empty(), "another one was started beside it");
    signal(stuck, Signal::CONT);
    next.wait_for_sampling("running");
    assert!(!is_alive(stuck));
}

#[test]
fn a_daemon_that_was_stopped_for_long_blames_nobody() {
    let (home, gpu_box) = (Home::new(), GpuBox::written(TWO));
    let daemon = home.start(&gpu_box, &["--interval", "250ms"]);
    daemon.wait_for_sampling("running");
    let sampler = daemon.sampler();
    // As the freezer of control groups does it, and a machine that sleeps.
    for pid in [daemon.pid(), sampler] {
        signal(pid, Signal::STOP);
    }
    let until = Instant::now() + Duration::from_secs(12);
    while Instant::now() < until {
        std::thread::park_timeout(Duration::from_millis(100));
    }
    for pid in [sampler, daemon.pid()] {
        signal(pid, Signal::CONT);
    }
    let number = daemon.json("/v1/health")["number"].as_u64().unwrap();
    daemon.wait_for("/v1/health", "more snapshots", |health| {
        health["number"].as_u64().unwrap() > number + 4
    });
    assert_eq!(daemon.sampler(), sampler);
    assert_eq!(daemon.json("/v1/self")["sampler_starts"], 1);
    assert!(!daemon.log().contains("has sent nothing"), "{}", daemon.log());
}

#[test]
fn it_costs_next_to_nothing_while_nobody_asks() {
    let (home, gpu_box) = (Home::new(), GpuBox::written(TWO));
    let daemon = home.start(&gpu_box, &[]);
    daemon.wait_for_sampling("running");
    let switches = || {
        let path = format!("/proc/{}/status", daemon.pid());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"));
        line.unwrap().rsplit('\t').next().unwrap().parse::<u64>().unwrap()
    };
    let number = || daemon.json("/v1/health")["number"].as_u64().unwrap();
    let (before, frames) = (switches(), number());
    let until = Instant::now() + Duration::from_secs(6);
    while Instant::now() < until {
        std::thread::park_timeout(Duration::from_millis(100));
    }
    let (woken, frames) = (switches() - before, number() - frames);
    // A frame may come in two reads, and this test has asked twice.
    let most = frames * 3 + 12 * u64::from(patience());
    assert!(woken <= most, "woken {woken} times for {frames} frames");
}
