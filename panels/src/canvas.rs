//! A part of the buffer with coordinates of its own, on which panels draw.
//!
//! Whatever falls outside is left out, so no size of the terminal can make a panel panic. A canvas
//! may be scrolled: it then takes rows beyond its height and shows a window of them.

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use crate::text;
use crate::theme::Theme;

/// Where a panel draws.
pub(crate) struct Canvas<'a> {
    buf: &'a mut Buffer,
    area: Rect,
    scroll: u16,
    /// How things look.
    pub(crate) theme: Theme,
}

impl<'a> Canvas<'a> {
    /// A canvas over an area, cut to what the buffer has.
    pub(crate) fn new(buf: &'a mut Buffer, area: Rect, theme: Theme) -> Self {
        let area = area.intersection(buf.area);
        Self { buf, area, scroll: 0, theme }
    }

    /// A part of this canvas, in its coordinates.
    pub(crate) fn part(&mut self, x: u16, y: u16, width: u16, height: u16) -> Canvas<'_> {
        let x = self.area.x.saturating_add(x);
        let y = self.area.y.saturating_add(y);
        let area = Rect { x, y, width, height }.intersection(self.area);
        Canvas { buf: self.buf, area, scroll: 0, theme: self.theme }
    }

    /// The same canvas, showing rows from `rows` on.
    pub(crate) fn scrolled(&mut self, rows: u16) -> Canvas<'_> {
        Canvas { buf: self.buf, area: self.area, scroll: rows, theme: self.theme }
    }

    /// Columns.
    pub(crate) fn width(&self) -> u16 {
        self.area.width
    }

    /// Rows that can be seen.
    pub(crate) fn height(&self) -> u16 {
        self.area.height
    }

    /// Where row `y` is on the screen; `None` when it is not shown.
    pub(crate) fn screen_row(&self, y: u16) -> Option<u16> {
        let y = y.checked_sub(self.scroll)?;
        (y < self.area.height).then(|| self.area.y + y)
    }

    /// Where a cell is on the screen.
    pub(crate) fn screen(&self, x: u16, y: u16) -> Position {
        Position { x: self.area.x.saturating_add(x), y: self.area.y.saturating_add(y) }
    }

    /// Writes text from column `x`; returns the column after it.
    pub(crate) fn text(&mut self, x: u16, y: u16, words: &str, style: Style) -> u16 {
        let room = self.area.width.saturating_sub(x);
        self.text_in(x, y, room, words, style)
    }

    /// Writes text into `columns` columns from `x`, cut with `…` if it must be.
    pub(crate) fn text_in(
        &mut self,
        x: u16,
        y: u16,
        columns: u16,
        words: &str,
        style: Style,
    ) -> u16 {
        let columns = columns.min(self.area.width.saturating_sub(x));
        let fitted = text::fit(words, columns);
        let end = x.saturating_add(text::width(&fitted));
        let Some(row) = self.screen_row(y) else { return end };
        if columns == 0 {
            return x;
        }
        let column = self.area.x + x;
        if fitted.is_ascii() {
            for (at, c) in (column..).zip(fitted.chars()) {
                if let Some(cell) = self.buf.cell_mut((at, row)) {
                    cell.set_char(c).set_style(style);
                }
            }
        } else {
            self.buf.set_stringn(column, row, &fitted, usize::from(columns), style);
        }
        end
    }

    /// Writes text so that it ends before column `x + columns`.
    pub(crate) fn right(&mut self, x: u16, y: u16, columns: u16, words: &str, style: Style) {
        let fitted = text::fit(words, columns);
        let pad = columns.saturating_sub(text::width(&fitted));
        self.text_in(x.saturating_add(pad), y, columns - pad, &fitted, style);
    }

    /// One character.
    pub(crate) fn glyph(&mut self, x: u16, y: u16, glyph: char, style: Style) {
        if x >= self.area.width {
            return;
        }
        if let Some(row) = self.screen_row(y)
            && let Some(cell) = self.buf.cell_mut((self.area.x + x, row))
        {
            cell.set_char(glyph).set_style(style);
        }
    }

    /// Marks a row as the selected one; foregrounds that warn stay.
    pub(crate) fn select(&mut self, y: u16) {
        let Some(row) = self.screen_row(y) else { return };
        for x in self.area.left()..self.area.right() {
            if let Some(cell) = self.buf.cell_mut((x, row)) {
                mark(cell, self.theme);
            }
        }
        self.glyph(0, y, self.theme.glyphs().marker, self.theme.selected());
    }

    /// Marks a cell as the selected one; an empty one gets this character.
    pub(crate) fn mark_cell(&mut self, x: u16, y: u16, if_empty: char) {
        let Some(row) = self.screen_row(y).filter(|_| x < self.area.width) else { return };
        if let Some(cell) = self.buf.cell_mut((self.area.x + x, row)) {
            if cell.symbol() == " " {
                cell.set_char(if_empty);
            }
            mark(cell, self.theme);
        }
    }

    /// The last values as levels between `low` and `high`, newest at the right; NaN is a gap.
    pub(crate) fn spark(
        &mut self,
        x: u16,
        y: u16,
        columns: u16,
        newest_first: impl Iterator<Item = f32>,
        (low, high): (f32, f32),
        style: Style,
    ) {
        let levels = self.theme.glyphs().spark;
        let span = if high > low { high - low } else { 1.0 };
        for (column, value) in (0..columns).rev().zip(newest_first) {
            if value.is_nan() {
                continue;
            }
            // Clamped to 0..=7.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let level = ((value - low) / span * 8.0).clamp(0.0, 7.0) as usize;
            self.glyph(x + column, y, levels[level], style);
        }
    }

    /// A bar of parts in the order given, `columns` wide for `total`. A part that must be seen takes
    /// a column however small it is; what the parts leave is blank.
    pub(crate) fn bar(&mut self, x: u16, y: u16, columns: u16, total: u64, parts: &[Part]) {
        let mut done = 0_u64;
        let mut column = 0;
        for part in parts {
            done = done.saturating_add(part.amount);
            let mut end = share(done, total, columns);
            if part.must_show && part.amount > 0 && end <= column {
                end = (column + 1).min(columns);
            }
            for at in column..end.max(column) {
                self.glyph(x + at, y, part.glyph, part.style);
            }
            column = column.max(end);
        }
    }
}

