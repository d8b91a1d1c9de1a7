//! The chart itself: title, scale, curves, time axis with marks, and the moment that is shown.

use probes::past::Mark;
use ratatui::layout::Position;

use super::axis::{self, Scale};
use super::curves::{Curve, CurveKey, Curves, Point};
use super::marks::{self, MarkKey};
use super::plot::{Layer, Plot};
use super::unit::Unit;
use super::window::{self, STRETCHES, Window};
use crate::canvas::Canvas;
use crate::text;
use crate::view::View;

/// Where the last chart was drawn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drawn {
    /// On the screen.
    screen: Position,
    left: u16,
    columns: u16,
    rows: u16,
    dots: usize,
}

impl Drawn {
    /// Its first column, in the panel.
    pub(super) fn left(&self) -> u16 {
        self.left
    }

    /// Points that can be told apart.
    pub(super) fn dots(&self) -> usize {
        self.dots
    }

    /// The time that a column takes.
    pub(super) fn column_ms(&self, window: &Window) -> u64 {
        window.length_ms() / u64::from(self.columns.max(1))
    }

    /// The moment at a place of the screen, axis included; `None` outside.
    pub(super) fn moment(&self, at: Position, window: &Window) -> Option<u64> {
        let x = at.x.checked_sub(self.screen.x).filter(|x| *x < self.columns)?;
        at.y.checked_sub(self.screen.y).filter(|y| *y <= self.rows)?;
        let (from, _) = window.ends();
        Some(from + window.length_ms() * u64::from(x) / u64::from(self.columns))
    }
}

/// What is drawn.
pub(super) struct Picture<'a> {
    pub(super) curves: Option<&'a Curves>,
    pub(super) selected: Option<&'a CurveKey>,
    pub(super) only: bool,
    pub(super) unit: Unit,
    pub(super) window: &'a Window,
    pub(super) marks: &'a [(MarkKey, &'a Mark)],
}

/// Draws the first row: what the metric means, its unit, and the stretches.
pub(super) fn title(canvas: &mut Canvas, help: &str, unit: Unit, stretch: usize) {
    let theme = canvas.theme;
    let width = canvas.width();
    let length: u16 = STRETCHES.iter().map(|(name, _)| text::width(name) + 2).sum();
    let mut x = width.saturating_sub(length);
    let room = x.saturating_sub(2);
    if width >= 60 {
        for (at, (name, _)) in STRETCHES.iter().enumerate() {
            let style = if at == stretch { theme.strong() } else { theme.dim() };
            if at == stretch {
                canvas.glyph(x.saturating_sub(1), 0, theme.glyphs().marker, style);
            }
            x = canvas.text(x, 0, name, style) + 2;
        }
    }
    let room = if width >= 60 { room } else { width.saturating_sub(2) };
    let end = canvas.text_in(1, 0, room, unit.name, theme.strong());
    let end = if unit.name.is_empty() { 1 } else { end + 2 };
    canvas.text_in(end, 0, room.saturating_sub(end), help, theme.dim());
}

