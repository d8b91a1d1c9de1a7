//! A daemon that runs on a stand-in box, with folders, a socket and a configuration of its own.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::gpu_box::GpuBox;
use crate::running_daemon;
use crate::waiting::{children, patience, pause, until};

/// Folders of a daemon, before and after it runs.
pub struct Home {
    folder: tempfile::TempDir,
    state: PathBuf,
    socket: PathBuf,
}

/// A running daemon.
pub struct Daemon {
    pub child: Child,
    socket: PathBuf,
    log: Arc<Mutex<String>>,
    started: Instant,
    _state: Arc<tempfile::TempDir>,
}

impl Home {
    /// Empty ones.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { state: folder.path().join("state"), socket: folder.path().join("socket"), folder }
    }

    /// Others, with the same state folder.
    pub fn with_state_of(other: &Self) -> Self {
        Self { state: other.state.clone(), ..Self::new() }
    }

    /// Others, with the same socket.
    pub fn with_socket_of(other: &Self) -> Self {
        Self { socket: other.socket.clone(), ..Self::new() }
    }

    /// A path below.
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes the configuration as editors do: another file is renamed over it.
    pub fn configure(&self, text: &str) {
        let fresh = self.path("config.fresh");
        std::fs::write(&fresh, text).unwrap();
        std::fs::rename(fresh, self.path("config.toml")).unwrap();
    }

    /// The command that starts a daemon here.
    pub fn command(&self, gpu_box: &GpuBox, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_infertop"));
        command
            .env_clear()
            .envs(gpu_box.environment())
            .env("HOME", self.folder.path())
            .args(gpu_box.arguments())
            .arg("daemon");
        command.arg("--state").arg(&self.state);
        command.arg("--socket").arg(&self.socket);
        if self.path("config.toml").exists() {
            command.arg("--config").arg(self.path("config.toml"));
        }
        command.args(arguments);
        command
    }

    /// Starts one and waits until it answers.
    pub fn start(&self, gpu_box: &GpuBox, arguments: &[&str]) -> Daemon {
        self.start_as(gpu_box, &mut self.command(gpu_box, arguments))
    }

    /// The same with a command that was changed.
    pub fn start_as(&self, gpu_box: &GpuBox, command: &mut Command) -> Daemon {
        let mut daemon = self.spawn(gpu_box, command);
        let socket = daemon.socket.clone();
        until("a daemon that answers", || {
            assert!(daemon.child.try_wait().unwrap().is_none(), "{}", daemon.log());
            ask(&socket, "GET", "/v1/health").is_some()
        });
        daemon
    }

    fn spawn(&self, gpu_box: &GpuBox, command: &mut Command) -> Daemon {
        let started = Instant::now();
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = child.stderr.take().unwrap();
        let log: Arc<Mutex<String>> = Arc::default();
        let heard = Arc::clone(&log);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = errors.read(&mut buffer) {
                heard.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..length]));
            }
        });
        Daemon { child, socket: self.socket.clone(), log, started, _state: gpu_box.keep() }
    }

    /// Runs a daemon that is refused, and says what it said.
    pub fn refused(&self, gpu_box: &GpuBox, arguments: &[&str]) -> String {
        let output = self.command(gpu_box, arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    }

    /// Asks the daemon of this home as a person does: `release`, `resume`.
    pub fn ask(&self, gpu_box: &GpuBox, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_infertop"))
            .env_clear()
            .envs(gpu_box.environment())
            .env("HOME", self.folder.path())
            .arg("daemon")
            .args(arguments)
            .arg("--socket")
            .arg(&self.socket)
            .output()
            .unwrap()
    }
}

impl Daemon {
    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has said.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until it has said something.
    pub fn wait_for_log(&self, words: &str) {
        let deadline = Instant::now() + Duration::from_secs(8) * patience();
        while !self.log().contains(words) {
            assert!(Instant::now() < deadline, "never said {words:?}:\n{}", self.log());
            pause();
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// What it answers to a question.
    pub fn get(&self, target: &str) -> Value {
        let (status, body) = ask(&self.socket, "GET", target).expect("no answer");
        assert_eq!(status, 200, "{target}: {body}");
        body
    }

    /// What it answers to a wish: status and document.
    pub fn post(&self, target: &str) -> (u16, Value) {
        ask(&self.socket, "POST", target).expect("no answer")
    }

    /// Waits until an answer is as wanted.
    pub fn wait_for(&self, target: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(8) * patience();
        loop {
            let last = ask(&self.socket, "GET", target).map(|(_, body)| body);
            if let Some(body) = last.as_ref().filter(|body| wanted(body)) {
                return body.clone();
            }
            assert!(Instant::now() < deadline, "never {what}: {last:?}\n{}", self.log());
            pause();
        }
    }

    /// How sampling stands: `running`, `released`, …
    pub fn wait_for_sampling(&self, state: &str) -> Value {
        self.wait_for("/v1/health", state, |health| health["sampling"]["state"] == state)
    }

    /// The sampler, once it runs.
    pub fn sampler(&self) -> u32 {
        let mut found = Vec::new();
        until("one sampler", || {
            found = children(self.pid());
            found.len() == 1
        });
        found[0]
    }

    /// Waits for its end, and says how it ended and how long that took.
    pub fn wait_for_end(&mut self) -> (ExitStatus, Duration) {
        let begin = Instant::now();
        let mut status = None;
        until("the end of the daemon", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        (status.unwrap(), begin.elapsed())
    }

    /// Ends it as systemd does.
    pub fn end(mut self) -> (ExitStatus, Duration) {
        self.signal(Signal::TERM);
        self.wait_for_end()
    }

    /// Since it was started.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A sampler that a test has stopped would never see its parent's end.
        for sampler in children(self.child.id()) {
            let pid = Pid::from_raw(i32::try_from(sampler).unwrap()).unwrap();
            let _ = kill_process(pid, Signal::CONT);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One question over the socket: status and document.
fn ask(socket: &Path, method: &str, target: &str) -> Option<(u16, Value)> {
    let answer = running_daemon::ask(socket, method, target, "application/json").ok()?;
    Some((answer.status, serde_json::from_slice(&answer.body).unwrap_or(Value::Null)))
}
