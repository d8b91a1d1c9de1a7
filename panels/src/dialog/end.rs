//! The question before a process is ended: what exactly is hit, what goes with it, what is not known.
//!
//! The pid must be typed; `y` is not enough. TERM is offered, KILL only as a second choice. Whoever
//! sends the signal checks pid and start time again: between this picture and the signal the number
//! may have passed to another process.

use crossterm::event::{KeyCode, KeyEvent};
use probes::finding::Severity;
use probes::proc::Process;
use probes::reading::Reading;
use probes::units;

use super::{Closing, Lines, Role};
use crate::input::{Input, Typed};
use crate::ui::{Action, Signal};
use crate::view::View;
use crate::words::{self, ProcessKey};

/// The keys of this window.
pub(super) const FOOT: &str = "type the pid, then enter   tab other signal   esc leaves";

/// Takes a press.
pub(super) fn key(
    event: KeyEvent,
    view: &View,
    process: ProcessKey,
    input: &mut Input,
    signal: &mut Signal,
) -> Closing {
    if event.code == KeyCode::Tab || event.code == KeyCode::BackTab {
        *signal = if *signal == Signal::Term { Signal::Kill } else { Signal::Term };
        input.text.clear();
        return Closing::Stay;
    }
    match input.key(event) {
        Typed::Dropped => Closing::Close,
        Typed::Done => {
            let typed = input.text.trim() == process.pid.to_string();
            match (typed, refusal(view, process), process.start_ticks) {
                (true, None, Some(start_ticks)) => {
                    Closing::Do(Action::Kill { pid: process.pid, start_ticks, signal: *signal })
                }
                _ => Closing::Stay,
            }
        }
        Typed::Text | Typed::Other => Closing::Stay,
    }
}

/// Why it cannot be ended from here.
fn refusal(view: &View, key: ProcessKey) -> Option<&'static str> {
    if view.travels() {
        return Some("this is a picture of the past, and nothing is sent from it");
    }
    let Some(process) = key.find(view.snapshot) else {
        return Some("this process has ended, or its pid is another's now");
    };
    if process.is_gone() {
        return Some(
            "the driver lists this pid and no such process is here: it lives in another PID \
             namespace or has ended; a signal from here would hit nothing or a stranger",
        );
    }
    if key.start_ticks.is_none() {
        return Some("its start time is not known, so nothing can tell that the pid is still its");
    }
    (key.pid <= 1).then_some("pid 1 is the init process")
}

/// Writes the question; false when it cannot be ended from here.
pub(super) fn lines(
    view: &View,
    key: ProcessKey,
    input: &Input,
    signal: Signal,
    lines: &mut Lines,
) -> bool {
    if let Some(process) = key.find(view.snapshot) {
        subject(view, process, lines);
    } else {
        lines.pair("pid", &key.pid.to_string());
    }
    lines.put(0, Role::Text, "");
    if let Some(why) = refusal(view, key) {
        lines.put(0, Role::Alarm(Severity::Warning), format!("● cannot be ended here: {why}"));
        return false;
    }
    let (first, second) = match signal {
        Signal::Term => ("›", " "),
        Signal::Kill => (" ", "›"),
    };
    lines.put(
        0,
        if signal == Signal::Term { Role::Strong } else { Role::Dim },
        format!("{first} TERM\tasks it to end: it can finish and clean up"),
    );
    lines.put(
        0,
        if signal == Signal::Kill { Role::Alarm(Severity::Warning) } else { Role::Dim },
        format!("{second} KILL\tends it at once; only when TERM did nothing for 10 s"),
    );
    lines.put(0, Role::Text, "");
    lines.put(0, Role::Strong, format!("type {} to confirm: {}▏", key.pid, input.text));
    if !input.text.is_empty() && !key.pid.to_string().starts_with(input.text.trim()) {
        lines.put(0, Role::Dim, "that is not its pid");
    }
    true
}

fn subject(view: &View, process: &Process, lines: &mut Lines) {
    let or_unknown = |reading: &Reading<String>| match reading {
        Reading::Value(words) => words.clone(),
        Reading::Absent(why) => format!("unknown: {why}"),
    };
    let started = match &process.started_at_ms {
        Reading::Value(at) => units::moment(*at, view.at_ms(), view.utc_offset_seconds),
        Reading::Absent(why) => format!("unknown: {why}"),
    };
    lines.put(0, Role::Strong, format!("pid\t{}, started {started}", process.pid));
    lines.pair("command", &or_unknown(&process.command));
    lines.pair("user", &or_unknown(&process.user));
    let container = match &process.container {
        Reading::Absent(probes::reading::Absence::Unsupported) => "none".into(),
        other => or_unknown(other),
    };
    let container = match process.container_name.value() {
        Some(name) => format!("{name} ({container})"),
        None => container,
    };
    lines.pair("container", &container);
    lines.pair("frees", &frees(process));
    let children: Vec<&Process> = view
        .snapshot
        .processes
        .iter()
        .filter(|other| {
            other.parent.get() == Some(process.pid)
                || other.ancestors.iter().any(|ancestor| ancestor.pid == process.pid)
        })
        .collect();
    let words = if children.is_empty() {
        "none that uses a GPU; others are not known".to_string()
    } else {
        let names: Vec<String> = children
            .iter()
            .map(|child| format!("{} {}", child.pid, words::short_command(child)))
            .collect();
        let count = children.len();
        let on_gpu = children.iter().filter(|child| !child.gpus.is_empty()).count();
        let which = if on_gpu == count {
            format!("{count} that use a GPU")
        } else {
            format!("{count}, {on_gpu} of them on a GPU")
        };
        format!("{which}, not signalled: {}", names.join("; "))
    };
    lines.pair("children", &words);
}

fn frees(process: &Process) -> String {
    let parts: Vec<String> = process
        .gpus
        .iter()
        .filter(|part| part.kind != "open")
        .map(|part| match part.gpu_bytes.get() {
            Some(bytes) => format!("{} on GPU {}", units::bytes(bytes), part.gpu_index),
            None => format!("an unknown amount on GPU {}", part.gpu_index),
        })
        .collect();
    if parts.is_empty() { "no GPU memory".into() } else { parts.join(", ") }
}
