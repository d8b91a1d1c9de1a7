//! The dashboard on a daemon: attached when the socket answers, never held up when it does not, back
//! by itself when the daemon is.

use std::os::unix::net::UnixListener;

use rustix::process::{Pid, Signal, kill_process};

use crate::gpu_box::GpuBox;
use crate::running_daemon::Daemon;
use crate::terminal::Terminal;
use crate::waiting::{children, only_child, until};

const SIZE: (u16, u16) = (24, 80);

fn attach(gpu_box: &GpuBox, daemon: &Daemon, arguments: &[&str]) -> Terminal {
    let socket = daemon.socket();
    let mut all = vec!["--socket", socket.to_str().unwrap()];
    all.extend(arguments);
    Terminal::start(gpu_box, SIZE, &all)
}

fn stop(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).unwrap();
    kill_process(pid, signal).unwrap();
}

fn header(terminal: &Terminal) -> String {
    terminal.rows().swap_remove(0)
}

#[test]
fn a_daemon_that_answers_is_shown_and_no_sampler_is_started() {
    let gpu_box = GpuBox::of("eight-h100");
    let daemon = Daemon::start(&gpu_box, &[]);
    daemon.until_number(4);
    let terminal = attach(&gpu_box, &daemon, &[]);
    until("a picture from the daemon", || {
        header(&terminal).contains("daemon 1 s") && header(&terminal).contains("8×H100")
    });
    assert_eq!(children(terminal.child.id()), Vec::<u32>::new(), "a second reader of the driver");
}

#[test]
fn what_the_daemon_remembers_stands_behind_the_first_picture() {
    let gpu_box = GpuBox::of("eight-h100");
    let daemon = Daemon::start(&gpu_box, &["--interval", "250ms"]);
    daemon.until_number(16);
    // From now on nothing new comes: what is seen is what the daemon knew.
    let sampler = only_child(daemon.child.id());
    stop(sampler, Signal::STOP);
    let terminal = attach(&gpu_box, &daemon, &[]);
    // Between the share and the bar of the memory.
    let is_full = |row: &String| row.chars().skip(12).take(7).all(|c| ('▁'..='█').contains(&c));
    until("a full sparkline", || terminal.rows()[2..6].iter().all(is_full));
    stop(sampler, Signal::CONT);
}

#[test]
fn a_socket_behind_which_nobody_answers_holds_nobody_up() {
    let gpu_box = GpuBox::of("eight-h100");
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("dead.sock");
    let _silent = UnixListener::bind(&socket).unwrap();
    let terminal = Terminal::start(&gpu_box, SIZE, &["--socket", socket.to_str().unwrap()]);
    until("a live picture", || header(&terminal).contains("live 1 s"));
    terminal.keys("q");
    until("the end", || !crate::waiting::is_alive(terminal.child.id()));
}

#[test]
fn a_daemon_that_starts_again_is_found_again() {
    let gpu_box = GpuBox::of("eight-h100");
    let mut daemon = Daemon::start(&gpu_box, &[]);
    daemon.until_number(3);
    let terminal = attach(&gpu_box, &daemon, &[]);
    until("a picture from the daemon", || header(&terminal).contains("daemon 1 s"));
    assert!(daemon.end().success());
    until("word of its end", || terminal.text().contains("the daemon has gone"));
    let daemon = Daemon::again(&gpu_box, daemon.folder(), &[]);
    until("a picture from the new one", || {
        header(&terminal).contains("daemon 1 s") && !terminal.text().contains("nothing comes")
    });
    assert_eq!(children(terminal.child.id()), Vec::<u32>::new());
    drop(daemon);
    until("an own sampler in its place", || header(&terminal).contains("live 1 s"));
}

#[test]
fn a_daemon_that_lets_go_is_no_frozen_picture() {
    let gpu_box = GpuBox::of("eight-h100");
    let daemon = Daemon::start(&gpu_box, &[]);
    daemon.until_number(3);
    let terminal = attach(&gpu_box, &daemon, &[]);
    until("a picture from the daemon", || header(&terminal).contains("daemon 1 s"));
    assert_eq!(daemon.ask("POST", "/v1/release", "application/json").status, 200);
    until("word of the release", || terminal.text().contains("infertop daemon resume"));
    assert_eq!(daemon.ask("POST", "/v1/resume", "application/json").status, 200);
    until("snapshots again", || !terminal.text().contains("infertop daemon resume"));
}

#[test]
fn another_machine_than_the_daemons_is_not_shown_through_it() {
    let gpu_box = GpuBox::of("eight-h100");
    let daemon = Daemon::start(&gpu_box, &[]);
    let socket = daemon.socket().display().to_string();
    let environment = [("INFERTOP_SOCKET", socket.as_str())];
    let told = Terminal::start_with(&gpu_box, SIZE, &[], &environment);
    until("the daemon's picture", || header(&told).contains("daemon 1 s"));
    for flags in [&["--no-daemon"][..], &["--procfs", "/proc"]] {
        let own = Terminal::start_with(&gpu_box, SIZE, flags, &environment);
        until("an own picture", || header(&own).contains("live 1 s"));
    }
}

/// Presses of keys as a terminal sends them.
const LEFT: &str = "\x1b[D";
const END: &str = "\x1b[F";

#[test]
fn the_past_is_travelled_to_and_left_again() {
    let gpu_box = GpuBox::of("eight-h100");
    let daemon = Daemon::start(&gpu_box, &["--interval", "250ms"]);
    daemon.until_number(12);
    let terminal = attach(&gpu_box, &daemon, &[]);
    until("a picture from the daemon", || header(&terminal).contains("daemon 0.25 s"));
    // What is remembered is known a moment after the first picture.
    until("a moment of the past", || {
        terminal.keys(LEFT);
        header(&terminal).contains('◂')
    });
    let pass = || {
        let number = daemon.json("/v1/health")["number"].as_u64().unwrap();
        daemon.until_number(number + 4);
    };
    // Every press has been answered by then.
    pass();
    let shown = terminal.rows()[2].clone();
    // Reading goes on behind it, and the picture stays what it is.
    pass();
    assert_eq!(terminal.rows()[2], shown);
    terminal.keys("@-1s\r");
    until("the typed moment", || header(&terminal).contains('◂'));
    terminal.keys(END);
    until("the present again", || header(&terminal).contains("daemon 0.25 s"));
}

#[test]
fn a_moment_can_be_asked_for_on_the_command_line() {
    let gpu_box = GpuBox::of("eight-h100");
    let daemon = Daemon::start(&gpu_box, &["--interval", "250ms"]);
    daemon.until_number(12);
    let terminal = attach(&gpu_box, &daemon, &["--at", "-1s"]);
    until("a moment of the past", || {
        header(&terminal).contains('◂') && terminal.text().contains("H100")
    });
    let before = attach(&gpu_box, &daemon, &["--at", "2020-01-01 00:00"]);
    until("a refusal", || before.text().contains("nothing is recorded at"));
}

#[test]
fn without_anything_that_remembers_a_moment_is_refused_with_what_to_do() {
    let gpu_box = GpuBox::of("eight-h100");
    let terminal = Terminal::start(&gpu_box, SIZE, &["--no-daemon", "--at", "-1h"]);
    until("the refusal", || terminal.text().contains("infertop daemon"));
    until("the end", || !crate::waiting::is_alive(terminal.child.id()));
}
