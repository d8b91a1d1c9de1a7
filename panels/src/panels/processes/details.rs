//! Everything about one process. What could not be read stands there with its reason.

use probes::finding::{Severity, Subject};
use probes::proc::{DeviceCount, Process};
use probes::reading::{Absence, Reading};
use probes::units;

use crate::canvas::Canvas;
use crate::facts::{self, Block};
use crate::list::Scroll;
use crate::value::Value;
use crate::view::View;
use crate::words::{self, ProcessKey};

/// Draws the page.
pub(super) fn draw(canvas: &mut Canvas, view: &View, key: ProcessKey, scroll: &mut Scroll) {
    let theme = canvas.theme;
    let Some(process) = key.find(view.snapshot) else {
        let words = format!("pid {} has ended, or its number is another process's now", key.pid);
        canvas.text(1, 1, &words, theme.dim());
        return;
    };
    let head = head(canvas.width(), view, process);
    let blocks = blocks(view, process);
    let rows = head.len() + usize::from(facts::rows(&blocks, canvas.width().saturating_sub(1)));
    let rows = u16::try_from(rows).unwrap_or(u16::MAX);
    super::super::paged(canvas, scroll, rows, |page| {
        let mut y = 0;
        for (line, severity) in &head {
            let style = severity.map_or(theme.strong(), |severity| theme.severity(severity));
            page.text(0, y, line, style);
            y += 1;
        }
        facts::draw(page, y, &blocks);
    });
}

/// Command and findings over the whole width.
fn head(width: u16, view: &View, process: &Process) -> Vec<(String, Option<Severity>)> {
    let command = match &process.command {
        Reading::Value(command) => command.clone(),
        Reading::Absent(_) if process.is_gone() => {
            format!("pid {}: {}", process.pid, words::not_here(process))
        }
        Reading::Absent(why) => format!("command not known: {why}"),
    };
    let mut out: Vec<(String, Option<Severity>)> =
        crate::text::wrap(&command, width.saturating_sub(2))
            .into_iter()
            .map(|line| (line, None))
            .collect();
    for finding in view.findings {
        if finding.subject == Subject::Process(process.pid) {
            let words = format!("{}  {}", words::severity(finding.severity), finding.title);
            out.push((words, Some(finding.severity)));
        }
    }
    out.push((String::new(), None));
    out
}

fn blocks(view: &View, process: &Process) -> Vec<Block> {
    if words::is_unseen(process) {
        // All that is known of it is what the driver says; the head says why.
        return vec![gpus(process)];
    }
    vec![
        identity(view, process),
        gpus(process),
        libraries(process),
        state(view, process),
        place(process),
        memory(process),
        family(view, process),
        devices("DEVICE FILES OPEN", &process.device_files),
        devices("DEVICE FILES MAPPED", &process.device_maps),
    ]
}

/// What a process may well be without: then it has none, and nothing is missing.
fn or_none(reading: &Reading<String>) -> Value {
    match reading {
        Reading::Absent(Absence::Unsupported) => Value::plain("none").quiet_if(true),
        other => Value::shown(other),
    }
}

fn identity(view: &View, process: &Process) -> Block {
    let mut block = Block::new("WHO");
    block.text("pid", process.pid.to_string());
    block.put("name", Value::shown(&process.comm));
    block.put("engine", or_none(&process.engine));
    block.put("user", Value::shown(&process.user));
    block.put("uid", Value::shown(&process.uid));
    block.put(
        "started",
        Value::of(&process.started_at_ms, |at| {
            let age = units::duration(view.at_ms().saturating_sub(*at) / 1000);
            let moment = units::moment(*at, view.at_ms(), view.utc_offset_seconds);
            format!("{moment}, {age} ago")
        }),
    );
    block.put("start ticks", Value::shown(&process.start_ticks));
    block.put(
        "listens on",
        Value::of(&process.listening_ports, |ports| {
            if ports.is_empty() {
                return "no TCP port".into();
            }
            ports.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }),
    );
    block
}

