//! The real binary in a real terminal: a pseudo-terminal with an emulator behind it.

use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::os::fd::AsFd as _;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::gpu_box::GpuBox;
use crate::waiting::{patience, pause, until};

/// A program in a terminal.
pub struct Terminal {
    pub child: Child,
    /// Held open for as long as the terminal is there.
    pty: Arc<pty_process::blocking::Pty>,
    screen: Arc<Mutex<vt100::Parser>>,
    /// Every byte that was ever written to the terminal.
    raw: Arc<Mutex<Vec<u8>>>,
    gone: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
    pub started: Instant,
    _state: Arc<tempfile::TempDir>,
}

impl Terminal {
    /// Starts `infertop` on a box, in so many rows and columns.
    pub fn start(gpu_box: &GpuBox, size: (u16, u16), arguments: &[&str]) -> Self {
        Self::start_with(gpu_box, size, arguments, &[])
    }

    /// The same with more environment.
    pub fn start_with(
        gpu_box: &GpuBox,
        size: (u16, u16),
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let mut all: Vec<&str> = gpu_box.arguments().iter().map(String::as_str).collect();
        all.extend(arguments);
        Self::program(env!("CARGO_BIN_EXE_infertop"), gpu_box, size, &all, environment)
    }

    /// Starts any program on a box, such as a shell to start `infertop` from.
    pub fn program(
        program: &str,
        gpu_box: &GpuBox,
        (rows, columns): (u16, u16),
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let (pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(pty_process::Size::new(rows, columns)).unwrap();
        let command = pty_process::blocking::Command::new(program)
            .env_clear()
            .envs(gpu_box.environment())
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .envs(environment.iter().copied())
            .args(arguments);
        let started = Instant::now();
        let child = command.spawn(pts).unwrap();
        let mut terminal = Self {
            child,
            pty: Arc::new(pty),
            screen: Arc::new(Mutex::new(vt100::Parser::new(cells(rows), cells(columns), 0))),
            raw: Arc::default(),
            gone: Arc::default(),
            reader: None,
            started,
            _state: gpu_box.keep(),
        };
        terminal.reader = Some(terminal.read());
        terminal
    }

    /// The emulator: reads what is written to the terminal until it goes away.
    fn read(&self) -> JoinHandle<()> {
        let (pty, gone) = (Arc::clone(&self.pty), Arc::clone(&self.gone));
        let (screen, raw) = (Arc::clone(&self.screen), Arc::clone(&self.raw));
        std::thread::spawn(move || {
            let mut buffer = vec![0; 65536];
            // Waits with a deadline, because closing a descriptor ends no read.
            let deadline = rustix::event::Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
            while !gone.load(Ordering::Relaxed) {
                let mut wait = [rustix::event::PollFd::from_borrowed_fd(
                    pty.as_fd(),
                    rustix::event::PollFlags::IN,
                )];
                if rustix::event::poll(&mut wait, Some(&deadline)).unwrap_or(0) == 0 {
                    continue;
                }
                match (&*pty).read(&mut buffer) {
                    Ok(length @ 1..) => {
                        raw.lock().unwrap().extend_from_slice(&buffer[..length]);
                        screen.lock().unwrap().process(&buffer[..length]);
                    }
                    // Nobody has the other end open any more.
                    _ => return,
                }
            }
        })
    }

    /// Types.
    pub fn keys(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    /// Changes the window's size.
    pub fn resize(&self, rows: u16, columns: u16) {
        self.screen.lock().unwrap().screen_mut().set_size(cells(rows), cells(columns));
        self.pty.resize(pty_process::Size::new(rows, columns)).unwrap();
    }

    /// Closes the terminal, as a lost connection does. What was started in it is left to itself.
    pub fn hang_up(mut self) -> Child {
        self.gone.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        // A stand-in for the child lets the real one out of a value that has a destructor.
        let substitute = std::process::Command::new("true").spawn().unwrap();
        std::mem::replace(&mut self.child, substitute)
    }

    /// What stands on the screen.
    pub fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// The rows of the screen.
    pub fn rows(&self) -> Vec<String> {
        let parser = self.screen.lock().unwrap();
        let (_, columns) = parser.screen().size();
        parser.screen().rows(0, columns.get()).collect()
    }

    /// The row of a GPU on the overview, without the marker of the selection; empty if there is none.
    pub fn gpu_row(&self, index: u32) -> String {
        let above_holders = self.rows().into_iter().take_while(|row| !row.contains("WHO"));
        let rows = above_holders.map(|row| row.trim_start_matches(['›', '>', ' ']).to_string());
        let number = index.to_string();
        rows.into_iter().find(|row| row.split(' ').next() == Some(&number)).unwrap_or_default()
    }

    /// Everything that was written to the terminal so far.
    pub fn raw(&self) -> Vec<u8> {
        self.raw.lock().unwrap().clone()
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
            pause();
        }
    }

    /// Waits for the end, and gives how long that took.
    pub fn wait_for_end(&mut self) -> (ExitStatus, Duration) {
        let start = Instant::now();
        let status = wait_for_end(&mut self.child);
        (status, start.elapsed())
    }

    /// Waits until the other screen was left and the cursor is visible again.
    pub fn wait_until_given_back(&self) {
        until("the shell's screen", || {
            let parser = self.screen.lock().unwrap();
            !parser.screen().alternate_screen() && !parser.screen().hide_cursor()
        });
    }

    /// Whether the other screen is shown, as while the dashboard runs.
    pub fn is_taken(&self) -> bool {
        self.screen.lock().unwrap().screen().alternate_screen()
    }
}

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).unwrap()
}

/// Waits for the end of a process.
pub fn wait_for_end(child: &mut Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(start.elapsed() < Duration::from_secs(10) * patience(), "it does not end");
        pause();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}
