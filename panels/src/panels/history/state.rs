//! What is said where there is no curve, and how the curves are to be read.

use probes::past::MetricPast;
use probes::units;

use super::choice;
use super::curves::Curves;
use crate::canvas::Canvas;
use crate::text;
use crate::view::{Source, View};

/// Draws why nothing is remembered, and what to do.
pub(super) fn no_past(canvas: &mut Canvas, view: &View) {
    let theme = canvas.theme;
    let width = canvas.width().saturating_sub(2);
    let live = view.feed.source == Source::Live;
    let what = match &view.past.trouble {
        Some(why) => format!("no past to show: {why}"),
        None if live => "no past to show: no daemon, so nothing is remembered".into(),
        None => "asking what is remembered …".into(),
    };
    let mut y = 1;
    for line in what.lines().flat_map(|line| text::wrap(line, width)) {
        canvas.text(1, y, &line, theme.text());
        y += 1;
    }
    if live {
        let words = "infertop daemon remembers every snapshot for days, beside production servers; \
                     once it runs, infertop attaches to it and this panel shows any metric over any \
                     stretch.";
        for line in text::wrap(words, width.min(76)) {
            y += 1;
            canvas.text(1, y, &line, theme.dim());
        }
    }
}

/// Draws, into an empty chart, why it is empty.
pub(super) fn no_values(
    canvas: &mut Canvas,
    (x, y): (u16, u16),
    view: &View,
    metric: &str,
    known: Result<Option<&MetricPast>, &str>,
) {
    let theme = canvas.theme;
    let room = canvas.width().saturating_sub(x + 1);
    match known {
        Err(why) => {
            let words = format!("● cannot be read: {why}");
            for (line, y) in text::wrap(&words, room).iter().zip(y..).take(3) {
                canvas.text(x, y, line, theme.warning());
            }
        }
        Ok(None) => {
            canvas.text_in(x, y, room, "reading …", theme.dim());
        }
        Ok(Some(_)) => {
            let words = match choice::absence(view, metric, "") {
                Some(why) => format!("no value in this stretch; now: {why}"),
                None => "no value in this stretch".into(),
            };
            canvas.text_in(x, y, room, &words, theme.dim());
        }
    }
}

/// How the chart is to be read: since when there is a past, and what a step is.
pub(super) fn reading(view: &View, curves: Option<&Curves>) -> String {
    let since = view.past.span.map(|span| {
        let moment = |at| units::moment(at, view.now_ms, view.utc_offset_seconds);
        match view.feed.source {
            Source::Recording => {
                format!("recorded {} to {}", moment(span.from_ms), moment(span.to_ms))
            }
            _ => format!("remembered since {}", moment(span.from_ms)),
        }
    });
    let points = curves.map(|curves| {
        let step = match curves.step_ms {
            ms @ 0..10_000 if ms % 1000 > 0 => format!("{:.1} s", ms as f64 / 1000.0),
            ms => units::duration(ms / 1000).trim_end_matches(" 0 s").into(),
        };
        if curves.is_counter {
            format!("added since the left edge, a point each {step}")
        } else {
            format!("each point: mean of {step}, shade min to max")
        }
    });
    let alone = curves.filter(|curves| curves.left_out > 0).map(|curves| {
        format!("{} curves of others left out: choose a GPU on the overview", curves.left_out)
    });
    alone.into_iter().chain(since).chain(points).collect::<Vec<_>>().join(" · ")
}
