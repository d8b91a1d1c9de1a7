//! A daemon ends at once and leaves nothing behind, whatever the GPUs do; and there is one only.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::daemon_home::Home;
use crate::gpu_box::GpuBox;
use crate::waiting::{is_alive, patience, until_gone};

/// systemd's patience is longer; a person's is not.
const WITHIN: Duration = Duration::from_secs(2);

const TWO: &str = "[[gpu]]\nmodel = 'H100 80GB HBM3'\ncount = 2\nutilization = 50\n";

/// GPU 1 stops answering after a second.
const SICK: &str = "[[gpu]]\nmodel = 'H100 80GB HBM3'\ncount = 2\n\
    [[fault]]\nsymbol = '*'\ngpu = 1\nat = 1\nhang = true\n";

#[test]
fn sigterm_ends_it_within_two_seconds_with_a_driver_that_hangs_from_the_start() {
    let (home, gpu_box) = (Home::new(), GpuBox::of("hang-from-start"));
    let daemon = home.start(&gpu_box, &[]);
    daemon.wait_for_sampling("running");
    let sampler = daemon.sampler();
    let (status, took) = daemon.end_timed();
    assert!(status.success(), "{status}");
    assert!(took < WITHIN * patience(), "ending took {took:?}");
    until_gone(sampler);
    assert!(!home.path("infertop.sock").exists(), "the socket stays behind");
}

#[test]
fn sigterm_ends_it_within_two_seconds_with_a_gpu_that_hangs_later() {
    let (home, gpu_box) = (Home::new(), GpuBox::written(SICK));
    let daemon = home.start(&gpu_box, &["--interval", "250ms"]);
    daemon.wait_for("/v1/snapshot", "a stuck GPU", |snapshot| {
        snapshot["gpus"][1]["health"]["state"] == "no_answer"
    });
    let sampler = daemon.sampler();
    let (status, took) = daemon.end_timed();
    assert!(status.success(), "{status}");
    assert!(took < WITHIN * patience(), "ending took {took:?}");
    until_gone(sampler);
}

#[test]
fn a_sampler_that_does_not_end_holds_nobody_up() {
    let (home, gpu_box) = (Home::new(), GpuBox::written(TWO));
    let daemon = home.start(&gpu_box, &[]);
    daemon.wait_for_sampling("running");
    let sampler = daemon.sampler();
    signal(sampler, Signal::STOP);
    let (status, took) = daemon.end_timed();
    assert!(status.success(), "{status}");
    assert!(took < WITHIN * patience(), "ending took {took:?}");
    until_gone(sampler);
}

#[test]
fn an_interrupt_ends_it_too_and_a_killed_one_leaves_no_sampler_and_no_lock() {
    let (home, gpu_box) = (Home::new(), GpuBox::written(TWO));
    let mut daemon = home.start(&gpu_box, &[]);
    daemon.signal(Signal::INT);
    assert!(daemon.wait_for_end().0.success());

    let mut daemon = home.start(&gpu_box, &[]);
    let sampler = daemon.sampler();
    daemon.signal(Signal::KILL);
    daemon.wait_for_end();
    until_gone(sampler);
    let daemon = home.start(&gpu_box, &[]);
    daemon.wait_for_sampling("running");
    assert!(daemon.end_timed().0.success());
}

#[test]
fn a_second_daemon_on_the_same_folder_says_who_is_there_and_leaves() {
    let (home, gpu_box) = (Home::new(), GpuBox::written(TWO));
    let daemon = home.start(&gpu_box, &[]);
    let errors = Home::with_state_of(&home).refused(&gpu_box, &[]);
    assert!(errors.starts_with("error: "), "{errors}");
    assert!(errors.contains(&format!("process {}", daemon.pid())), "{errors}");
    assert!(errors.contains("--state"), "{errors}");
    assert!(is_alive(daemon.pid()));
    assert_eq!(daemon.json("/v1/health")["pid"], daemon.pid());
}

#[test]
fn a_second_daemon_on_the_same_socket_leaves_too_and_writes_nothing() {
    let (home, gpu_box) = (Home::new(), GpuBox::written(TWO));
    let daemon = home.start(&gpu_box, &[]);
    let other = Home::with_socket_of(&home);
    let errors = other.refused(&gpu_box, &[]);
    assert!(errors.contains("--socket"), "{errors}");
    assert!(!other.path("state/infertop.db").exists());
    assert_eq!(daemon.json("/v1/health")["pid"], daemon.pid());
}

#[test]
fn it_serves_before_the_driver_has_answered() {
    let (home, gpu_box) = (Home::new(), GpuBox::of("hang-from-start"));
    let daemon = home.start(&gpu_box, &[]);
    assert!(daemon.age() < Duration::from_secs(1) * patience(), "{:?}", daemon.age());
    let begin = Instant::now();
    let health = daemon.json("/v1/health");
    assert!(begin.elapsed() < Duration::from_millis(100) * patience());
    assert_eq!(health["pid"], daemon.pid());
}

/// Sends a process a signal.
pub fn signal(pid: u32, signal: Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}
