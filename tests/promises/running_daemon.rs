//! A daemon on a stand-in box, with folders of its own, and the questions that a test asks it.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::daemon_home::Home;
use crate::gpu_box::GpuBox;
use crate::waiting::{children, patience, pause, until};

/// A running daemon; ended when it is dropped.
pub struct Daemon {
    pub child: Child,
    folder: Arc<tempfile::TempDir>,
    state: PathBuf,
    socket: PathBuf,
    log: Arc<Mutex<String>>,
    started: Instant,
    _box: Arc<tempfile::TempDir>,
}

/// An answer over HTTP.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&self.body)))
    }
}

impl Daemon {
    /// Starts one and waits until its socket answers.
    pub fn start(gpu_box: &GpuBox, arguments: &[&str]) -> Self {
        Home::new().start(gpu_box, arguments)
    }

    /// Starts one in the folders of another that has ended.
    pub fn again(gpu_box: &GpuBox, folder: Arc<tempfile::TempDir>, arguments: &[&str]) -> Self {
        Home::at(folder).start(gpu_box, arguments)
    }

    /// Starts one and waits for nothing.
    pub fn launch(gpu_box: &GpuBox, folder: Arc<tempfile::TempDir>, arguments: &[&str]) -> Self {
        let home = Home::at(folder);
        home.spawn(gpu_box, &mut home.command(gpu_box, arguments))
    }

    /// Starts one with a command that was made for these folders.
    pub fn spawn(
        gpu_box: &GpuBox,
        command: &mut Command,
        folder: Arc<tempfile::TempDir>,
        state: &Path,
        socket: &Path,
    ) -> Self {
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
        let (state, socket) = (state.into(), socket.into());
        Self { child, folder, state, socket, log, started, _box: gpu_box.keep() }
    }

    /// Whether its socket answers.
    pub fn answers(&self) -> bool {
        ask(&self.socket, "GET", "/v1/health", "*/*").is_ok_and(|answer| answer.status == 200)
    }

    /// The folder that holds its socket and its state.
    pub fn folder(&self) -> Arc<tempfile::TempDir> {
        Arc::clone(&self.folder)
    }

    pub fn socket(&self) -> PathBuf {
        self.socket.clone()
    }

    pub fn store(&self) -> PathBuf {
        self.state.join("infertop.db")
    }

    /// What it has written to standard error so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Asks for something; one connection a question.
    pub fn ask(&self, method: &str, target: &str, accept: &str) -> Answer {
        ask(&self.socket(), method, target, accept).unwrap_or_else(|why| {
            panic!("{method} {target}: {why}\n{}", self.log());
        })
    }

    pub fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, "application/json")
    }

    /// An answer that must be there, as JSON.
    pub fn json(&self, target: &str) -> Value {
        let answer = self.get(target);
        assert_eq!(answer.status, 200, "{target}: {}", String::from_utf8_lossy(&answer.body));
        answer.json()
    }

    /// Waits until so many snapshots have come.
    pub fn until_number(&self, number: u64) {
        until("so many snapshots", || {
            self.json("/v1/health")["number"].as_u64().is_some_and(|now| now >= number)
        });
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has said something.
    pub fn wait_for_log(&self, words: &str) {
        let deadline = Instant::now() + Duration::from_secs(8) * patience();
        while !self.log().contains(words) {
            assert!(Instant::now() < deadline, "never said {words:?}:\n{}", self.log());
            pause();
        }
    }

    /// What it answers to a wish: status and document.
    pub fn post(&self, target: &str) -> (u16, Value) {
        {
            let answer = self.ask("POST", target, "application/json");
            (answer.status, serde_json::from_slice(&answer.body).unwrap_or(Value::Null))
        }
    }

    /// Waits until an answer is as wanted.
    pub fn wait_for(&self, target: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(8) * patience();
        loop {
            let answer = ask(&self.socket, "GET", target, "application/json").ok();
            let last = answer.and_then(|answer| serde_json::from_slice::<Value>(&answer.body).ok());
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
    pub fn end_timed(mut self) -> (ExitStatus, Duration) {
        self.signal(Signal::TERM);
        self.wait_for_end()
    }

    /// Since it was started.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Asks it to end and waits.
    pub fn end(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait()
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.wait_for_end().0
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

/// One request over HTTP/1.1, and the whole answer.
pub fn ask(socket: &Path, method: &str, target: &str, accept: &str) -> std::io::Result<Answer> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(5) * patience()))?;
    write!(
        stream,
        "{method} {target} HTTP/1.1\r\nhost: infertop\r\naccept: {accept}\r\nconnection: close\r\n\
         content-length: 0\r\n\r\n"
    )?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Err(std::io::Error::other("the answer has no head"));
    };
    let body = bytes.split_off(at + 4);
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let status = head.split_ascii_whitespace().nth(1).and_then(|word| word.parse().ok());
    let body = if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        unchunk(&body)
    } else {
        body
    };
    Ok(Answer { status: status.unwrap_or(0), head, body })
}

fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(at) = rest.windows(2).position(|two| two == b"\r\n") {
        let length = std::str::from_utf8(&rest[..at]).unwrap();
        let length = usize::from_str_radix(length.trim(), 16).unwrap();
        if length == 0 {
            break;
        }
        body.extend_from_slice(&rest[at + 2..at + 2 + length]);
        rest = &rest[at + 4 + length..];
    }
    body
}
