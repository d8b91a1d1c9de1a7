//! How things are called on every panel: who a process is, in what state, which GPUs, how bad.

use std::fmt::Write;

use probes::finding::{Finding, Severity, Subject};
use probes::proc::Process;
use probes::reading::Reading;
use probes::snapshot::{Gpu, Health, Snapshot, Stamp};
use probes::units;

use crate::text;
use crate::value::Value;
use crate::view::View;

/// Names a process for good: pid and start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessKey {
    /// Its number.
    pub(crate) pid: u32,
    /// Its start in clock ticks, where known.
    pub(crate) start_ticks: Option<u64>,
}

impl ProcessKey {
    /// The key of a process.
    pub(crate) fn of(process: &Process) -> Self {
        Self { pid: process.pid, start_ticks: process.start_ticks.get() }
    }

    /// The process in a snapshot, if it is still the same one.
    pub(crate) fn find(self, snapshot: &Snapshot) -> Option<&Process> {
        snapshot.processes.iter().find(|process| Self::of(process) == self)
    }
}

/// What names a GPU over time.
pub(crate) fn gpu_key(gpu: &Gpu) -> String {
    gpu.uuid.value().cloned().unwrap_or_else(|| gpu.label())
}

/// What it means that the driver lists a process which is not here.
pub(crate) fn not_here(process: &Process) -> String {
    let why = process.exists.absence().map(ToString::to_string).unwrap_or_default();
    format!("the driver lists it; {why}")
}

/// Whether nothing is known of a process but what the driver says: it has ended, or lives where this
/// `/proc` does not reach.
pub(crate) fn is_unseen(process: &Process) -> bool {
    process.command.value().is_none() && process.comm.value().is_none()
}

/// Who a process is: what it serves as, on which ports, which model; else its command. A worker
/// says neither port nor model; the server above it does.
pub(crate) fn who(snapshot: &Snapshot, process: &Process) -> String {
    if process.is_gone() && process.command.value().is_none() {
        return "no such process here".into();
    }
    if is_unseen(process) {
        return "not to be seen from here".into();
    }
    let mut out = process.engine.text().to_string();
    let command = short_command(process);
    if process.engine.value().is_none() {
        let ports = ports(process);
        return if ports.is_empty() { command } else { format!("{command} {ports}") };
    }
    let above = || {
        process.ancestors.iter().filter_map(|ancestor| {
            snapshot
                .processes
                .iter()
                .find(|other| other.pid == ancestor.pid && other.engine.value().is_some())
        })
    };
    let own = ports(process);
    let served =
        if own.is_empty() { above().map(ports).find(|ports| !ports.is_empty()) } else { Some(own) };
    if let Some(ports) = served {
        out.push(' ');
        out.push_str(&ports);
    }
    let named = model(&command)
        .map(String::from)
        .or_else(|| above().find_map(|other| model(&short_command(other)).map(String::from)));
    if let Some(model) = named {
        out.push(' ');
        out.push_str(&model);
    } else if !command.contains("::") {
        // `VLLM::EngineCore` says what the engine's name has said.
        out.push(' ');
        out.push_str(&command);
    }
    out
}

/// The first ports that a process listens on: `:8000 :8001`.
fn ports(process: &Process) -> String {
    let ports = process.listening_ports.value().into_iter().flatten().take(2);
    ports.map(|port| format!(":{port}")).collect::<Vec<_>>().join(" ")
}

/// The model that a server's command names, without its owner or folder.
fn model(command: &str) -> Option<&str> {
    let words: Vec<&str> = command.split(' ').collect();
    // Of an interpreter `-m` names a module, unless a script or module stands before it.
    let mut is_module = words[0].starts_with("python");
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).copied();
        let named = match *word {
            "-m" if is_module => None,
            "serve" | "api_server" | "--model" | "--model-path" | "--model-id" | "-m" => next,
            _ if word.rsplit('/').next() == Some("trtllm-serve") => next,
            _ => word.strip_prefix("--model=").or_else(|| word.strip_prefix("--model-path=")),
        };
        is_module &= at == 0 || (word.starts_with('-') && *word != "-m");
        // The word of a sub-command can stand between.
        let is_name = |name: &&str| {
            !name.is_empty() && !name.starts_with('-') && !["serve", "api_server"].contains(name)
        };
        if let Some(name) = named.filter(is_name) {
            return name.trim_end_matches('/').rsplit('/').next();
        }
    }
    None
}

