//! The real binary in a real terminal: a pseudo-terminal with an emulator behind it.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::gpu_box::GpuBox;

/// Slow machines get so much longer.
pub fn patience() -> u32 {
    std::env::var("INFERTOP_TEST_PATIENCE").ok().and_then(|n| n.parse().ok()).unwrap_or(4)
}

/// A running `infertop` in a terminal.
pub struct Terminal {
    pub child: Child,
    pty: Arc<Mutex<pty_process::blocking::Pty>>,
    screen: Arc<Mutex<vt100::Parser>>,
    pub started: Instant,
}

impl Terminal {
    /// Starts `infertop` on a box, in so many rows and columns.
    pub fn start(gpu_box: &GpuBox, (rows, columns): (u16, u16), arguments: &[&str]) -> Self {
        let (pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(pty_process::Size::new(rows, columns)).unwrap();
        let mut command = pty_process::blocking::Command::new(env!("CARGO_BIN_EXE_infertop"))
            .env_clear()
            .envs(gpu_box.environment())
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC");
        command = command.args(gpu_box.arguments()).args(arguments);
        let started = Instant::now();
        let child = command.spawn(pts).unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        // The emulator reads through its own descriptor, so that writing never waits for it.
        let mut reader =
            std::fs::File::from(std::os::fd::AsFd::as_fd(&pty).try_clone_to_owned().unwrap());
        let seen = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut buffer = [0; 65536];
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                seen.lock().unwrap().process(&buffer[..length]);
            }
        });
        Self { child, pty: Arc::new(Mutex::new(pty)), screen, started }
    }

    /// Types.
    pub fn keys(&self, keys: &str) {
        self.pty.lock().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Changes the window's size.
    pub fn resize(&self, rows: u16, columns: u16) {
        self.screen.lock().unwrap().screen_mut().set_size(rows, columns);
        self.pty.lock().unwrap().resize(pty_process::Size::new(rows, columns)).unwrap();
    }

    /// What stands on the screen.
    pub fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Waits until the screen shows what is wanted, and gives the time since the start.
    pub fn wait_for(&self, what: &str, shows: impl Fn(&str) -> bool) -> Duration {
        let deadline = Instant::now() + Duration::from_secs(5) * patience();
        loop {
            let text = self.text();
            if shows(&text) {
                return self.started.elapsed();
            }
            assert!(Instant::now() < deadline, "never showed {what}:\n{text}");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Waits for the end, and gives how long that took.
    pub fn wait_for_end(&mut self) -> (ExitStatus, Duration) {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status, start.elapsed());
            }
            assert!(start.elapsed() < Duration::from_secs(10) * patience(), "it does not end");
            std::thread::park_timeout(Duration::from_millis(2));
        }
    }

    /// Whether the other screen was left and the cursor is visible again.
    pub fn is_given_back(&self) -> bool {
        let parser = self.screen.lock().unwrap();
        !parser.screen().alternate_screen() && !parser.screen().hide_cursor()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processes below a pid that still run, as `pid state command`.
pub fn descendants(pid: u32) -> String {
    let mut found = String::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let Some((head, rest)) = stat.rsplit_once(')') else { continue };
        let mut rest = rest.split_ascii_whitespace();
        let (state, parent) = (rest.next().unwrap_or(""), rest.next().unwrap_or(""));
        if parent == pid.to_string() {
            let _ = writeln!(found, "{head}) {state}");
        }
    }
    found
}

/// Whether a process of this number runs and is no zombie.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    stat.is_ok_and(|stat| !stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" Z")))
}

/// The numbers of the children of a process.
pub fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}