impl Picture<'_> {
    fn shown(&self) -> impl Iterator<Item = &Curve> {
        let curves = self.curves.into_iter().flat_map(|curves| &curves.all);
        curves.filter(|curve| !self.only || Some(&curve.key) == self.selected)
    }

    /// The smallest and the largest value that can be seen.
    fn ends(&self) -> (f64, f64) {
        let mut ends = (f64::INFINITY, f64::NEG_INFINITY);
        let Some(curves) = self.curves else { return ends };
        for curve in self.shown() {
            // Only the selected curve has its shade.
            let shade = Some(&curve.key) == self.selected;
            for (_, point) in curves.within(curve, self.window.ends()) {
                let (low, high) =
                    if shade { (point.min, point.max) } else { (point.mean, point.mean) };
                ends = (ends.0.min(low), ends.1.max(high));
            }
        }
        ends
    }

    /// Draws from row `y` on: so many rows of curves, the axis, the times.
    pub(super) fn draw(&self, canvas: &mut Canvas, y: u16, rows: u16, view: &View) -> Drawn {
        let theme = canvas.theme;
        let counter = self.curves.is_some_and(|curves| curves.is_counter);
        let most = if rows < 16 { rows / 2 } else { rows / 3 };
        let ends = self.ends();
        let mut scale = Scale::new(ends, self.unit, counter, most.max(1));
        if ends.0 > ends.1 {
            // Nothing to measure yet.
            scale.ticks.clear();
        }
        let widest = scale.ticks.iter().map(|(_, label)| text::width(label)).max().unwrap_or(1);
        let left = widest.clamp(3, 8) + 2;
        let columns = canvas.width().saturating_sub(left + 1);
        for row in 0..rows {
            canvas.glyph(left - 1, y + row, '│', theme.faint());
        }
        for (value, label) in &scale.ticks {
            let row = y + row_of(scale.place(*value), rows);
            canvas.right(0, row, left - 1, label, theme.dim());
            canvas.glyph(left - 1, row, '┤', theme.faint());
        }
        let mut plot = Plot::new(columns, rows, theme.is_ascii());
        self.plot(&mut plot, &scale, view);
        plot.draw(canvas, (left, y), [theme.strong(), theme.dim(), theme.faint()]);
        self.axis(canvas, (left, y + rows, columns), view);
        self.cursor(canvas, (left, y, columns), rows, view);
        Drawn { screen: canvas.screen(left, y), left, columns, rows, dots: plot.size().0 }
    }

    fn plot(&self, plot: &mut Plot, scale: &Scale, view: &View) {
        let Some(curves) = self.curves else { return };
        let window = self.window.ends();
        let (width, height) = plot.size();
        if width == 0 || height == 0 {
            return;
        }
        let x = |ms: u64| {
            let length = u128::from(self.window.length_ms());
            let dots = u128::from(ms.saturating_sub(window.0)) * width as u128 / length;
            usize::try_from(dots).unwrap_or(width).min(width - 1)
        };
        let down = |value: f64| dot_of(scale.place(value), height);
        // A step may be empty because snapshots come a little late; two in a row are a gap.
        let joined = curves.step_ms.saturating_add(window::interval_ms(view).saturating_mul(3) / 2);
        for curve in self.shown() {
            let selected = Some(&curve.key) == self.selected;
            let layer = if selected { Layer::Selected } else { Layer::Other };
            let mut before: Option<(u64, Point)> = None;
            for (ms, point) in curves.within(curve, window) {
                let to = (x(ms), down(point.mean));
                let last = before.filter(|(then, _)| ms - then <= joined);
                let from = last.map_or(to, |(then, last)| (x(then), down(last.mean)));
                plot.line(layer, from, to);
                if selected && !curves.is_counter {
                    // The shade of a step reaches to the one before.
                    for column in (from.0 + 1).min(to.0)..=to.0 {
                        plot.shade(column, (down(point.max), down(point.min)));
                    }
                }
                before = Some((ms, point));
            }
        }
    }

    fn axis(&self, canvas: &mut Canvas, (left, y, columns): (u16, u16, u16), view: &View) {
        let theme = canvas.theme;
        let window = self.window.ends();
        canvas.glyph(left - 1, y, '└', theme.faint());
        for x in 0..columns {
            canvas.glyph(left + x, y, '─', theme.faint());
        }
        let mut free_from = 0;
        for (ms, label) in axis::times(window.0, window.1, columns, view.utc_offset_seconds) {
            let Some(x) = marks::column(ms, window, columns) else { continue };
            canvas.glyph(left + x, y, '┬', theme.faint());
            let width = text::width(&label);
            let begin = (left + x).saturating_sub(width / 2);
            let fits = begin >= free_from && begin + width <= canvas.width();
            if fits {
                canvas.text(begin, y + 1, &label, theme.dim());
                free_from = begin + width + 1;
            }
        }
        marks::on_axis(canvas, (left, y, columns), self.marks, window);
    }

    /// The moment that is shown is a column in the colours of the selection.
    fn cursor(
        &self,
        canvas: &mut Canvas,
        (left, y, columns): (u16, u16, u16),
        rows: u16,
        view: &View,
    ) {
        let cursor = view.past.cursor_ms;
        let Some(x) = cursor.and_then(|ms| marks::column(ms, self.window.ends(), columns)) else {
            return;
        };
        for row in 0..=rows {
            canvas.mark_cell(left + x, y + row, if row < rows { '│' } else { '┴' });
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and height")]
fn dot_of(place: f64, height: usize) -> usize {
    (place * (height.saturating_sub(1)) as f64).round() as usize
}

fn row_of(place: f64, rows: u16) -> u16 {
    // The row in which the dot lies, as braille has four a row.
    let dot = dot_of(place, usize::from(rows) * 4);
    u16::try_from(dot / 4).unwrap_or(rows)
}