/// The command without the folder of its program.
pub(crate) fn short_command(process: &Process) -> String {
    let command = process.command.value().or(process.comm.value()).map_or("?", String::as_str);
    let (program, rest) = command.split_once(' ').unwrap_or((command, ""));
    let name = program.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(program);
    if rest.is_empty() { name.into() } else { format!("{name} {rest}") }
}

/// Where a process lives, by the best name that is known: its container's, its pod, the container's
/// number, the Slurm job, the systemd unit. The unit comes last since each of the others has one too,
/// whose name says less: a session, a step of a job.
pub(crate) fn place(process: &Process) -> Option<String> {
    let number = |place: &String| {
        let number = place.split_once(' ').map_or(place.as_str(), |(_, number)| number);
        number.to_string()
    };
    let bare = |unit: &String| {
        let bare = unit.strip_suffix(".service").or_else(|| unit.strip_suffix(".scope"));
        bare.unwrap_or(unit).to_string()
    };
    let name = process.container_name.value().cloned();
    name.or_else(|| process.pod.value().map(|pod| format!("pod {pod}")))
        .or_else(|| process.container.value().map(number))
        .or_else(|| process.slurm_job.value().map(|job| format!("slurm {job}")))
        .or_else(|| process.unit.value().map(bare))
        .filter(|place| !place.is_empty())
}

/// User and place in one cell. Where it gets narrow the namespace of a pod goes first: among the pods
/// of a box it tells least.
pub(crate) fn owner(process: &Process, columns: u16) -> String {
    let user = process.user.value().map_or("?", String::as_str);
    let Some(place) = place(process) else { return user.into() };
    let user = text::fit(user, 8);
    let room = columns.saturating_sub(text::width(&user) + 1);
    let short = match place.split_once('/') {
        Some((_, rest)) if text::width(&place) > room && rest.contains('/') => rest,
        _ => place.as_str(),
    };
    format!("{user} {short}")
}

/// The state in words; with its age where being in it for long is bad.
pub(crate) fn state(process: &Process, now_ms: u64) -> String {
    if process.is_gone() {
        return "not here".into();
    }
    let Some(letter) = process.state.value() else { return "?".into() };
    let age = process
        .state_since_ms
        .get()
        .map(|since| format!(" {}", units::duration_short(now_ms.saturating_sub(since) / 1000)))
        .unwrap_or_default();
    match letter.as_str() {
        "R" => "running".into(),
        "S" | "I" => "sleeping".into(),
        "D" => format!("stuck D{age}"),
        "Z" => format!("zombie{age}"),
        "T" | "t" => format!("stopped{age}"),
        "X" | "x" => "dead".into(),
        other => other.into(),
    }
}

/// How bad a state is by itself.
pub(crate) fn state_severity(process: &Process, now_ms: u64) -> Option<Severity> {
    let age = process.state_since_ms.get().map(|since| now_ms.saturating_sub(since) / 1000);
    match process.state.text() {
        "Z" => Some(Severity::Warning),
        // A driver call or a page fault sleeps like this for moments.
        "D" if age.is_some_and(|age| age >= 5) => Some(Severity::Warning),
        _ => None,
    }
}

/// The numbers of the GPUs that a process is on, as short as they can be written: `0-3,7`.
pub(crate) fn gpus_of(process: &Process) -> String {
    let mut numbers: Vec<u32> = process.gpus.iter().map(|part| part.gpu_index).collect();
    numbers.sort_unstable();
    numbers.dedup();
    ranges(&numbers)
}

/// The largest share of a GPU's time that a process had.
pub(crate) fn busiest(process: &Process) -> Reading<f64> {
    let known = process.gpus.iter().filter_map(|part| part.sm_ratio.get()).reduce(f64::max);
    match (known, process.gpus.first()) {
        (Some(ratio), _) => ratio.into(),
        (None, Some(part)) => part.sm_ratio.clone(),
        (None, None) => Reading::UNSUPPORTED,
    }
}

/// How long a process has lived.
pub(crate) fn age(process: &Process, view: &View) -> Value {
    Value::of(&process.started_at_ms, |at| {
        units::duration_short(view.at_ms().saturating_sub(*at) / 1000)
    })
}

