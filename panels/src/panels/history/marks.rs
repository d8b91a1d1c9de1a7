//! What happened, on the time axis and as a list.

use probes::finding::Severity;
use probes::past::{Mark, MarkKind};
use probes::units;
use ratatui::style::Style;

use crate::canvas::Canvas;
use crate::text;
use crate::theme::Theme;
use crate::view::View;

/// Names a mark for good, as far as marks have a name: when, what, and which of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MarkKey {
    at_ms: u64,
    kind: MarkKind,
    of_equal: usize,
}

impl MarkKey {
    /// When it began.
    pub(super) fn at_ms(self) -> u64 {
        self.at_ms
    }
}

/// The marks that touch a stretch, newest first, as a list of what happened is read.
pub(super) fn within<'a>(
    view: &View<'a>,
    (from_ms, to_ms): (u64, u64),
) -> Vec<(MarkKey, &'a Mark)> {
    let mut found: Vec<(MarkKey, &Mark)> = Vec::new();
    let mut before = None;
    let mut of_equal = 0;
    for mark in &view.past.marks {
        of_equal = if before == Some((mark.at_ms, mark.kind)) { of_equal + 1 } else { 0 };
        before = Some((mark.at_ms, mark.kind));
        let end = if mark.kind == MarkKind::Finding {
            mark.until_ms.unwrap_or(u64::MAX)
        } else {
            mark.until_ms.unwrap_or(mark.at_ms)
        };
        if mark.at_ms <= to_ms && end >= from_ms {
            found.push((MarkKey { at_ms: mark.at_ms, kind: mark.kind, of_equal }, mark));
        }
    }
    found.sort_by_key(|(key, _)| std::cmp::Reverse(key.at_ms));
    found
}

/// The letter of what is no finding.
fn letter(kind: MarkKind) -> char {
    match kind {
        MarkKind::Finding | MarkKind::Other => '·',
        MarkKind::Xid => 'X',
        MarkKind::DaemonStart | MarkKind::DaemonEnd => 'D',
        MarkKind::SamplerStart | MarkKind::SamplerEnd => 'S',
        MarkKind::DriverChange => 'V',
        MarkKind::Release | MarkKind::Resume => 'R',
        MarkKind::Reload => 'C',
        MarkKind::ClockSet => 'T',
        MarkKind::Suspended => 'Z',
        MarkKind::NotStored => 'N',
    }
}

/// How a mark is drawn. What is wrong stands out; that a daemon started does not.
fn glyph(mark: &Mark, theme: Theme) -> (char, Style) {
    let glyph = match mark.kind {
        MarkKind::Finding => theme.severity_glyph(mark.severity),
        kind => letter(kind),
    };
    let style = match mark.severity {
        Severity::Info => theme.text(),
        severity => theme.severity(severity),
    };
    (glyph, style)
}

/// Draws the marks onto the axis in row `y`. The worst of a column is seen; a finding reaches as far
/// as it lasted.
pub(super) fn on_axis(
    canvas: &mut Canvas,
    (left, y, columns): (u16, u16, u16),
    marks: &[(MarkKey, &Mark)],
    window: (u64, u64),
) {
    let theme = canvas.theme;
    let line = if theme.is_ascii() { '=' } else { '━' };
    let mut by_weight: Vec<&Mark> = marks.iter().map(|(_, mark)| *mark).collect();
    by_weight.sort_by_key(|mark| (mark.severity, mark.kind != MarkKind::Finding));
    for mark in by_weight.iter().filter(|mark| mark.kind == MarkKind::Finding) {
        let end = mark.until_ms.unwrap_or(window.1);
        let from = column(mark.at_ms.max(window.0), window, columns);
        let to = column(end.min(window.1), window, columns);
        let style = if mark.severity == Severity::Info {
            theme.dim()
        } else {
            theme.severity(mark.severity)
        };
        for x in from.unwrap_or(0)..=to.unwrap_or(0) {
            canvas.glyph(left + x, y, line, style);
        }
    }
    for mark in by_weight {
        if let Some(x) = column(mark.at_ms, window, columns) {
            let (glyph, style) = glyph(mark, theme);
            canvas.glyph(left + x, y, glyph, style);
        }
    }
}

/// The column in which a moment lies; `None` outside.
pub(super) fn column(ms: u64, (from_ms, to_ms): (u64, u64), columns: u16) -> Option<u16> {
    if columns == 0 || !(from_ms..=to_ms).contains(&ms) {
        return None;
    }
    let length = u128::from(to_ms - from_ms).max(1);
    let x = u128::from(ms - from_ms) * u128::from(columns) / length;
    u16::try_from(x).ok().map(|x| x.min(columns - 1))
}

/// Columns of the times in a list of these marks.
pub(super) fn time_width(marks: &[(MarkKey, &Mark)], view: &View) -> u16 {
    let width = |(_, mark): &(MarkKey, &Mark)| text::width(&time(mark.at_ms, view));
    marks.iter().map(width).max().unwrap_or(8)
}

fn time(at_ms: u64, view: &View) -> String {
    units::moment(at_ms, view.at_ms(), view.utc_offset_seconds)
}

/// Draws one mark as a row.
pub(super) fn draw_row(canvas: &mut Canvas, y: u16, time_width: u16, mark: &Mark, view: &View) {
    let theme = canvas.theme;
    canvas.right(1, y, time_width, &time(mark.at_ms, view), theme.dim());
    let (sign, style) = glyph(mark, theme);
    canvas.glyph(time_width + 2, y, sign, style);
    canvas.text(time_width + 4, y, &what(mark), theme.text());
}

fn what(mark: &Mark) -> String {
    if mark.subject.is_empty() {
        mark.text.clone()
    } else {
        format!("{}: {}", mark.subject, mark.text)
    }
}

/// A mark in full, for the line below.
pub(super) fn full(mark: &Mark, view: &View) -> String {
    let lasted = match mark.until_ms {
        Some(end) if end > mark.at_ms => format!(
            "{} to {} ({})",
            time(mark.at_ms, view),
            time(end, view),
            units::duration((end - mark.at_ms) / 1000)
        ),
        None if mark.kind == MarkKind::Finding => format!("since {}", time(mark.at_ms, view)),
        _ => time(mark.at_ms, view),
    };
    format!("{lasted}  {}", what(mark))
}
