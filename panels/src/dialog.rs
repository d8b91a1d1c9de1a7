//! What floats above a panel: help, one finding, and the question whether to end a process. These
//! alone have a border.

use crossterm::event::{KeyCode, KeyEvent};
use probes::finding::Severity;

use crate::canvas::Canvas;
use crate::input::Input;
use crate::keys::{self, Command, KEYS, Tense};
use crate::list::Scroll;
use crate::panels::Entry;
use crate::text;
use crate::ui::{Action, Signal};
use crate::view::View;
use crate::words::{self, ProcessKey};

mod end;
mod time;

/// What an open window says to a press.
pub(crate) enum Closing {
    /// It stays.
    Stay,
    /// It closes.
    Close,
    /// It closes and something is to be done.
    Do(Action),
}

/// A window.
pub(crate) struct Dialog {
    kind: Kind,
    scroll: Scroll,
}

enum Kind {
    Help(&'static Entry),
    Finding(usize),
    End { process: ProcessKey, input: Input, signal: Signal },
    Time(time::Asked),
}

/// A line of a window: an indent, words, a role.
pub(crate) struct Line {
    pub(crate) indent: u16,
    pub(crate) words: String,
    pub(crate) role: Role,
}

/// How a line looks.
#[derive(Clone, Copy)]
pub(crate) enum Role {
    Text,
    Dim,
    Strong,
    Alarm(Severity),
}

/// Lines of a window.
#[derive(Default)]
pub(crate) struct Lines(pub(crate) Vec<Line>);

impl Lines {
    /// Adds a line.
    pub(crate) fn put(&mut self, indent: u16, role: Role, words: impl Into<String>) {
        self.0.push(Line { indent, words: words.into(), role });
    }

    /// Adds a label and what belongs to it, wrapped by whoever draws.
    pub(crate) fn pair(&mut self, label: &str, words: &str) {
        self.put(0, Role::Text, format!("{label}\t{words}"));
    }
}

impl Dialog {
    /// What a panel shows, and the keys.
    pub(crate) fn help(entry: &'static Entry) -> Self {
        Self { kind: Kind::Help(entry), scroll: Scroll::default() }
    }

    /// One finding.
    pub(crate) fn finding(at: usize) -> Self {
        Self { kind: Kind::Finding(at), scroll: Scroll::default() }
    }

    /// Whether to end a process.
    pub(crate) fn end(process: ProcessKey) -> Self {
        let kind = Kind::End { process, input: Input::default(), signal: Signal::Term };
        Self { kind, scroll: Scroll::default() }
    }

    /// Which time to go to.
    pub(crate) fn time() -> Self {
        Self { kind: Kind::Time(time::Asked::default()), scroll: Scroll::default() }
    }

    /// Whether it waits for text.
    pub(crate) fn takes_text(&self) -> bool {
        matches!(self.kind, Kind::End { .. } | Kind::Time(_))
    }

    /// Scrolls by one line.
    pub(crate) fn scroll(&mut self, command: Command) {
        self.scroll.command(command);
    }

    /// Takes a press.
    pub(crate) fn key(&mut self, event: KeyEvent, view: &View) -> Closing {
        if let Kind::End { process, input, signal } = &mut self.kind {
            let page = match event.code {
                KeyCode::Up => Some(Command::Up),
                KeyCode::Down => Some(Command::Down),
                KeyCode::PageUp => Some(Command::PageUp),
                KeyCode::PageDown => Some(Command::PageDown),
                _ => None,
            };
            // On a low terminal the question is longer than the window; what is typed must be seen.
            self.scroll.command(page.unwrap_or(Command::Last));
            if page.is_some() {
                return Closing::Stay;
            }
            return end::key(event, view, *process, input, signal);
        }
        if let Kind::Time(asked) = &mut self.kind {
            return asked.key(event, view);
        }
        match keys::command(event, &[Command::Copy], Tense::Live) {
            Some(Command::Copy) => {
                if let Kind::Finding(at) = self.kind
                    && let Some(finding) = view.findings.get(at)
                {
                    return Closing::Do(Action::Copy(finding_text(finding)));
                }
            }
            Some(command) if self.scroll.command(command) => {}
            Some(Command::Back | Command::Help | Command::Quit) => return Closing::Close,
            _ if event.code == KeyCode::Enter => return Closing::Close,
            _ => {}
        }
        Closing::Stay
    }