/// Sorted numbers as `0-3,7`.
pub(crate) fn ranges(numbers: &[u32]) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < numbers.len() {
        let mut end = at;
        while end + 1 < numbers.len() && numbers[end + 1] == numbers[end] + 1 {
            end += 1;
        }
        if !out.is_empty() {
            out.push(',');
        }
        match end - at {
            0 => out.push_str(&numbers[at].to_string()),
            1 => drop(write!(out, "{},{}", numbers[at], numbers[end])),
            _ => drop(write!(out, "{}-{}", numbers[at], numbers[end])),
        }
        at = end + 1;
    }
    out
}

/// The worst that is said of a process.
pub(crate) fn process_severity(view: &View, process: &Process) -> Option<Severity> {
    view.findings
        .iter()
        .filter(|finding| finding.subject == Subject::Process(process.pid))
        .map(|finding| finding.severity)
        .chain(state_severity(process, view.at_ms()))
        .max()
}

/// Whether a finding is about a GPU, or about a process on it.
pub(crate) fn concerns(view: &View, finding: &Finding, gpu: &Gpu) -> bool {
    match finding.subject {
        Subject::Gpu(index) => index == gpu.index,
        Subject::Process(pid) => view.snapshot.processes.iter().any(|process| {
            process.pid == pid && process.gpus.iter().any(|part| part.gpu_index == gpu.index)
        }),
        Subject::Box => false,
    }
}

/// The worst that is said of a GPU, or of a process on it.
pub(crate) fn gpu_severity(view: &View, gpu: &Gpu) -> Option<Severity> {
    let found = view
        .findings
        .iter()
        .filter(|finding| concerns(view, finding, gpu))
        .map(|finding| finding.severity);
    let health = match gpu.health {
        Health::Lost { .. } => Some(Severity::Critical),
        Health::NoAnswer { .. } | Health::Failing { .. } => Some(Severity::Warning),
        Health::Starting | Health::Answering => None,
    };
    found.chain(health).max().filter(|worst| *worst > Severity::Info)
}

/// Why a GPU's values are not from now, in words.
pub(crate) fn silence(gpu: &Gpu, now_ms: u64) -> Option<String> {
    let age = |since: u64| units::duration(now_ms.saturating_sub(since) / 1000);
    match &gpu.health {
        Health::Answering => None,
        Health::Starting => Some("first answers are on their way".into()),
        Health::NoAnswer { call, since_ms, .. } => {
            Some(format!("no answer for {} ({call})", age(*since_ms)))
        }
        Health::Lost { since_ms, answer } => Some(format!("lost for {}: {answer}", age(*since_ms))),
        Health::Failing { since_ms, answer, .. } => {
            Some(format!("fails for {}: {answer}", age(*since_ms)))
        }
    }
}

/// The same in a word or two, for where a figure would stand.
pub(crate) fn silence_short(gpu: &Gpu) -> Option<&'static str> {
    match gpu.health {
        Health::Answering | Health::Starting => None,
        Health::NoAnswer { .. } => Some("no answer"),
        Health::Lost { .. } => Some("lost"),
        Health::Failing { .. } => Some("fails"),
    }
}

/// What the values of a GPU that does not answer are worth, to be put behind why it is silent.
pub(crate) fn standing(gpu: &Gpu) -> &'static str {
    if gpu.health == Health::Starting {
        ""
    } else if gpu.memory.total_bytes.value().is_some()
        || gpu.utilization.gpu_ratio.value().is_some()
        || gpu.temperature.gpu_celsius.value().is_some()
        || gpu.identity.minor.value().is_some()
    {
        "; values are the last known"
    } else {
        "; nothing was read before"
    }
}

/// State and kernel function of a stuck driver call's thread, where known.
pub(crate) fn stuck_in(gpu: &Gpu) -> Option<&str> {
    match &gpu.health {
        Health::NoAnswer { thread, .. } if !thread.is_empty() => Some(thread),
        _ => None,
    }
}

/// Whether a group of readings is from now: not older than three intervals and two seconds; slow
/// groups are read every 10 s.
pub(crate) fn is_fresh(view: &View, stamp: Stamp) -> bool {
    let allowed = 3 * view.feed.interval_ms.max(1000) / 1000 + 2;
    // Never read: the readings say so themselves.
    stamp.age_seconds(view.at_ms()).is_none_or(|age| age <= allowed.max(12))
}

