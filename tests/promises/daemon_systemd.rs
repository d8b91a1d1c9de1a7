//! What systemd is told, and how the journal is written to.

use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::daemon_home::Home;
use crate::gpu_box::GpuBox;
use crate::running_daemon;
use crate::waiting::{patience, until};

/// The other end of `NOTIFY_SOCKET`.
struct Systemd {
    socket: UnixDatagram,
    heard: Vec<String>,
}

impl Systemd {
    fn listen(home: &Home) -> Self {
        let socket = UnixDatagram::bind(home.path("notify")).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5) * patience())).unwrap();
        Self { socket, heard: Vec::new() }
    }

    /// Waits for a message that begins so.
    fn wait_for(&mut self, begin: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(5) * patience();
        let mut buffer = [0; 1024];
        while Instant::now() < deadline {
            let length = self.socket.recv(&mut buffer).unwrap();
            let message = String::from_utf8_lossy(&buffer[..length]).into_owned();
            self.heard.push(message.clone());
            if message.starts_with(begin) {
                return message;
            }
        }
        panic!("never {begin}: {:?}", self.heard);
    }
}

#[test]
fn it_is_ready_feeds_the_watchdog_says_how_it_stands_and_stops() {
    let (home, gpu_box) = (Home::new(), GpuBox::of("eight-h100"));
    let mut systemd = Systemd::listen(&home);
    let mut command = home.command(&gpu_box, &[]);
    command.env("NOTIFY_SOCKET", home.path("notify")).env("WATCHDOG_USEC", "400000");
    let daemon = home.start_as(&gpu_box, &mut command);
    systemd.wait_for("READY=1");
    systemd.wait_for("STATUS=watching 8 GPUs every 1 s");
    systemd.wait_for("WATCHDOG=1");
    daemon.signal(Signal::HUP);
    let reloading = systemd.wait_for("RELOADING=1");
    let monotonic = reloading.lines().find_map(|line| line.strip_prefix("MONOTONIC_USEC="));
    assert!(monotonic.unwrap().parse::<u64>().unwrap() > 0, "{reloading}");
    systemd.wait_for("READY=1");
    let (status, _) = daemon.end_timed();
    assert!(status.success());
    systemd.wait_for("STOPPING=1");
}

#[test]
fn the_watchdog_is_fed_while_the_driver_hangs_and_while_no_sampler_can_be_started() {
    for (scenario, arguments) in
        [("hang-from-start", &[][..]), ("empty", &["--sampler-program", "/nowhere/sampler"])]
    {
        let (home, gpu_box) = (Home::new(), GpuBox::of(scenario));
        let mut systemd = Systemd::listen(&home);
        let mut command = home.command(&gpu_box, arguments);
        command.env("NOTIFY_SOCKET", home.path("notify")).env("WATCHDOG_USEC", "400000");
        let daemon = home.start_as(&gpu_box, &mut command);
        let begin = Instant::now();
        for _ in 0..6 {
            systemd.wait_for("WATCHDOG=1");
        }
        assert!(begin.elapsed() < Duration::from_millis(400) * 6 * patience());
        assert!(daemon.end_timed().0.success());
    }
}

#[test]
fn a_watchdog_of_another_process_is_not_fed() {
    let (home, gpu_box) = (Home::new(), GpuBox::of("empty"));
    let mut systemd = Systemd::listen(&home);
    let mut command = home.command(&gpu_box, &[]);
    command
        .env("NOTIFY_SOCKET", home.path("notify"))
        .env("WATCHDOG_USEC", "20000")
        .env("WATCHDOG_PID", "1");
    let daemon = home.start_as(&gpu_box, &mut command);
    daemon.wait_for_sampling("running");
    daemon.end_timed();
    systemd.wait_for("STOPPING=1");
    assert!(!systemd.heard.iter().any(|message| message.starts_with("WATCHDOG")));
}

#[test]
fn the_journal_gets_a_priority_for_each_line_and_a_person_the_time() {
    let (home, gpu_box) = (Home::new(), GpuBox::of("empty"));
    for is_journal in [true, false] {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let stat = rustix::fs::fstat(theirs.as_fd()).unwrap();
        let inode = if is_journal { stat.st_ino } else { stat.st_ino + 1 };
        let mut command = home.command(&gpu_box, &["--sampler-program", "/nowhere/sampler"]);
        command.env("JOURNAL_STREAM", format!("{}:{inode}", stat.st_dev));
        let mut child = command.stderr(Stdio::from(OwnedFd::from(theirs))).spawn().unwrap();
        drop(command);
        let text = read_until(ours, "cannot start the sampler");
        let line = text.lines().find(|line| line.contains("cannot start the sampler")).unwrap();
        assert_eq!(line.starts_with("<3>cannot start"), is_journal, "{text}");
        assert_eq!(line.contains(" error: cannot start"), !is_journal, "{text}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn a_log_that_nobody_reads_holds_nobody_up_and_its_losses_are_said() {
    let (home, gpu_box) = (Home::new(), GpuBox::of("empty"));
    home.configure("interval_ms = 250\n");
    let (mut ours, theirs) = std::io::pipe().unwrap();
    rustix::pipe::fcntl_setpipe_size(&theirs, 4096).unwrap();
    let mut command = home.command(&gpu_box, &[]);
    let mut child = command.stderr(theirs).stdin(Stdio::null()).spawn().unwrap();
    drop(command);
    let ask = |method, target| {
        running_daemon::ask(&home.path("infertop.sock"), method, target, "application/json")
    };
    until("a daemon that answers", || ask("GET", "/v1/health").is_ok());
    let reload = |number: u32| {
        home.configure(&format!("interval_ms = {}\n", 250 + number % 2));
        assert_eq!(ask("POST", "/v1/reload").unwrap().status, 200);
    };
    (1..100).for_each(reload);
    let number = || ask("GET", "/v1/health").unwrap().json()["number"].as_u64().unwrap();
    let before = number();
    until("more snapshots", || number() > before + 2);

    // Read again, it takes lines again, and says how many it lost.
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    for more in 100.. {
        let length = ours.read(&mut buffer).unwrap();
        text.push_str(&String::from_utf8_lossy(&buffer[..length]));
        if text.contains("lines were lost: nobody took them") {
            break;
        }
        assert!(more < 200, "{text}");
        reload(more);
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

fn read_until(mut stream: UnixStream, words: &str) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(5) * patience())).unwrap();
    let (mut text, mut buffer) = (String::new(), [0; 1024]);
    while !text.contains(words) || !text.ends_with('\n') {
        let length = stream.read(&mut buffer).unwrap();
        assert!(length > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    text
}