fn state(view: &View, process: &Process) -> Block {
    let mut block = Block::new("STATE").fresh(words::is_fresh(view, process.read));
    let here = match &process.exists {
        Reading::Value(_) => Value::plain("yes"),
        Reading::Absent(why) => Value::absent(why),
    };
    block.put("in /proc", here);
    let value = match &process.state {
        Reading::Value(_) => {
            let severity = words::state_severity(process, view.at_ms());
            let value = Value::plain(words::state(process, view.at_ms()));
            value.alarm_if(severity.is_some(), severity.unwrap_or_default())
        }
        Reading::Absent(why) => Value::absent(why),
    };
    block.put("state", value);
    block.put(
        "in it since",
        Value::of(&process.state_since_ms, |at| {
            units::moment(*at, view.at_ms(), view.utc_offset_seconds)
        }),
    );
    block.put("waits in", Value::shown(&process.wchan));
    block.put("CPU", Value::percent(&process.cpu_ratio));
    block.put(
        "CPU time",
        Value::of(&process.cpu_seconds_total, |seconds| format!("{seconds:.0} s")),
    );
    block.put("threads", Value::shown(&process.threads));
    block
}

fn gpus(process: &Process) -> Block {
    let mut block = Block::new("ON THE GPUS");
    for part in &process.gpus {
        let label = match &part.mig_uuid {
            Some(_) => format!("GPU {} (MIG)", part.gpu_index),
            None => format!("GPU {}", part.gpu_index),
        };
        let held = Value::bytes(&part.gpu_bytes);
        let value = match (&part.gpu_bytes, part.sm_ratio.get()) {
            (Reading::Absent(_), _) if part.kind == "open" => {
                Value::plain("device file open, no memory")
            }
            (Reading::Absent(_), _) => held,
            (_, Some(ratio)) => {
                Value::plain(format!("{}  {}  SM {}", held.text, part.kind, units::percent(ratio)))
            }
            _ => Value::plain(format!("{}  {}", held.text, part.kind)),
        };
        block.put(label, value);
    }
    if block.is_empty() {
        block.text("none", "uses none");
    }
    block
}

fn family(view: &View, process: &Process) -> Block {
    let mut block = Block::new("PARENTS");
    block.put("parent", Value::shown(&process.parent));
    for ancestor in &process.ancestors {
        block.text(ancestor.pid.to_string(), ancestor.comm.clone());
    }
    let children: Vec<String> = view
        .snapshot
        .processes
        .iter()
        .filter(|other| other.ancestors.iter().any(|ancestor| ancestor.pid == process.pid))
        .map(|other| format!("{} {}", other.pid, words::short_command(other)))
        .collect();
    let words = if children.is_empty() { "none with a GPU".into() } else { children.join(", ") };
    block.text("below it", words);
    block
}

fn place(process: &Process) -> Block {
    let mut block = Block::new("WHERE");
    block.put("container", or_none(&process.container));
    block.put("named", or_none(&process.container_name));
    block.put("pod", or_none(&process.pod));
    block.put("unit", or_none(&process.unit));
    block.put("Slurm job", or_none(&process.slurm_job));
    block.put("control group", Value::shown(&process.cgroup));
    block.put(
        "pids inwards",
        Value::of(&process.namespace_pids, |pids| {
            pids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" → ")
        }),
    );
    block
}

fn memory(process: &Process) -> Block {
    let mut block = Block::new("MAIN MEMORY");
    block.put("resident", Value::bytes(&process.rss_bytes));
    block.put("pinned for devices", Value::bytes(&process.pinned_bytes));
    block.put("locked", Value::bytes(&process.locked_bytes));
    block.put("swapped out", Value::bytes(&process.swap_bytes));
    block
}

fn devices(title: &str, list: &Reading<Vec<DeviceCount>>) -> Block {
    let mut block = Block::new(title);
    match list {
        Reading::Value(list) if list.is_empty() => block.text("none", ""),
        Reading::Value(list) => {
            for device in list {
                block.text(device.node.clone(), format!("{} times", device.count));
            }
        }
        Reading::Absent(why) => block.put("not known", Value::absent(why)),
    }
    block
}

fn libraries(process: &Process) -> Block {
    let mut block = Block::new("LIBRARIES");
    match &process.libraries {
        Reading::Value(list) if list.is_empty() => block.text("none", ""),
        Reading::Value(list) => {
            for library in list {
                let version =
                    if library.version.is_empty() { "no version" } else { &library.version };
                let words =
                    format!("{version}{}", if library.deleted { " (replaced)" } else { "" });
                let value = Value::plain(words).alarm_if(library.deleted, Severity::Warning);
                block.put(library.name.clone(), value);
            }
        }
        Reading::Absent(why) => block.put("not known", Value::absent(why)),
    }
    block
}