/// What a finding is about, in a word or two: `GPU 3`, `pid 48233`, `box`.
pub(crate) fn subject(finding: &Finding) -> String {
    match finding.subject {
        Subject::Box => "box".into(),
        Subject::Gpu(index) => format!("GPU {index}"),
        Subject::Process(pid) => format!("pid {pid}"),
    }
}

/// A severity as a word.
pub(crate) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "CRITICAL",
        Severity::Warning => "WARNING",
        Severity::Info => "INFO",
    }
}

/// The GPUs of the box by name: `8×H100 80GB HBM3`, `4×A100 + 4×L40S`.
pub(crate) fn gpu_names(snapshot: &Snapshot) -> String {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for gpu in snapshot.gpus.iter().filter(|gpu| gpu.mig.is_none()) {
        let name = gpu.name.value().map_or("GPU", String::as_str);
        match names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => names.push((name, 1)),
        }
    }
    let parts: Vec<String> = names.iter().map(|(name, count)| format!("{count}×{name}")).collect();
    parts.join(" + ")
}

#[cfg(test)]
mod tests {
    use probes::reading::Absence;

    use super::*;

    #[test]
    fn numbers_in_a_row_are_written_as_a_range() {
        assert_eq!(ranges(&[0, 1, 2, 3, 7]), "0-3,7");
        assert_eq!(ranges(&[0, 1]), "0,1");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn a_place_is_called_by_the_name_that_says_most() {
        let known = |words: &str| Reading::from(words.to_string());
        let mut process = Process { user: known("root"), ..Process::default() };
        assert_eq!(owner(&process, 15), "root");
        process.unit = known("vllm.service");
        assert_eq!(owner(&process, 15), "root vllm");
        process.slurm_job = known("88123");
        process.unit = known("slurmstepd.scope");
        assert_eq!(owner(&process, 15), "root slurm 88123");
        process.container = known("docker 07ef0c662f68");
        assert_eq!(owner(&process, 15), "root 07ef0c662f68");
        process.container_name = known("llm/chat-6f9c7/server");
        assert_eq!(owner(&process, 30), "root llm/chat-6f9c7/server");
        assert_eq!(owner(&process, 15), "root chat-6f9c7/server");
    }

    #[test]
    fn the_model_is_read_from_the_ways_in_which_engines_are_started() {
        for command in [
            "python3 /usr/local/bin/vllm serve org/m --port 8000",
            "python3 -u -m vllm.entrypoints.openai.api_server --model org/m",
            "python3 -m sglang.launch_server --model-path org/m --tp 2",
            "python3 /usr/local/bin/trtllm-serve org/m --tp_size 8",
            "trtllm-serve serve /models/m/",
            "lmdeploy serve api_server org/m",
            "llama-server -m /models/m",
        ] {
            assert_eq!(model(command), Some("m"), "{command}");
        }
        assert_eq!(model("python3 -m mpi4py.futures.server"), None);
        assert_eq!(model("python3 -m sglang.launch_server --config c.yaml"), None);
        assert_eq!(model(""), None);
    }

    #[test]
    fn a_process_is_called_by_what_it_serves_as() {
        let process = Process {
            engine: "vLLM API server".to_string().into(),
            listening_ports: vec![8000].into(),
            command: "/opt/venv/bin/vllm serve Qwen/Qwen3-32B".to_string().into(),
            ..Process::default()
        };
        let worker = Process {
            engine: "vLLM worker".to_string().into(),
            command: "VLLM::Worker_TP0".to_string().into(),
            ancestors: vec![probes::proc::Ancestor { pid: 0, comm: "vllm".into() }],
            ..Process::default()
        };
        let snapshot = Snapshot { processes: vec![process], ..Snapshot::default() };
        assert_eq!(who(&snapshot, &snapshot.processes[0]), "vLLM API server :8000 Qwen3-32B");
        assert_eq!(who(&snapshot, &worker), "vLLM worker :8000 Qwen3-32B");
        let why = Absence::NotHere { what: "ended, or elsewhere".into() };
        let gone = Process { exists: Reading::Absent(why), ..Process::default() };
        assert_eq!(who(&snapshot, &gone), "no such process here");
    }
}
