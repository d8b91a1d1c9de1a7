//! Text for people: the table of `once`, and errors.

use std::fmt::Write as _;
use std::io::Write as _;

use probes::finding::Severity;
use probes::ledger::ledgers;
use probes::proc::Process;
use probes::reading::Reading;
use probes::snapshot::{Gpu, Health, Snapshot};
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

/// The snapshot as a table of at most 80 columns.
pub(crate) fn table(snapshot: &Snapshot) -> String {
    let mut lines = vec![headline(snapshot)];
    let findings = playbooks::judge(snapshot);
    if !findings.is_empty() {
        lines.push(String::new());
    }
    for finding in &findings {
        let word = match finding.severity {
            Severity::Critical => "CRITICAL",
            Severity::Warning => "WARNING",
            Severity::Info => "INFO",
        };
        let subject = match finding.subject {
            probes::finding::Subject::Box => String::new(),
            probes::finding::Subject::Gpu(index) => format!("GPU {index}: "),
            probes::finding::Subject::Process(pid) => format!("process {pid}: "),
        };
        lines.extend(wrap(&format!("{word}  {subject}{}  [{}]", finding.title, finding.cause), 10));
        for evidence in &finding.evidence {
            lines.extend(wrap(&format!("  found: {evidence}"), 9));
        }
        lines.extend(wrap(&format!("  help:  {}", finding.help), 9));
    }
    if !snapshot.gpus.is_empty() {
        lines.push(String::new());
        lines.push(format!(
            "{:<6} {:<20} {:>4} {:>7} {:>7} {:>7} {:>7} {:>5} {:>3} {:>5}",
            "GPU", "NAME", "BUSY", "TOTAL", "RSRVD", "HELD", "FREE", "WATT", "°C", "MHZ"
        ));
        lines.extend(snapshot.gpus.iter().map(gpu_line));
        lines.extend(holders(snapshot));
    }
    let mut text = String::new();
    for line in lines {
        let line: String = line.trim_end().chars().take(WIDTH).collect();
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn headline(snapshot: &Snapshot) -> String {
    let host = &snapshot.host;
    let driver = &snapshot.driver;
    let mut parts = vec![host.name.value().map_or("this host", String::as_str).to_string()];
    match snapshot.gpus.iter().filter(|gpu| gpu.mig.is_none()).count() {
        0 => parts.push("no GPU".into()),
        1 => parts.push("1 GPU".into()),
        count => parts.push(format!("{count} GPUs")),
    }
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
    parts.join(" · ")
}

/// `–` for what is not supported, `?` for what should be known.
fn cell<T>(reading: &Reading<T>, write: impl FnOnce(&T) -> String) -> String {
    match reading {
        Reading::Value(value) => write(value),
        Reading::Absent(_) if reading.is_final() => "–".into(),
        Reading::Absent(_) => "?".into(),
    }
}

fn gpu_line(gpu: &Gpu) -> String {
    let gib = |reading: &Reading<u64>| cell(reading, |bytes| format!("{}G", units::gib(*bytes)));
    let mut line = format!(
        "{:<6} {:<20} {:>4} {:>7} {:>7} {:>7} {:>7} {:>5} {:>3} {:>5}",
        gpu.label(),
        gpu.name.text().chars().take(20).collect::<String>(),
        cell(&gpu.utilization.gpu_ratio, |ratio| units::percent(*ratio)),
        gib(&gpu.memory.total_bytes),
        gib(&gpu.memory.reserved_bytes),
        gib(&gpu.memory.used_bytes),
        gib(&gpu.memory.free_bytes),
        cell(&gpu.power.draw_watts, |watts| format!("{watts:.0}")),
        cell(&gpu.temperature.gpu_celsius, ToString::to_string),
        cell(&gpu.clocks.sm_mhz, ToString::to_string),
    );
    match &gpu.health {
        Health::NoAnswer { call, .. } => {
            let _ = write!(line, "\n       no answer: {call} has not returned; last known values");
        }
        Health::Lost { answer, .. } | Health::Failing { answer, .. } => {
            let _ = write!(line, "\n       {answer}; last known values");
        }
        Health::Starting | Health::Answering => {}
    }
    line
}

fn holders(snapshot: &Snapshot) -> Vec<String> {
    let mut lines = vec![
        String::new(),
        format!(
            "{:<6} {:>8} {:>7} {:<5} {:<9} {}",
            "GPU", "PID", "HELD", "STATE", "USER", "COMMAND"
        ),
    ];
    let heading = lines.len();
    for (gpu, ledger) in snapshot.gpus.iter().zip(ledgers(snapshot)) {
        // The processes of an instance stand under the instance.
        let has_instances = snapshot
            .gpus
            .iter()
            .any(|other| other.index == gpu.index && other.mig.is_some() && gpu.mig.is_none());
        for holder in ledger.holders.iter().filter(|_| !has_instances) {
            let process = &snapshot.processes[holder.process];
            lines.push(format!(
                "{:<6} {:>8} {:>7} {:<5} {:<9} {}",
                gpu.label(),
                holder.pid,
                cell(&holder.bytes, |bytes| format!("{}G", units::gib(*bytes))),
                cell(&process.state, Clone::clone),
                cell(&process.user, |user| user.chars().take(9).collect()),
                command(process),
            ));
        }
        if let Some(bytes @ WORTH_A_LINE_BYTES..) = ledger.unattributed_bytes.get()
            && !has_instances
        {
            let held = format!("{}G", units::gib(bytes));
            lines.push(format!("{:<6} {:>8} {held:>7} held by nobody visible", gpu.label(), "–"));
        }
    }
    if lines.len() == heading {
        lines.truncate(1);
        lines.push("no process uses a GPU".into());
    }
    lines
}

/// The command; a number that our `/proc` does not know is said in words.
fn command(process: &Process) -> String {
    if process.is_gone() {
        return "(not in this /proc: ended, or another PID namespace)".into();
    }
    cell(&process.command, |command| printable(command))
}

/// Control characters of a command must not reach the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Breaks a line between words; what follows is indented.
fn wrap(text: &str, indent: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut width = 0;
    for word in text.split_inclusive(' ') {
        let length = word.trim_end().chars().count();
        if width + length > WIDTH && width > indent {
            lines.push(" ".repeat(indent));
            width = indent;
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(word);
        }
        width += word.chars().count();
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
    fn unsupported_and_unknown_look_different() {
        assert_eq!(cell(&Reading::<u32>::UNSUPPORTED, ToString::to_string), "–");
        assert_eq!(cell(&Reading::<u32>::default(), ToString::to_string), "?");
    }
}
