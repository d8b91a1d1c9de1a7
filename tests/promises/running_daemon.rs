//! A daemon on a stand-in box, with folders of its own, and the questions that a test asks it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::gpu_box::GpuBox;
use crate::waiting::{patience, until};

/// A running daemon; ended when it is dropped.
pub struct Daemon {
    pub child: Child,
    folder: Arc<tempfile::TempDir>,
    log: Arc<Mutex<String>>,
    _state: Arc<tempfile::TempDir>,
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
        Self::again(gpu_box, Arc::new(tempfile::tempdir().unwrap()), arguments)
    }

    /// Starts one in the folders of another that has ended.
    pub fn again(gpu_box: &GpuBox, folder: Arc<tempfile::TempDir>, arguments: &[&str]) -> Self {
        let daemon = Self::launch(gpu_box, folder, arguments);
        until("an answer on the daemon's socket", || {
            UnixStream::connect(daemon.socket()).is_ok() && daemon.get("/v1/health").status == 200
        });
        daemon
    }

    /// Starts one and waits for nothing.
    pub fn launch(gpu_box: &GpuBox, folder: Arc<tempfile::TempDir>, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_infertop"))
            .arg("daemon")
            .args(gpu_box.arguments())
            .args(["--state".as_ref(), folder.path().join("state").as_os_str()])
            .args(["--socket".as_ref(), folder.path().join("infertop.sock").as_os_str()])
            .args(arguments)
            .env_clear()
            .envs(gpu_box.environment())
            .env("LANG", "C.UTF-8")
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log: Arc<Mutex<String>> = Arc::default();
        let (lines, kept) = (BufReader::new(child.stderr.take().unwrap()), Arc::clone(&log));
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let mut kept = kept.lock().unwrap();
                kept.push_str(&line);
                kept.push('\n');
            }
        });
        Self { child, folder, log, _state: gpu_box.keep() }
    }

    /// The folder that holds its socket and its state.
    pub fn folder(&self) -> Arc<tempfile::TempDir> {
        Arc::clone(&self.folder)
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("infertop.sock")
    }

    pub fn store(&self) -> PathBuf {
        self.folder.path().join("state/infertop.db")
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

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Asks it to end and waits.
    pub fn end(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait()
    }

    pub fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        until("the end of the daemon", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.signal(Signal::TERM);
            self.wait();
        }
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
