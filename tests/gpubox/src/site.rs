//! What all processes on a stand-in box share: when it came up, how often each symbol was called,
//! which processes hold memory. One mapped file in the state directory:
//!
//! ```text
//! 0    magic            8 bytes
//! 8    came up          nanoseconds of CLOCK_BOOTTIME, 0 while nobody called init
//! 16   holders epoch    raised when a CUDA process comes, goes or changes
//! 4096 512 slots of 128 bytes: hash, calls, name (NUL-padded)
//! ```
//!
//! All fields are little-endian words changed by atomic operations, so a killed process leaves
//! nothing half-written. Slots are claimed by compare-and-swap on the hash and never freed.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};

use crate::holders::Holders;
use crate::machine::{Machine, PidLines};
use crate::mapped::Mapped;

const MAGIC: u64 = u64::from_le_bytes(*b"gpubox01");
const SLOTS: usize = 512;
const SLOT: usize = 128;
const TABLE: usize = 4096;

/// The scenario and the state behind it, as this process sees them.
#[derive(Debug)]
pub struct Site {
    /// What the box is.
    pub machine: Machine,
    /// Pid files.
    pub pid_lines: PidLines,
    /// CUDA processes.
    pub holders: Holders,
    /// The state directory.
    pub state: PathBuf,
    shared: Mapped,
    frozen: Option<f64>,
    trace: Option<Mutex<File>>,
    // Held for as long as we live: tells the next user of a default directory that the clock runs.
    _lock: File,
}

static SITE: OnceLock<Result<Site, String>> = OnceLock::new();

/// The site the environment names, opened at the first call. A scenario that cannot be read is
/// an error whose words are in `error.txt` of the state directory, since a library may not print.
pub fn site() -> Option<&'static Site> {
    let opened = SITE.get_or_init(|| {
        // The library's own copy of std: a panic that the guard catches must not write to a
        // terminal that belongs to the caller.
        std::panic::set_hook(Box::new(|_| {}));
        let state = state_dir();
        let site = Site::open(&state);
        if let Err(why) = &site {
            let _ = std::fs::create_dir_all(&state);
            let _ = std::fs::write(state.join("error.txt"), why);
        }
        site
    });
    opened.as_ref().ok()
}

