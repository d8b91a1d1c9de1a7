//! Dots on cells: two by four a cell in braille, one a cell in ASCII.
//!
//! The toolkit's canvas gives a cell a colour and no modifier, and mixes the dots of all curves in a
//! cell; without colour the selected curve could not be told. Here a cell shows the dots of the
//! first layer that has any.

use ratatui::style::Style;

use crate::canvas::Canvas;

/// What lies above what.
#[derive(Clone, Copy)]
pub(super) enum Layer {
    /// The selected curve.
    Selected,
    /// The others.
    Other,
    /// From the smallest to the largest value of the selected curve.
    Band,
}

const LAYERS: usize = 3;

/// A raster of dots; the origin is at the top left.
pub(super) struct Plot {
    columns: usize,
    rows: usize,
    /// Dots of a cell, across and down.
    cell: (usize, usize),
    /// Of each layer and cell, a bit for each dot, as braille numbers them.
    bits: [Vec<u8>; LAYERS],
}

impl Plot {
    /// An empty raster of so many cells.
    pub(super) fn new(columns: u16, rows: u16, ascii: bool) -> Self {
        let (columns, rows) = (usize::from(columns), usize::from(rows));
        let cell = if ascii { (1, 1) } else { (2, 4) };
        Self { columns, rows, cell, bits: std::array::from_fn(|_| vec![0; columns * rows]) }
    }

    /// Dots across and down.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.columns * self.cell.0, self.rows * self.cell.1)
    }

    fn dot(&mut self, layer: Layer, x: usize, y: usize) {
        const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
        let (width, height) = self.size();
        if x < width && y < height {
            let at = y / self.cell.1 * self.columns + x / self.cell.0;
            self.bits[layer as usize][at] |= BITS[x % self.cell.0][y % self.cell.1];
        }
    }

    /// A column of dots, both ends included.
    fn column(&mut self, layer: Layer, x: usize, ends: (usize, usize)) {
        for y in ends.0.min(ends.1)..=ends.0.max(ends.1).min(self.size().1) {
            self.dot(layer, x, y);
        }
    }

    /// A column of the band: its ends, and dots so far apart between them that it stays behind.
    pub(super) fn shade(&mut self, x: usize, (top, bottom): (usize, usize)) {
        for y in top..=bottom.min(self.size().1) {
            // One dot in four, in every other row of dots moved by one.
            let sparse = self.cell == (1, 1) || y % 4 == 2 * (x % 2);
            if sparse || y == top || y == bottom {
                self.dot(Layer::Band, x, y);
            }
        }
    }

    /// A line between two dots, `from` the left one.
    pub(super) fn line(&mut self, layer: Layer, from: (usize, usize), to: (usize, usize)) {
        let across = to.0.saturating_sub(from.0);
        let height = |x: usize| {
            let share = (x - from.0) as f64 / across.max(1) as f64;
            let y = from.1 as f64 + share * (to.1 as f64 - from.1 as f64);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between two dots"
            )]
            let y = y.round() as usize;
            y
        };
        if across == 0 {
            self.column(layer, from.0, (from.1, to.1));
            return;
        }
        let mut before = from.1;
        for x in from.0..=to.0.min(self.size().0) {
            let y = height(x);
            // The column joins the one before without a hole and without being drawn twice.
            let start = if y > before + 1 {
                before + 1
            } else if before > y + 1 {
                before - 1
            } else {
                y
            };
            self.column(layer, x, (start, y));
            before = y;
        }
    }

    /// Puts the dots on a canvas.
    pub(super) fn draw(
        &self,
        canvas: &mut Canvas,
        (left, top): (u16, u16),
        styles: [Style; LAYERS],
    ) {
        for (y, row) in (top..).zip(0..self.rows) {
            for (x, column) in (left..).zip(0..self.columns) {
                let at = row * self.columns + column;
                let layer = (0..LAYERS).find(|layer| self.bits[*layer][at] != 0);
                if let Some(layer) = layer {
                    let glyph = self.glyph(layer, self.bits[layer][at]);
                    canvas.glyph(x, y, glyph, styles[layer]);
                }
            }
        }
    }

    fn glyph(&self, layer: usize, bits: u8) -> char {
        if self.cell == (1, 1) {
            return ['*', '.', ':'][layer];
        }
        char::from_u32(0x2800 + u32::from(bits)).unwrap_or(' ')
    }
}

#[cfg(test)]
mod tests {
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;

    use super::*;
    use crate::theme::{Depth, Theme};

    fn drawn(plot: &Plot) -> Vec<String> {
        let area = Rect::new(0, 0, 4, 2);
        let mut buf = Buffer::empty(area);
        let theme = Theme::new(Depth::None, false);
        plot.draw(&mut Canvas::new(&mut buf, area, theme), (0, 0), [Style::new(); LAYERS]);
        let row = |y| (0..4).map(|x| buf[(x, y)].symbol()).collect();
        vec![row(0), row(1)]
    }

    #[test]
    fn a_line_has_no_hole_and_covers_what_lies_below() {
        let mut plot = Plot::new(4, 2, false);
        plot.line(Layer::Other, (0, 0), (7, 0));
        plot.line(Layer::Selected, (0, 7), (7, 0));
        assert_eq!(drawn(&plot), ["⠉⠉⡠⠊", "⡠⠊  "]);
        let mut plot = Plot::new(4, 2, false);
        plot.line(Layer::Other, (2, 7), (3, 0));
        assert_eq!(drawn(&plot), [" ⢸  ", " ⡸  "]);
        let mut plot = Plot::new(4, 2, true);
        plot.line(Layer::Selected, (0, 1), (3, 0));
        assert_eq!(drawn(&plot), ["  **", "**  "]);
    }

    #[test]
    fn dots_outside_are_left_out() {
        let mut plot = Plot::new(0, 0, false);
        plot.line(Layer::Band, (0, 0), (9, 9));
        let mut plot = Plot::new(1, 1, true);
        plot.line(Layer::Band, (0, 50), (400, 3));
        plot.column(Layer::Other, 7, (usize::MAX, 0));
        plot.shade(7, (0, usize::MAX));
    }
}
