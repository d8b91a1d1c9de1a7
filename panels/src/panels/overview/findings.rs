//! The finding rows of the overview: glyph, word, subject, what is wrong, since when.

use probes::finding::Finding;
use probes::units;

use crate::canvas::Canvas;
use crate::text;
use crate::view::View;
use crate::words;

/// Draws one finding; `more` are hidden below it.
pub(super) fn draw(canvas: &mut Canvas, y: u16, view: &View, finding: &Finding, more: usize) {
    let theme = canvas.theme;
    // Beyond this the eye loses the row between its ends.
    let width = canvas.width().min(132);
    let style = theme.severity(finding.severity);
    canvas.glyph(1, y, theme.severity_glyph(finding.severity), style);
    canvas.text(3, y, words::severity(finding.severity), style);
    let mut since = match finding.since_ms {
        0 => String::new(),
        at => {
            let moment = units::moment(at, view.at_ms(), view.utc_offset_seconds);
            if width < 60 { moment } else { format!("since {moment}") }
        }
    };
    if more > 0 {
        since = format!("{since}  +{more} ↓").trim_start().to_string();
    }
    let end = width.saturating_sub(text::width(&since) + 1);
    canvas.text(end, y, &since, theme.dim());
    let subject = format!("{}:", words::subject(finding));
    let room = |x: u16| end.saturating_sub(x + 2);
    let x = canvas.text_in(12, y, room(12), &subject, theme.strong()) + 1;
    canvas.text_in(x, y, room(x), &finding.title, theme.text());
}