fn mark(cell: &mut Cell, theme: Theme) {
    let keep = theme.is_alarm(cell.fg).then_some(cell.fg);
    cell.set_style(theme.selected());
    if let Some(colour) = keep {
        cell.set_fg(colour);
    }
}

/// One fill of a bar.
pub(crate) struct Part {
    /// How much.
    pub(crate) amount: u64,
    /// Drawn with.
    pub(crate) glyph: char,
    /// In this style.
    pub(crate) style: Style,
    /// Takes a column however small.
    pub(crate) must_show: bool,
}

/// The column at which `part` of `total` ends, rounded.
pub(crate) fn share(part: u64, total: u64, columns: u16) -> u16 {
    if total == 0 {
        return 0;
    }
    let exact = u128::from(part.min(total)) * u128::from(columns) * 2 + u128::from(total);
    u16::try_from(exact / (u128::from(total) * 2)).unwrap_or(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Depth;

    #[test]
    fn a_small_part_that_matters_keeps_a_column() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 10, 1));
        let area = buf.area;
        let mut canvas = Canvas::new(&mut buf, area, Theme::new(Depth::None, true));
        let part =
            |amount, glyph, must_show| Part { amount, glyph, style: Style::new(), must_show };
        canvas.bar(
            0,
            0,
            10,
            100,
            &[part(40, '#', false), part(1, '?', true), part(59, '.', false)],
        );
        let drawn: String = buf.content.iter().map(Cell::symbol).collect();
        assert_eq!(drawn, "####?.....");
    }

    #[test]
    fn drawing_outside_is_no_panic() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 3, 1));
        let mut canvas =
            Canvas::new(&mut buf, Rect::new(1, 0, 90, 9), Theme::new(Depth::None, false));
        canvas.text(1, 0, "推理", Style::new());
        canvas.right(0, 5, 900, "x", Style::new());
        canvas.glyph(40, 40, 'x', Style::new());
        canvas.select(3);
        canvas.part(50, 50, 5, 5).glyph(0, 0, 'x', Style::new());
    }
}
