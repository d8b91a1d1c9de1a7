//! The subjects of a chart with their figures, one a row.

use std::ops::Range;

use super::curves::{Curve, Curves, Summary};
use super::unit::{self, Unit};
use super::window::interval_ms;
use crate::canvas::Canvas;
use crate::text;
use crate::view::View;

/// Columns of a figure, the gap before it included.
const FIGURE: u16 = 8;
/// Columns beyond which a subject's name is cut.
const WIDEST_NAME: u16 = 24;

/// How wide the rows are.
pub(super) fn width(curves: Option<&Curves>) -> u16 {
    let Some(curves) = curves else { return 40 };
    let figures = if curves.is_counter { 2 } else { 4 };
    name_width(curves) + figures * FIGURE + 2
}

fn name_width(curves: &Curves) -> u16 {
    let widest = curves.all.iter().map(|curve| text::width(&curve.name)).max().unwrap_or(0);
    // Many do not all fit: the head then says which are shown.
    widest.clamp(if curves.all.len() > 8 { 11 } else { 5 }, WIDEST_NAME)
}

/// What the figures of all rows have in common.
pub(super) struct Plan<'a> {
    curves: &'a Curves,
    window: (u64, u64),
    cursor_ms: Option<u64>,
    /// A value before this is not the last one any more: another subject has a later one.
    fresh_ms: u64,
    name_width: u16,
    decimals: usize,
}

impl<'a> Plan<'a> {
    /// The rows in so many columns.
    pub(super) fn new(
        curves: &'a Curves,
        unit: Unit,
        view: &View,
        window: (u64, u64),
        width: u16,
    ) -> Self {
        let values = curves.all.iter().flat_map(|curve| curves.within(curve, window));
        let mut largest = 0.0_f64;
        let mut whole = true;
        for (_, point) in values {
            largest = largest.max(point.max.abs()).max(point.min.abs());
            whole = whole && [point.min, point.mean, point.max].iter().all(|v| v.fract() == 0.0);
        }
        let last = curves.all.iter().filter_map(|curve| curves.within(curve, window).last());
        let newest_ms = last.map(|(ms, _)| ms).max().unwrap_or(0);
        let late = curves.step_ms.saturating_add(interval_ms(view).saturating_mul(3));
        Self {
            curves,
            window,
            fresh_ms: newest_ms.saturating_sub(late),
            cursor_ms: view.past.cursor_ms,
            name_width: name_width(curves).min(width / 3),
            decimals: if whole { 0 } else { unit.decimals(largest) },
        }
    }

    fn figures(&self, y: u16, canvas: &mut Canvas, texts: &[String], style: ratatui::style::Style) {
        let mut x = 1 + self.name_width;
        for text in texts {
            canvas.right(x, y, FIGURE, text, style);
            x = x.saturating_add(FIGURE);
        }
    }

    /// The heads, with the places of the rows below when not all are shown.
    pub(super) fn head(&self, canvas: &mut Canvas, view: &View, shown: &Range<usize>) {
        let style = canvas.theme.heading();
        let count = self.curves.all.len();
        let places = format!("{}–{} of {count}", shown.start + 1, shown.end);
        let all = shown.len() == count || text::width(&places) > self.name_width;
        canvas.text(1, 0, if all { "WHO" } else { &places }, style);
        let now = match self.cursor_ms {
            Some(at) => probes::units::clock(at, view.utc_offset_seconds)[..5].to_string(),
            None => "LAST".into(),
        };
        let heads: Vec<String> = if self.curves.is_counter {
            vec![if self.cursor_ms.is_some() { now } else { "ADDED".into() }, "TOTAL".into()]
        } else {
            vec![now, "MIN".into(), "MEAN".into(), "MAX".into()]
        };
        self.figures(0, canvas, &heads, style);
    }

    /// A subject with its figures.
    pub(super) fn row(
        &self,
        canvas: &mut Canvas,
        y: u16,
        curve: &Curve,
        selected: bool,
        why_missing: impl Fn() -> String,
    ) {
        let theme = canvas.theme;
        let style = if selected { theme.strong() } else { theme.text() };
        if selected {
            canvas.glyph(0, y, theme.glyphs().marker, style);
        }
        canvas.text_in(1, y, self.name_width, &curve.name, style);
        let sum = self.curves.summary(curve, self.window);
        let pick = |pick: fn(&Summary) -> f64| sum.as_ref().map(pick);
        let now = match self.cursor_ms {
            Some(at) => self.curves.at(curve, at),
            None => sum.as_ref().filter(|sum| sum.last_ms >= self.fresh_ms).map(|sum| sum.last),
        };
        let missing = if sum.is_some() { "?".into() } else { why_missing() };
        let write = |value: Option<f64>| match value {
            Some(value) => unit::write(value, self.decimals),
            None => missing.clone(),
        };
        let texts: Vec<String> = if self.curves.is_counter {
            vec![write(now), write(curve.total)]
        } else {
            vec![
                write(now),
                write(pick(|s| s.min)),
                write(pick(|s| s.mean)),
                write(pick(|s| s.max)),
            ]
        };
        self.figures(y, canvas, &texts, if sum.is_some() { style } else { theme.dim() });
    }
}
