//! A sampler child: started, listened to, told the pace, left behind when it cannot end.
//!
//! The child is never killed while it is in a driver call: closing its standard input asks it to
//! finish, and what a sick driver holds in an uninterruptible call cannot be ended by anyone.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use probes::snapshot::Snapshot;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::cli::Roots;
use crate::sampler::MOST_FRAME_BYTES;

/// How long a child that was asked to finish is waited for.
const GOODBYE: Duration = Duration::from_millis(120);

/// Snapshots that wait for a slow reader.
const WAITING: usize = 2;

/// Room for a whole snapshot.
const PIPE_BYTES: usize = 1 << 20;

/// So much of the end of what a sampler complains of is kept.
const KEPT_COMPLAINT_BYTES: usize = 4096;

/// A snapshot as it came.
pub(crate) struct Frame {
    /// As the sampler encoded it.
    pub(crate) bytes: Vec<u8>,
    /// Decoded.
    pub(crate) snapshot: Snapshot,
}

/// What is started as a sampler.
pub(crate) struct Program {
    /// The program.
    pub(crate) path: PathBuf,
    /// The file that it is to lock.
    pub(crate) lock: Option<PathBuf>,
}

/// A running sampler.
pub(crate) struct ChildFeed {
    child: Child,
    commands: Option<ChildStdin>,
    frames: mpsc::Receiver<anyhow::Result<Frame>>,
    last_words: JoinHandle<String>,
}

impl ChildFeed {
    /// Starts this program again as a sampler.
    pub(crate) fn start(roots: &Roots, interval: Duration) -> anyhow::Result<Self> {
        Self::start_program(&Program { path: own_program()?, lock: None }, roots, interval)
    }

    /// Starts a program as a sampler.
    pub(crate) fn start_program(
        program: &Program,
        roots: &Roots,
        interval: Duration,
    ) -> anyhow::Result<Self> {
        let lock = program.lock.iter().flat_map(|lock| ["--lock".as_ref(), lock.as_os_str()]);
        let mut child = Command::new(&program.path)
            .arg("sampler")
            .args(lock)
            .args(roots.arguments())
            .arg("--interval")
            .arg(format!("{}ms", interval.as_millis()))
            // One arena a thread would cost a MiB for each GPU.
            .env("MALLOC_ARENA_MAX", "1")
            // Only the daemon itself speaks for its service.
            .env_remove("NOTIFY_SOCKET")
            .env_remove("WATCHDOG_USEC")
            .env_remove("WATCHDOG_PID")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start the sampler {}", program.path.display()))?;
        let commands = child.stdin.take();
        let frames = child.stdout.take().context("the sampler has no output")?;
        // A snapshot of many GPUs is larger than a pipe; in one piece it wakes both sides once. A
        // kernel that refuses leaves it as it is.
        let _ = rustix::pipe::fcntl_setpipe_size(&frames, PIPE_BYTES);
        let complaints = child.stderr.take().context("the sampler has no error output")?;
        let (sender, received) = mpsc::channel(WAITING);
        tokio::spawn(listen(frames, sender));
        let last_words = tokio::spawn(hear(complaints));
        Ok(Self { child, commands, frames: received, last_words })
    }

    /// The next snapshot, or why there are no more. May be dropped half way.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Frame> {
        match self.frames.recv().await {
            Some(Ok(frame)) => Ok(frame),
            Some(Err(error)) => Err(error),
            None => {
                let how = match tokio::time::timeout(GOODBYE, self.child.wait()).await {
                    Ok(Ok(status)) => status.to_string(),
                    _ => "it closed its output".into(),
                };
                let words = tokio::time::timeout(GOODBYE, &mut self.last_words).await;
                let words = words.ok().and_then(Result::ok).unwrap_or_default();
                let colon = if words.is_empty() { "" } else { ": " };
                Err(anyhow::anyhow!("the sampler has ended: {how}{colon}{words}"))
            }
        }
    }

    /// Asks for another pace.
    pub(crate) async fn set_interval(&mut self, interval: Duration) {
        if let Some(commands) = &mut self.commands {
            let line = format!("interval {}\n", interval.as_millis());
            // A sampler that has ended is noticed by its frames.
            let _ = commands.write_all(line.as_bytes()).await;
        }
    }

    /// Its number, until it was waited for.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Asks the sampler to finish, and listens to it no more.
    pub(crate) fn ask_to_finish(&mut self) {
        self.commands = None;
        self.frames.close();
    }

    /// Waits until the sampler is gone, with every file that it had open. May be dropped half way.
    pub(crate) async fn gone(&mut self) {
        // Waiting for an own child fails only when somebody else has reaped it.
        let _ = self.child.wait().await;
    }

    /// Asks the sampler to finish and waits a moment; one that is stuck is left to the kernel.
    pub(crate) async fn finish(&mut self) {
        self.commands = None;
        if tokio::time::timeout(GOODBYE, self.child.wait()).await.is_err() {
            // In a call that does not return: the signal takes effect once the driver lets go.
            let _ = self.child.start_kill();
        }
    }
}

/// This program's file. One that was replaced while it runs, as by an upgrade, is called "deleted"
/// by the kernel; what stands in its place speaks the same.
pub(crate) fn own_program() -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe().context("cannot find the own program file")?;
    let replaced = path.to_str().and_then(|path| path.strip_suffix(" (deleted)"));
    Ok(replaced.map(PathBuf::from).filter(|_| !path.exists()).unwrap_or(path))
}

/// What the sampler, or the driver's library in it, said last on its error output; one line of it.
/// Reads to the end whatever is said, so that nobody waits for us.
async fn hear(mut complaints: ChildStderr) -> String {
    let mut tail: Vec<u8> = Vec::new();
    let mut chunk = [0; 1024];
    while let Ok(length @ 1..) = complaints.read(&mut chunk).await {
        tail.extend_from_slice(&chunk[..length]);
        tail.drain(..tail.len().saturating_sub(KEPT_COMPLAINT_BYTES));
    }
    let text = String::from_utf8_lossy(&tail);
    let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    last.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// Reads frames until the pipe ends or nobody wants them.
async fn listen(frames: ChildStdout, sender: mpsc::Sender<anyhow::Result<Frame>>) {
    let mut frames = BufReader::new(frames);
    while let Ok(length) = frames.read_u32_le().await {
        let frame = read_frame(&mut frames, length as usize).await;
        let is_last = frame.is_err();
        if sender.send(frame).await.is_err() || is_last {
            return;
        }
    }
}

async fn read_frame(frames: &mut BufReader<ChildStdout>, length: usize) -> anyhow::Result<Frame> {
    anyhow::ensure!(length <= MOST_FRAME_BYTES, "the sampler sent a frame of {length} bytes");
    let mut bytes = vec![0; length];
    frames.read_exact(&mut bytes).await.context("the sampler ended in a frame")?;
    let snapshot = Snapshot::decode(&bytes).context("cannot read the sampler's frame")?;
    Ok(Frame { bytes, snapshot })
}
