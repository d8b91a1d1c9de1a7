//! A scenario worked out once, at load: models laid under overrides, identities made up, every
//! GPU's processes found. Calls then only look things up.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

use serde::Deserialize as _;

use crate::spec::{self, Scenario};

/// The box.
#[derive(Debug)]
pub struct Machine {
    /// `[box]`.
    pub host: spec::Host,
    /// In index order.
    pub gpus: Vec<Gpu>,
    /// Every process entry, one per pid.
    pub processes: Vec<Process>,
    /// As written.
    pub faults: Vec<spec::Fault>,
    /// In order of time.
    pub reloads: Vec<spec::Reload>,
    /// In order of time.
    pub xids: Vec<spec::Xid>,
    /// By symbol.
    pub latency_us: BTreeMap<String, f64>,
    /// `[cuda]`.
    pub cuda: spec::Cuda,
}

/// A GPU.
#[derive(Debug)]
pub struct Gpu {
    /// Position.
    pub index: usize,
    /// All that was said about it.
    pub spec: spec::Gpu,
    /// `GPU-…`.
    pub uuid: String,
    /// Absent on consumer parts.
    pub serial: Option<String>,
    /// N of `/dev/nvidiaN`.
    pub minor: u32,
    /// Where it sits.
    pub bus: BusId,
    /// Socket.
    pub numa_node: u32,
    /// UUIDs of the MIG instances.
    pub mig_uuids: Vec<String>,
    /// Positions in `Machine::processes`.
    pub processes: Vec<usize>,
    /// Overrides by field number.
    pub fields: BTreeMap<u32, crate::Series>,
    /// Overrides by GPM metric.
    pub gpm_values: BTreeMap<u32, crate::Series>,
    /// Overrides by link.
    pub nvlink_errors: BTreeMap<u32, crate::Series>,
}

/// A PCI address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusId {
    /// Domain.
    pub domain: u32,
    /// Bus.
    pub bus: u32,
    /// Device.
    pub device: u32,
}

impl BusId {
    /// Reads `00000000:83:00.0` and its shorter spellings.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = |part: &str| u32::from_str_radix(part, 16).ok();
        let (address, _) = text.split_once('.').unwrap_or((text, "0"));
        let mut parts = address.rsplit(':');
        let device = hex(parts.next()?)?;
        let bus = hex(parts.next()?)?;
        let domain = parts.next().map_or(Some(0), hex)?;
        Some(Self { domain, bus, device })
    }
}

/// A process on one or more GPUs.
#[derive(Debug)]
pub struct Process {
    /// As written.
    pub spec: spec::Process,
    /// Where.
    pub gpus: Vec<usize>,
    source: Source,
    pid: AtomicU32,
    gone_since_ms: AtomicI64,
    checked_ms: AtomicI64,
    dead: AtomicBool,
}

#[derive(Debug)]
enum Source {
    Fixed,
    Line(usize),
    Bound,
}

impl Process {
    /// The pid, when it is listed at second `t`. A pid bound to a real process is listed only
    /// while that process lives (and for its `linger_seconds`), as a driver would have it.
    pub fn pid(&self, t: f64, lines: &PidLines) -> Option<u32> {
        if t < self.spec.start || self.spec.end.is_some_and(|end| t >= end) {
            return None;
        }
        let mut pid = self.pid.load(Ordering::Relaxed);
        if pid == 0
            && let Source::Line(line) = self.source
        {
            pid = lines.get(self.spec.pid_file.as_deref()?, line)?;
            self.pid.store(pid, Ordering::Relaxed);
        }
        if pid == 0 {
            return None;
        }
        if matches!(self.source, Source::Fixed) {
            return Some(pid);
        }
        let now_ms = (t * 1000.0) as i64;
        // One look at /proc per 200 ms: 64 processes must not cost the caller 64 stats a call.
        if now_ms - self.checked_ms.load(Ordering::Relaxed) >= 200 {
            self.checked_ms.store(now_ms, Ordering::Relaxed);
            // A zombie still has its directory, but the driver has taken its memory back.
            let dead = crate::start_time(pid).is_none();
            if dead && !self.dead.swap(dead, Ordering::Relaxed) {
                self.gone_since_ms.store(now_ms, Ordering::Relaxed);
            }
        }
        let gone_ms = now_ms - self.gone_since_ms.load(Ordering::Relaxed);
        let listed = !self.dead.load(Ordering::Relaxed)
            || (gone_ms as f64) < self.spec.linger_seconds * 1000.0;
        listed.then_some(pid)
    }
}

/// The pid files, read when first needed and again until they have the line wanted.
#[derive(Debug, Default)]
pub struct PidLines {
    root: PathBuf,
    files: Mutex<BTreeMap<PathBuf, Vec<u32>>>,
}

