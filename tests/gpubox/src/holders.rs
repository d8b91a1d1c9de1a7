//! Who holds memory through the CUDA stand-in: one mapped file per process in
//! `holders/<pid>` of the state directory, written by that process, read by the NVML stand-in.
//!
//! ```text
//! 0   magic    8   pid     16  start time (field 22 of /proc/PID/stat)   24  found dead at, ms
//! 64  64 GPUs of 16 bytes: contexts, bytes
//! ```
//!
//! A file whose process is gone, or whose pid belongs to another process by now, is removed,
//! after `dead_pid_seconds` if the scenario wants the memory of the dead to linger.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::mapped::Mapped;

const MAGIC: u64 = u64::from_le_bytes(*b"gpuhold1");
const GPUS: usize = 64;
const FIRST: usize = 64;
const LEN: usize = 4096;

/// One process's file.
#[derive(Debug)]
pub struct Holder {
    pid: u32,
    path: PathBuf,
    words: Mapped,
}

impl Holder {
    /// Creates this process's own file, replacing what an earlier process of this pid left.
    pub fn create(state: &Path) -> std::io::Result<Self> {
        let pid = std::process::id();
        let path = state.join("holders").join(pid.to_string());
        let _ = std::fs::remove_file(&path);
        // Filled in under a name nobody lists, then renamed: a reader never sees half a header.
        let fresh = state.join("holders").join(format!(".{pid}"));
        let words = Mapped::open(&fresh, LEN)?;
        words.word(0).store(MAGIC, Ordering::Relaxed);
        words.word(8).store(u64::from(pid), Ordering::Relaxed);
        words.word(16).store(start_time(pid).unwrap_or(0), Ordering::Relaxed);
        std::fs::rename(&fresh, &path)?;
        Ok(Self { pid, path, words })
    }

    fn open(path: PathBuf) -> Option<Self> {
        let pid = path.file_name()?.to_str()?.parse().ok()?;
        let words = Mapped::open(&path, LEN).ok()?;
        (words.word(0).load(Ordering::Relaxed) == MAGIC).then_some(Self { pid, path, words })
    }

    /// Whose it is.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Contexts on a GPU.
    pub fn contexts(&self, gpu: usize) -> &AtomicU64 {
        self.words.word(FIRST + gpu.min(GPUS - 1) * 16)
    }

    /// Bytes on a GPU.
    pub fn bytes(&self, gpu: usize) -> &AtomicU64 {
        self.words.word(FIRST + gpu.min(GPUS - 1) * 16 + 8)
    }

    /// Whether the driver would list it there.
    pub fn is_listed(&self, gpu: usize) -> bool {
        self.contexts(gpu).load(Ordering::Relaxed) > 0
            || self.bytes(gpu).load(Ordering::Relaxed) > 0
    }

    /// Removes the file, at an orderly exit.
    pub fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }

    fn is_alive(&self) -> bool {
        start_time(self.pid) == Some(self.words.word(16).load(Ordering::Relaxed))
    }

    fn dead_for(&self) -> Duration {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ms = u64::try_from(now.as_millis()).unwrap_or(0);
        let found = self.words.word(24);
        match found.compare_exchange(0, now_ms, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Duration::ZERO,
            Err(since) => Duration::from_millis(now_ms.saturating_sub(since)),
        }
    }
}

/// Field 22 of `/proc/PID/stat`; `None` for a process that is gone or a zombie, whose memory a
/// driver has freed.
pub fn start_time(pid: u32) -> Option<u64> {
    // A process's name need not be UTF-8.
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// The holders of a box, scanned when somebody came or went, and every 100 ms while there are
/// any, because the killed do not say goodbye.
#[derive(Debug)]
pub struct Holders {
    directory: PathBuf,
    linger: Duration,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    epoch: Option<u64>,
    at: Option<Instant>,
    list: Arc<Vec<Arc<Holder>>>,
}

impl Holders {
    /// In the state directory.
    pub fn below(state: &Path, linger_seconds: f64) -> Self {
        Self {
            directory: state.join("holders"),
            linger: Duration::try_from_secs_f64(linger_seconds).unwrap_or_default(),
            seen: Mutex::default(),
        }
    }

    /// Those listed now.
    pub fn list(&self, epoch: u64) -> Arc<Vec<Arc<Holder>>> {
        let Ok(mut seen) = self.seen.lock() else {
            return Arc::default();
        };
        let recent = seen.at.is_some_and(|at| at.elapsed() < Duration::from_millis(100));
        if seen.epoch == Some(epoch) && (seen.list.is_empty() || recent) {
            return seen.list.clone();
        }
        let mut list = Vec::new();
        for entry in std::fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let known = seen.list.iter().find(|holder| holder.path == path && holder.is_alive());
            let Some(holder) = known.cloned().or_else(|| Holder::open(path).map(Arc::new)) else {
                continue;
            };
            if holder.is_alive() || holder.dead_for() < self.linger {
                list.push(holder);
            } else {
                holder.remove();
            }
        }
        list.sort_by_key(|holder| holder.pid);
        *seen = Seen { epoch: Some(epoch), at: Some(Instant::now()), list: Arc::new(list) };
        seen.list.clone()
    }
}
