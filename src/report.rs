//! Text for people: the table of `once`, and errors.

use std::fmt::Write as _;
use std::io::Write as _;

use probes::finding::{Finding, Severity, Subject};
use probes::ledger::ledgers;
use probes::proc::Process;
use probes::reading::{Absence, Reading};
use probes::snapshot::{Health, Snapshot};
use probes::units;

/// The widest line.
const WIDTH: usize = 80;

/// Every GPU holds a few MiB for nobody; less than this reads as 0.0 GiB.
const WORTH_A_LINE_BYTES: u64 = 64 << 20;

/// Prints to standard output; a reader that has left is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Prints an error with its causes to standard error.
pub(crate) fn complain(error: &anyhow::Error) {
    let mut text = format!("error: {error}");
    for cause in error.chain().skip(1) {
        let _ = write!(text, "\n  found: {cause}");
    }
    // Nobody is left to be told that nobody listens.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Tells how something goes, on standard error.
pub(crate) fn say(words: &str) {
    // Nobody is left to be told that nobody listens.
    let _ = writeln!(std::io::stderr().lock(), "{words}");
}

/// The snapshot as a table of at most 80 columns.
pub(crate) fn table(snapshot: &Snapshot) -> String {
    let mut lines = headline(snapshot);
    let findings = playbooks::judge(snapshot);
    if !findings.is_empty() {
        lines.push(String::new());
    }
    lines.extend(findings.iter().flat_map(finding));
    if !snapshot.gpus.is_empty() {
        lines.push(String::new());
        lines.extend(gpus(snapshot));
    }
    let holders = holders(snapshot);
    if !holders.is_empty() {
        lines.push(String::new());
        lines.extend(holders);
    }
    let mut text = String::new();
    for line in lines {
        text.push_str(&cut(line.trim_end(), WIDTH));
        text.push('\n');
    }
    text
}

/// The box in one line; what does not fit any more goes to a second one.
fn headline(snapshot: &Snapshot) -> Vec<String> {
    let host = &snapshot.host;
    let driver = &snapshot.driver;
    let mut parts = vec![host.name.value().map_or("this host", String::as_str).to_string()];
    let on_bus = driver.pci_gpus.value().map_or(0, Vec::len);
    parts.push(match snapshot.gpus.iter().filter(|gpu| gpu.mig.is_none()).count() {
        0 if on_bus > 0 => format!("{on_bus} on the bus, none answers"),
        0 => "no GPU".into(),
        1 => "1 GPU".into(),
        count => format!("{count} GPUs"),
    });
    if let Some(version) = driver.version.value().or(driver.module_version.value()) {
        parts.push(format!("driver {version}"));
    }
    if let Some(cuda) = driver.cuda_version.value() {
        parts.push(format!("CUDA {cuda}"));
    }
    if let (Some(total), Some(free)) =
        (host.memory_total_bytes.get(), host.memory_available_bytes.get())
    {
        let used = units::gib(total.saturating_sub(free));
        parts.push(format!("memory {used} of {} GiB", units::gib(total)));
    }
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if line.chars().count() + part.chars().count() + 3 <= WIDTH => {
                line.push_str(" · ");
                line.push_str(&part);
            }
            _ => lines.push(part),
        }
    }
    lines
}

fn finding(finding: &Finding) -> Vec<String> {
    let word = match finding.severity {
        Severity::Critical => "CRITICAL",
        Severity::Warning => "WARNING",
        Severity::Info => "INFO",
    };
    let subject = match finding.subject {
        Subject::Box => String::new(),
        Subject::Gpu(index) => format!("GPU {index}: "),
        Subject::Process(pid) => format!("process {pid}: "),
    };
    let mut lines = wrap(&format!("{word}  {subject}{}  [{}]", finding.title, finding.cause), 10);
    for evidence in &finding.evidence {
        lines.extend(wrap(&format!("  found: {}", printable(evidence)), 9));
    }
    lines.extend(wrap(&format!("  help:  {}", finding.help), 9));
    lines
}

/// `–` for what is not supported, `?` for what should be known.
fn cell<T>(reading: &Reading<T>, write: impl FnOnce(&T) -> String) -> String {
    match reading {
        Reading::Value(value) => write(value),
        Reading::Absent(_) if reading.is_final() => "–".into(),
        Reading::Absent(_) => "?".into(),
    }
}

fn gib(reading: &Reading<u64>) -> String {
    cell(reading, |bytes| format!("{}G", units::gib(*bytes)))
}

fn gpus(snapshot: &Snapshot) -> Vec<String> {
    let room = WIDTH - 50 - label_width(snapshot);
    let row = |label: &str, name: &str, cells: [String; 8]| {
        let [busy, total, reserved, held, free, watts, celsius, mhz] = cells;
        format!(
            "{label:<width$} {name:<room$} {busy:>4} {total:>6} {reserved:>5} {held:>6} {free:>6} \
             {watts:>4} {celsius:>3} {mhz:>5}",
            width = label_width(snapshot),
        )
    };
    let heads = ["BUSY", "TOTAL", "RSRVD", "HELD", "FREE", "WATT", "°C", "MHZ"];
    let mut lines = vec![row("GPU", "NAME", heads.map(Into::into))];
    for gpu in &snapshot.gpus {
        let cells = [
            cell(&gpu.utilization.gpu_ratio, |ratio| units::percent(*ratio)),
            gib(&gpu.memory.total_bytes),
            gib(&gpu.memory.reserved_bytes),
            gib(&gpu.memory.used_bytes),
            gib(&gpu.memory.free_bytes),
            cell(&gpu.power.draw_watts, |watts| format!("{watts:.0}")),
            cell(&gpu.temperature.gpu_celsius, ToString::to_string),
            cell(&gpu.clocks.sm_mhz, ToString::to_string),
        ];
        lines.push(row(&gpu.label(), &cut(gpu.name.text(), room), cells));
        let known = if gpu.memory.read.at_ms > 0 { "; last known values" } else { "" };
        match &gpu.health {
            Health::NoAnswer { call, .. } => {
                lines.extend(wrap(&format!("    no answer: {call} has not returned{known}"), 6));
            }
            Health::Lost { answer, .. } | Health::Failing { answer, .. } => {
                lines.extend(wrap(&format!("    {answer}{known}"), 6));
            }
            Health::Starting | Health::Answering => {}
        }
    }
    lines
}