fn scenario_path() -> Option<PathBuf> {
    std::env::var_os("GPUBOX_SCENARIO").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// `GPUBOX_STATE`, or a directory below the temporary one named for the scenario and the user.
pub fn state_dir() -> PathBuf {
    if let Some(given) = std::env::var_os("GPUBOX_STATE").filter(|path| !path.is_empty()) {
        return PathBuf::from(given);
    }
    let scenario = scenario_path();
    let name = scenario
        .as_deref()
        .and_then(Path::file_stem)
        .map_or_else(|| "default".into(), |stem| stem.to_string_lossy().into_owned());
    std::env::temp_dir().join(format!("gpubox-{}-{name}", rustix::process::getuid().as_raw()))
}

impl Site {
    fn open(state: &Path) -> Result<Self, String> {
        let text = match scenario_path() {
            Some(path) => std::fs::read_to_string(&path)
                .map_err(|why| format!("cannot read scenario {}: {why}", path.display()))?,
            None => include_str!("../scenarios/eight-h100.toml").to_owned(),
        };
        let machine = Machine::parse(&text)?;
        std::fs::create_dir_all(state.join("holders"))
            .map_err(|why| format!("cannot make {}: {why}", state.display()))?;
        let shared = Mapped::open(&state.join("shared"), TABLE + SLOTS * SLOT)
            .map_err(|why| format!("cannot map {}/shared: {why}", state.display()))?;
        shared.word(0).store(MAGIC, Ordering::Relaxed);
        let lock = File::create(state.join("lock")).map_err(|why| why.to_string())?;
        let alone = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        // An explicit directory is one box for as long as it exists. The default one is found
        // again by the next run by hand, which should start at second 0.
        if alone && std::env::var_os("GPUBOX_STATE").is_none() {
            shared.word(8).store(0, Ordering::Relaxed);
        }
        let _ = flock(&lock, FlockOperation::NonBlockingLockShared);
        let trace = std::env::var_os("GPUBOX_TRACE")
            .and_then(|path| OpenOptions::new().create(true).append(true).open(path).ok())
            .map(Mutex::new);
        let frozen = std::env::var("GPUBOX_CLOCK")
            .ok()
            .and_then(|clock| clock.strip_prefix("frozen:").and_then(|at| at.parse().ok()));
        Ok(Self {
            holders: Holders::below(state, machine.cuda.dead_pid_seconds),
            pid_lines: PidLines::below(state),
            state: state.to_owned(),
            machine,
            shared,
            frozen,
            trace,
            _lock: lock,
        })
    }

    /// Starts the box's clock unless it runs.
    pub fn come_up(&self) {
        let now = boot_nanoseconds();
        let _ = self.shared.word(8).compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Seconds since the box came up.
    pub fn seconds(&self) -> f64 {
        if let Some(frozen) = self.frozen {
            return frozen;
        }
        match self.shared.word(8).load(Ordering::Relaxed) {
            0 => 0.0,
            since => boot_nanoseconds().saturating_sub(since) as f64 / 1e9,
        }
    }

    /// Whether the clock stands still.
    pub fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// Microseconds since 1970 at second `t`; on a frozen clock a fixed day, for goldens.
    pub fn unix_us(&self, t: f64) -> u64 {
        if self.frozen.is_some() {
            return 1_780_000_000_000_000 + (t * 1e6) as u64;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (now.as_micros() as f64 + (t - self.seconds()) * 1e6) as u64
    }

    /// Changes whenever a CUDA process came, went or changed its contexts.
    pub fn holders_epoch(&self) -> &AtomicU64 {
        self.shared.word(16)
    }

    /// The call counter of a symbol.
    pub fn counter(&self, symbol: &str) -> &AtomicU64 {
        let hash = hash(symbol);
        for probe in 0..SLOTS {
            let slot = (hash as usize).wrapping_add(probe) % SLOTS;
            let at = TABLE + slot * SLOT;
            let owner = self.shared.word(at);
            let claimed = owner.compare_exchange(0, hash, Ordering::AcqRel, Ordering::Acquire);
            if claimed == Ok(0) {
                self.shared.write_bytes(at + 16, symbol.as_bytes(), SLOT - 17);
            }
            if claimed == Ok(0) || claimed == Err(hash) {
                return self.shared.word(at + 8);
            }
        }
        // More symbols than slots: counted together, in the spare word.
        self.shared.word(24)
    }

    /// Appends a line to the trace, when one was asked for.
    pub fn trace(&self, symbol: &str, gpu: Option<usize>, took: Duration, code: u32) {
        if let Some(trace) = &self.trace {
            let gpu = gpu.map_or_else(|| "-".to_owned(), |gpu| gpu.to_string());
            let line = format!("{symbol} {gpu} {} {code}\n", took.as_micros());
            if let Ok(mut file) = trace.lock() {
                let _ = file.write_all(line.as_bytes());
            }
        }
    }

    /// Whether calls are traced.
    pub fn is_traced(&self) -> bool {
        self.trace.is_some()
    }
}

fn hash(name: &str) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    for byte in name.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    }
    hash.max(1)
}

fn boot_nanoseconds() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// How often each symbol was called so far, by all processes of a state directory.
pub fn call_counts(state: &Path) -> std::io::Result<Vec<(String, u64)>> {
    let bytes = std::fs::read(state.join("shared"))?;
    let word = |at: usize| {
        let bytes = bytes.get(at..at + 8).and_then(|slice| slice.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    };
    let mut counts = Vec::new();
    for slot in 0..SLOTS {
        let at = TABLE + slot * SLOT;
        if word(at) != 0 && word(at + 8) != 0 {
            let name = bytes.get(at + 16..at + SLOT).unwrap_or_default();
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            counts.push((String::from_utf8_lossy(name).into_owned(), word(at + 8)));
        }
    }
    counts.sort();
    Ok(counts)
}