impl PidLines {
    /// Relative names are below `root`.
    pub fn below(root: &Path) -> Self {
        Self { root: root.to_owned(), files: Mutex::default() }
    }

    fn get(&self, name: &Path, line: usize) -> Option<u32> {
        let mut files = self.files.lock().ok()?;
        if let Some(pid) = files.get(name).and_then(|pids| pids.get(line)) {
            return Some(*pid);
        }
        let text = std::fs::read_to_string(self.root.join(name)).ok()?;
        let pids: Vec<u32> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let pid = pids.get(line).copied();
        files.insert(name.to_owned(), pids);
        pid
    }
}

/// Spreads a number over 64 bits (splitmix64); identities are made of it.
fn scramble(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn made_up_uuid(prefix: &str, seed: u64) -> String {
    let (high, low) = (scramble(seed), scramble(seed ^ 0xA5A5_0000));
    format!(
        "{prefix}-{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xFFFF,
        high & 0xFFFF,
        low >> 48,
        low & 0xFFFF_FFFF_FFFF
    )
}

/// Bus numbers as they are on eight-GPU boards.
const BUSES: [u32; 8] = [0x19, 0x3B, 0x4C, 0x5D, 0x9B, 0xBB, 0xCB, 0xDB];

/// The model rows, by name.
pub fn models() -> Result<toml::Table, String> {
    include_str!("models.toml").parse::<toml::Table>().map_err(|why| why.to_string())
}

impl Machine {
    /// Reads a scenario's text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let scenario: Scenario = toml::from_str(text).map_err(|why| why.to_string())?;
        let models = models()?;
        let mut specs = Vec::new();
        for written in &scenario.gpu {
            let name = written
                .get("model")
                .and_then(toml::Value::as_str)
                .ok_or("each [[gpu]] wants a model")?;
            let model = models.get(name).and_then(toml::Value::as_table).ok_or_else(|| {
                format!("no model {name:?}; there are {:?}", models.keys().collect::<Vec<_>>())
            })?;
            let mut merged = model.clone();
            lay_over(&mut merged, written);
            let spec = spec::Gpu::deserialize(merged).map_err(|why| format!("{name}: {why}"))?;
            for _ in 0..spec.count.unwrap_or(1) {
                specs.push(spec.clone());
            }
        }
        let total = specs.len();
        let host = scenario.host;
        let mut gpus = specs
            .into_iter()
            .enumerate()
            .map(|(index, spec)| resolve_gpu(index, total, spec, &host))
            .collect::<Result<Vec<_>, _>>()?;
        let mut processes = Vec::new();
        for entry in &scenario.process {
            resolve_process(entry, total, &mut processes)?;
        }
        for (position, process) in processes.iter().enumerate() {
            for gpu in &process.gpus {
                gpus[*gpu].processes.push(position);
            }
        }
        for fault in &scenario.fault {
            fault.gpu.as_ref().map_or(Ok(vec![]), |which| which.indices(total))?;
        }
        let (mut reloads, mut xids) = (scenario.reload, scenario.xid);
        reloads.sort_by(|a, b| a.at.total_cmp(&b.at));
        xids.sort_by(|a, b| a.at.total_cmp(&b.at));
        Ok(Self {
            host,
            gpus,
            processes,
            faults: scenario.fault,
            reloads,
            xids,
            latency_us: scenario.latency_us,
            cuda: scenario.cuda,
        })
    }

    /// How often the driver was loaded anew by second `t`, and whether it is there.
    pub fn driver_at(&self, t: f64) -> (usize, bool) {
        let begun = self.reloads.iter().filter(|reload| reload.at <= t).count();
        let gone = self.reloads[..begun].last().is_some_and(|last| t < last.at + last.gone_seconds);
        (begun, !gone)
    }

    /// When the driver was last loaded anew by second `t`; it came with the box otherwise.
    pub fn loaded_at(&self, t: f64) -> Option<f64> {
        let loaded = self.reloads.iter().map(|reload| reload.at + reload.gone_seconds);
        loaded.take_while(|loaded| *loaded <= t).last()
    }

    /// The version at second `t`.
    pub fn driver_version(&self, t: f64) -> &str {
        self.reloads
            .iter()
            .take_while(|reload| reload.at + reload.gone_seconds <= t)
            .filter_map(|reload| reload.new_version.as_deref())
            .last()
            .unwrap_or(&self.host.driver_version)
    }

    /// Microseconds for a symbol: the longest pattern that matches.
    pub fn latency_us(&self, symbol: &str) -> f64 {
        self.latency_us
            .iter()
            .filter(|(pattern, _)| pattern.as_str() == "default" || matches(pattern, symbol))
            .max_by_key(|(pattern, _)| if *pattern == "default" { 0 } else { pattern.len() })
            .map_or(0.0, |(_, us)| *us)
    }
}

