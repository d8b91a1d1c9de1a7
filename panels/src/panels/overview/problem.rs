//! No GPU answers, or the driver as a whole is in trouble: what is wrong, the cause's id, what shows
//! it, what to do. An empty table says nothing.

use probes::driver::Session;
use probes::finding::Severity;
use probes::units;

use crate::canvas::Canvas;
use crate::text;
use crate::view::View;

/// A line: words and whether they are the headline, evidence or help.
pub(super) struct Line {
    label: &'static str,
    words: String,
    severity: Option<Severity>,
}

fn line(label: &'static str, words: impl Into<String>) -> Line {
    Line { label, words: words.into(), severity: None }
}

/// What to say; empty when all is well.
pub(super) fn lines(view: &View) -> Vec<Line> {
    let driver = &view.snapshot.driver;
    let mut out = Vec::new();
    if let Some(problem) = &driver.problem {
        let severity = problem.severity();
        out.push(Line { label: "", words: problem.title.clone(), severity: Some(severity) });
        // When all GPUs answer, one line is enough; the finding has the rest.
        if !problem.blocking && !view.snapshot.gpus.is_empty() {
            return out;
        }
        out.push(line("cause", problem.cause.clone()));
        out.extend(problem.evidence.iter().map(|words| line("found", words.clone())));
        if !problem.help.is_empty() {
            out.push(line("help", problem.help.clone()));
        }
    } else {
        session(view, &mut out);
    }
    if !out.is_empty() && view.snapshot.gpus.is_empty() {
        seen_without_driver(view, &mut out);
    }
    out
}

fn session(view: &View, out: &mut Vec<Line>) {
    let headline = |words: String, severity| Line { label: "", words, severity };
    match &view.snapshot.driver.session {
        Session::Failed { code, answer } => {
            let words = format!("the driver's library does not answer: {answer}");
            out.push(headline(words, Some(Severity::Critical)));
            out.push(line("cause", if *code == 0 { "library not loaded" } else { "NVML error" }));
            out.push(line("help", "it is tried again; the rest of the box is read meanwhile"));
        }
        Session::NoAnswer { call, since_ms } => {
            let age = units::duration(view.at_ms().saturating_sub(*since_ms) / 1000);
            let words = format!("the driver has not answered for {age}");
            out.push(headline(words, Some(Severity::Critical)));
            out.push(line("found", format!("{call} has not returned")));
            out.push(line("help", "look for Xid lines on the host panel; q leaves at once"));
        }
        Session::Starting if view.snapshot.gpus.is_empty() => {
            out.push(headline("waiting for the driver's first answers".into(), None));
        }
        Session::Open if view.snapshot.gpus.is_empty() => {
            out.push(headline(
                "the driver answers and counts no GPU".into(),
                Some(Severity::Warning),
            ));
        }
        Session::Starting | Session::Open => {}
    }
}

fn seen_without_driver(view: &View, out: &mut Vec<Line>) {
    let driver = &view.snapshot.driver;
    if let Some(gpus) = driver.pci_gpus.value() {
        for gpu in gpus {
            let model = gpu.model.value().map_or(gpu.device_id.as_str(), String::as_str);
            let bound = if gpu.driver.is_empty() { "no driver" } else { gpu.driver.as_str() };
            out.push(line("on the bus", format!("{}  {model}  bound to {bound}", gpu.pci)));
        }
        if gpus.is_empty() {
            out.push(line("on the bus", "no NVIDIA GPU"));
        }
    }
    let module = driver.module_version.value().map(|version| format!("module {version}"));
    let library =
        driver.library_on_disk.value().map(|version| format!("library on disk {version}"));
    let versions: Vec<String> = module.into_iter().chain(library).collect();
    if !versions.is_empty() {
        out.push(line("versions", versions.join(", ")));
    }
    let host = &view.snapshot.host;
    let mut parts: Vec<String> = Vec::new();
    parts.extend(host.kernel.value().map(|kernel| format!("kernel {kernel}")));
    parts.extend(host.cpus.value().map(|cpus| format!("{cpus} CPUs")));
    parts.extend(host.cpu_ratio.value().map(|ratio| format!("{} busy", units::percent(*ratio))));
    if let (Some(total), Some(free)) =
        (host.memory_total_bytes.get(), host.memory_available_bytes.get())
    {
        parts.push(format!("{} of {} free", units::bytes(free), units::bytes(total)));
    }
    if !parts.is_empty() {
        out.push(line("host", parts.join(", ")));
    }
}

/// Draws the lines and returns the row after them.
pub(super) fn draw(canvas: &mut Canvas, lines: &[Line]) -> u16 {
    const MARGIN: u16 = 14;
    let theme = canvas.theme;
    let room = canvas.width().saturating_sub(MARGIN + 1);
    let alone = lines.len() > 1;
    let mut y = u16::from(alone);
    let mut last = "";
    for line in lines {
        if line.label.is_empty() {
            let style = line.severity.map_or(theme.text(), |severity| theme.severity(severity));
            let mut x = 1;
            if let Some(severity) = line.severity {
                canvas.glyph(x, y, theme.severity_glyph(severity), style);
                x = canvas.text(x + 2, y, crate::words::severity(severity), style) + 2;
            }
            for words in text::wrap(&line.words, canvas.width().saturating_sub(x + 1)) {
                canvas.text(x, y, &words, theme.strong());
                y += 1;
            }
            y += u16::from(alone);
            continue;
        }
        if line.label != last {
            canvas.text(3, y, line.label, theme.dim());
            last = line.label;
        }
        for words in text::wrap(&line.words, room) {
            canvas.text(MARGIN, y, &words, theme.text());
            y += 1;
        }
    }
    y + u16::from(alone)
}