/// Room for the longest name of a GPU or instance.
fn label_width(snapshot: &Snapshot) -> usize {
    snapshot.gpus.iter().map(|gpu| gpu.label().chars().count()).max().unwrap_or(0).max(3)
}

fn holders(snapshot: &Snapshot) -> Vec<String> {
    let width = label_width(snapshot);
    let row = |gpu: &str, pid: &str, held: &str, state: &str, user: &str, command: &str| {
        format!("{gpu:<width$} {pid:>8} {held:>7} {state:<5} {user:<9} {command}")
    };
    let mut lines = Vec::new();
    for (gpu, ledger) in snapshot.gpus.iter().zip(ledgers(snapshot)) {
        // The processes of an instance stand under the instance.
        if gpu.mig.is_none()
            && snapshot.gpus.iter().any(|g| g.index == gpu.index && g.mig.is_some())
        {
            continue;
        }
        let line = |process: &Process, held: &str| {
            row(
                &gpu.label(),
                &process.pid.to_string(),
                held,
                &cell(&process.state, Clone::clone),
                &cell(&process.user, |user| cut(user, 9)),
                &command(process),
            )
        };
        for holder in &ledger.holders {
            lines.push(line(&snapshot.processes[holder.process], &gib(&holder.bytes)));
        }
        if gpu.mig.is_none() {
            let open = |process: &&Process| {
                process.gpus.iter().any(|part| part.gpu_index == gpu.index && part.kind == "open")
            };
            lines.extend(
                snapshot.processes.iter().filter(open).map(|process| line(process, "open")),
            );
        }
        if let Some(bytes @ WORTH_A_LINE_BYTES..) = ledger.unattributed_bytes.get() {
            let held = format!("{}G", units::gib(bytes));
            lines.push(row(&gpu.label(), "–", &held, "", "", "held by nobody visible"));
        }
    }
    // Without a driver, those that have a device open are all that is known.
    if snapshot.gpus.is_empty() {
        for process in &snapshot.processes {
            let (pid, state) = (process.pid.to_string(), cell(&process.state, Clone::clone));
            let user = cell(&process.user, |user| cut(user, 9));
            lines.push(row("?", &pid, "open", &state, &user, &command(process)));
        }
        if lines.is_empty() {
            return lines;
        }
    }
    if lines.is_empty() {
        return vec!["no process uses a GPU".into()];
    }
    lines.insert(0, row("GPU", "PID", "HELD", "STATE", "USER", "COMMAND"));
    lines
}

/// The command; for a number that our `/proc` does not know, the reason.
fn command(process: &Process) -> String {
    match &process.exists {
        Reading::Absent(why) if *why != Absence::NotRead => format!("({why})"),
        _ => cell(&process.command, |command| printable(command)),
    }
}

/// Control characters of foreign text must not reach the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// At most so many characters; an ellipsis says that there were more.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_string();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Breaks a line between words, and a word that is longer than a line; what follows is indented.
fn wrap(text: &str, indent: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut width = 0;
    for word in text.split_inclusive(' ') {
        let mut rest: Vec<char> = word.chars().collect();
        let length = word.trim_end().chars().count();
        if width + length > WIDTH && width > indent {
            lines.push(" ".repeat(indent));
            width = indent;
        }
        while width + rest.len() > WIDTH && length > WIDTH - indent {
            let tail = rest.split_off(WIDTH - width);
            if let Some(line) = lines.last_mut() {
                line.extend(rest);
            }
            lines.push(" ".repeat(indent));
            width = indent;
            rest = tail;
        }
        width += rest.len();
        if let Some(line) = lines.last_mut() {
            line.extend(rest);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_advice_is_broken_between_words_and_keeps_to_80_columns() {
        let text = "  help:  ".to_string() + &"stop every process first ".repeat(8);
        let lines = wrap(&text, 9);
        assert!(lines.len() > 2);
        assert!(lines.iter().all(|line| line.trim_end().chars().count() <= WIDTH), "{lines:?}");
        assert!(
            lines[1..]
                .iter()
                .all(|line| line.starts_with("         ") && !line[9..].starts_with(' '))
        );
    }

    #[test]
    fn a_path_longer_than_a_line_is_broken_and_not_cut() {
        let path = "/very/long".repeat(20);
        let lines = wrap(&format!("  found: library {path}"), 9);
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{lines:?}");
        let joined: String = lines.iter().map(|line| line.trim_start()).collect();
        assert!(joined.contains(&path));
    }

    #[test]
    fn unsupported_and_unknown_look_different() {
        assert_eq!(cell(&Reading::<u32>::UNSUPPORTED, ToString::to_string), "–");
        assert_eq!(cell(&Reading::<u32>::default(), ToString::to_string), "?");
    }
}