/// Whether a symbol matches an exact name or a `prefix*`.
pub(crate) fn matches(pattern: &str, symbol: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => symbol.starts_with(prefix),
        None => pattern == symbol,
    }
}

/// Puts `over` onto `base`; small figure tables (`clocks`, `pcie`, …) are merged key by key,
/// values over time are not.
fn lay_over(base: &mut toml::Table, over: &toml::Table) {
    for (key, value) in over {
        match (base.get_mut(key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => {
                lay_over(below, above);
            }
            _ => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

fn numbered(
    name: &str,
    table: &BTreeMap<String, crate::Series>,
) -> Result<BTreeMap<u32, crate::Series>, String> {
    table
        .iter()
        .map(|(key, series)| match key.parse() {
            Ok(number) => Ok((number, series.clone())),
            Err(why) => Err(format!("{name}.{key}: {why}")),
        })
        .collect()
}

fn resolve_gpu(
    index: usize,
    total: usize,
    spec: spec::Gpu,
    host: &spec::Host,
) -> Result<Gpu, String> {
    let single = spec.count.unwrap_or(1) == 1;
    let seed = scramble(host.seed) ^ index as u64;
    let uuid = match &spec.uuid {
        Some(given) if single => given.clone(),
        _ => made_up_uuid("GPU", seed),
    };
    let serial = match &spec.serial {
        Some(given) if single => Some(given.clone()),
        _ => spec.datacenter.then(|| format!("165{:010}", scramble(seed ^ 7) % 10_000_000_000)),
    };
    let bus = match &spec.pci_bus_id {
        Some(given) if single => {
            BusId::parse(given).ok_or_else(|| format!("pci_bus_id = {given:?} is no address"))?
        }
        _ => {
            let domain = u32::try_from(index / BUSES.len()).unwrap_or(0);
            BusId { domain, bus: BUSES[index % BUSES.len()], device: 0 }
        }
    };
    let mig_uuids = spec
        .mig
        .iter()
        .enumerate()
        .map(|(slot, instance)| {
            let made = || made_up_uuid("MIG", seed ^ ((slot as u64 + 1) << 32));
            instance.uuid.clone().unwrap_or_else(made)
        })
        .collect();
    let position = u32::try_from(index).unwrap_or(0);
    Ok(Gpu {
        index,
        minor: spec.minor.filter(|_| single).unwrap_or(position),
        numa_node: (index * host.numa_nodes.max(1) as usize / total.max(1)) as u32,
        fields: numbered("fields", &spec.fields)?,
        gpm_values: numbered("gpm_values", &spec.gpm_values)?,
        nvlink_errors: numbered("nvlink_errors", &spec.nvlink_errors)?,
        processes: Vec::new(),
        uuid,
        serial,
        bus,
        mig_uuids,
        spec,
    })
}

fn resolve_process(
    entry: &spec::Process,
    gpus: usize,
    processes: &mut Vec<Process>,
) -> Result<(), String> {
    let wanted = entry.gpu.indices(gpus)?;
    let groups: Vec<Vec<usize>> = match entry.per_gpu {
        None => vec![wanted],
        Some(each) => wanted.iter().flat_map(|gpu| (0..each).map(|_| vec![*gpu])).collect(),
    };
    let from_environment: Option<Vec<u32>> = entry.pid_env.as_ref().map(|name| {
        let text = std::env::var(name).unwrap_or_default();
        text.split(',').filter_map(|word| word.trim().parse().ok()).collect()
    });
    for (number, gpus) in groups.into_iter().enumerate() {
        let (source, pid) = match (&entry.pid, &entry.pid_file, &from_environment) {
            (Some(spec::Pid::Number(first)), None, None) => {
                (Source::Fixed, first + u32::try_from(number).unwrap_or(0))
            }
            (Some(spec::Pid::Named(who)), None, None) => {
                let pid = match who.as_str() {
                    "self" => std::process::id(),
                    "parent" => std::os::unix::process::parent_id(),
                    other => return Err(format!("pid = {other:?}: a number, self or parent")),
                };
                (Source::Bound, pid)
            }
            (None, Some(_), None) => (Source::Line(number), 0),
            (None, None, Some(pids)) => {
                (Source::Bound, pids.get(number).copied().unwrap_or_default())
            }
            _ => return Err("a [[process]] wants one of pid, pid_file, pid_env".into()),
        };
        processes.push(Process {
            spec: entry.clone(),
            gpus,
            source,
            pid: AtomicU32::new(pid),
            gone_since_ms: AtomicI64::new(0),
            checked_ms: AtomicI64::new(i64::MIN / 2),
            dead: AtomicBool::new(false),
        });
    }
    Ok(())
}