    /// Draws the window over the canvas.
    pub(crate) fn draw(&mut self, view: &View, canvas: &mut Canvas) {
        let mut lines = Lines::default();
        let (title, foot) = match &self.kind {
            Kind::Help(entry) => (help_lines(entry, &mut lines), "esc closes   ↑↓ scroll"),
            Kind::Finding(at) => {
                (finding_lines(view, *at, &mut lines), "esc closes   ↑↓ scroll   y copies")
            }
            Kind::End { process, input, signal } => {
                let possible = end::lines(view, *process, input, *signal, &mut lines);
                ("end a process".into(), if possible { end::FOOT } else { "esc leaves" })
            }
            Kind::Time(asked) => {
                asked.lines(view, &mut lines);
                ("go to a time".into(), time::FOOT)
            }
        };
        // Next to no room beside it would only leave torn letters.
        let width = if canvas.width() < 88 { canvas.width() } else { 80 };
        let inner = width.saturating_sub(4);
        let rows: Vec<(u16, String, Role)> =
            lines.0.iter().flat_map(|line| flow(line, inner)).collect();
        let count = u16::try_from(rows.len()).unwrap_or(u16::MAX);
        let height = canvas.height().min(count.saturating_add(4));
        let (x, y) = ((canvas.width() - width) / 2, (canvas.height() - height) / 2);
        let mut window = canvas.part(x, y, width, height);
        border(&mut window, &title, foot);
        let shown = height.saturating_sub(4);
        let from = self.scroll.set(count, shown);
        if let Some(note) = self.scroll.note(count) {
            let note_width = text::width(&note);
            let theme = window.theme;
            window.text(width.saturating_sub(note_width + 3), height - 1, &note, theme.dim());
        }
        let theme = window.theme;
        let mut inside = window.part(2, 2, inner, shown);
        for (row, (indent, words, role)) in rows.iter().enumerate().skip(usize::from(from)) {
            let at = u16::try_from(row).unwrap_or(u16::MAX) - from;
            let style = match role {
                Role::Text => theme.text(),
                Role::Dim => theme.dim(),
                Role::Strong => theme.strong(),
                Role::Alarm(severity) => theme.severity(*severity),
            };
            inside.text(*indent, at, words, style);
        }
    }
}

/// A line cut into rows. A tab separates a label from words that keep their own margin.
fn flow(line: &Line, width: u16) -> Vec<(u16, String, Role)> {
    const MARGIN: u16 = 14;
    if let Some((label, words)) = line.words.split_once('\t') {
        let wide = text::width(label) + 1 > MARGIN;
        let margin = if wide { 4 } else { MARGIN };
        let mut rows: Vec<_> = text::wrap(words, width.saturating_sub(margin).max(8))
            .into_iter()
            .map(|row| (margin, row, line.role))
            .collect();
        if wide {
            rows.insert(0, (0, label.into(), Role::Strong));
        } else if let Some(first) = rows.first_mut() {
            let pad = usize::from(MARGIN.saturating_sub(text::width(label)));
            *first = (0, format!("{label}{}{}", " ".repeat(pad), first.1), line.role);
        }
        return rows;
    }
    text::wrap(&line.words, width.saturating_sub(line.indent).max(8))
        .into_iter()
        .map(|row| (line.indent, row, line.role))
        .collect()
}

/// Clears a window and draws its border.
pub(crate) fn border(window: &mut Canvas, title: &str, foot: &str) {
    let theme = window.theme;
    let (width, height) = (window.width(), window.height());
    let style = theme.dim();
    for y in 0..height {
        for x in 0..width {
            let edge_x = x == 0 || x + 1 == width;
            let edge_y = y == 0 || y + 1 == height;
            let glyph = match (edge_x, edge_y) {
                (true, true) => match (x == 0, y == 0) {
                    (true, true) => '┌',
                    (false, true) => '┐',
                    (true, false) => '└',
                    (false, false) => '┘',
                },
                (true, false) => '│',
                (false, true) => '─',
                _ => ' ',
            };
            let clear = ratatui::style::Style::reset();
            window.glyph(x, y, glyph, clear.patch(style));
        }
    }
    window.text_in(2, 0, width.saturating_sub(4), &format!(" {title} "), theme.strong());
    window.text_in(2, height - 1, width.saturating_sub(4), &format!(" {foot} "), theme.dim());
}

fn help_lines(entry: &Entry, lines: &mut Lines) -> String {
    lines.put(0, Role::Text, entry.purpose);
    lines.put(0, Role::Text, "");
    for (name, words) in entry.explains {
        lines.pair(name, words);
    }
    lines.put(0, Role::Text, "");
    lines.put(0, Role::Strong, "keys here");
    for key in KEYS.iter().filter(|key| key.works_with(entry.answers)) {
        lines.pair(key.shown, key.help);
    }
    format!("{} in plain words", entry.name)
}

fn finding_lines(view: &View, at: usize, lines: &mut Lines) -> String {
    let Some(finding) = view.findings.get(at) else {
        lines.put(0, Role::Dim, "This finding has ended.");
        return "finding".into();
    };
    let since = match finding.since_ms {
        0 => "not known".into(),
        at => probes::units::moment(at, view.at_ms(), view.utc_offset_seconds),
    };
    let head = format!("{}  {}", words::severity(finding.severity), words::subject(finding));
    lines.put(0, Role::Alarm(finding.severity), head);
    lines.put(0, Role::Strong, finding.title.clone());
    lines.put(0, Role::Text, "");
    lines.pair("since", &since);
    for (at, evidence) in finding.evidence.iter().enumerate() {
        lines.pair(if at == 0 { "evidence" } else { "" }, evidence);
    }
    if !finding.help.is_empty() {
        lines.put(0, Role::Text, "");
        lines.pair("next step", &finding.help);
    }
    finding.cause.clone()
}

/// A finding as text for a ticket.
pub(crate) fn finding_text(finding: &probes::finding::Finding) -> String {
    let mut out = format!(
        "{} {}: {} [{}]",
        words::severity(finding.severity),
        words::subject(finding),
        finding.title,
        finding.cause
    );
    for evidence in &finding.evidence {
        out.push_str("\n  ");
        out.push_str(evidence);
    }
    if !finding.help.is_empty() {
        out.push_str("\n  help: ");
        out.push_str(&finding.help);
    }
    out
}
