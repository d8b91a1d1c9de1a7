//! Facts in blocks, laid out in as many columns as fit: the detail pages.
//!
//! A fact is a label and a value; one that is missing carries its reason beside the dash.

use std::borrow::Cow;

use crate::canvas::Canvas;
use crate::text;
use crate::value::{Known, Value};

/// A block with a title.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    title: String,
    /// Behind the title, dim: an age, a count.
    note: String,
    facts: Vec<Fact>,
    fresh: bool,
}

#[derive(Clone, Debug)]
struct Fact {
    label: String,
    value: Value,
}

/// Columns of the labels of a block.
const LEAST_LABEL: u16 = 12;
const MOST_LABEL: u16 = 22;
/// Columns of a block, at least.
const LEAST: u16 = 38;

impl Block {
    /// An empty block.
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), fresh: true, ..Self::default() }
    }

    /// Sets what stands behind the title.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Draws values dim when they are not from now.
    pub(crate) fn fresh(mut self, fresh: bool) -> Self {
        self.fresh = fresh;
        self
    }

    /// Adds a fact.
    pub(crate) fn put(&mut self, label: impl Into<String>, value: Value) {
        self.facts.push(Fact { label: label.into(), value });
    }

    /// Adds a fact known by a text.
    pub(crate) fn text(&mut self, label: impl Into<String>, text: impl Into<String>) {
        self.put(label, Value::plain(text));
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    /// Columns of the labels: as many as the longest needs, within limits.
    fn label(&self, width: u16) -> u16 {
        let longest = self.facts.iter().map(|fact| text::width(&fact.label)).max().unwrap_or(0);
        (longest + 2).clamp(LEAST_LABEL, MOST_LABEL).min(width * 11 / 20)
    }

    fn rows(&self, width: u16) -> u16 {
        let room = width.saturating_sub(self.label(width));
        let facts: usize = self.facts.iter().map(|fact| fact.lines(room).len()).sum();
        u16::try_from(facts).unwrap_or(u16::MAX - 2) + 2
    }

    fn draw(&self, canvas: &mut Canvas, x: u16, y: u16, width: u16) {
        let theme = canvas.theme;
        let end = canvas.text_in(x, y, width, &self.title, theme.heading());
        let room = (x + width).saturating_sub(end + 2);
        canvas.text_in(end + 2, y, room, &self.note, theme.dim());
        let label = self.label(width);
        let room = width.saturating_sub(label);
        let mut row = y + 1;
        for fact in &self.facts {
            canvas.text_in(x, row, label.saturating_sub(1), &fact.label, theme.dim());
            let style = fact.value.style(theme, self.fresh);
            if let Some(severity) = fact.value.alarm {
                let glyph = theme.severity_glyph(severity);
                canvas.glyph((x + label).saturating_sub(2), row, glyph, style);
            }
            for line in fact.lines(room) {
                canvas.text_in(x + label, row, room, &line, style);
                row += 1;
            }
        }
    }
}

impl Fact {
    /// The value in rows; one that is missing with its reason.
    fn lines(&self, room: u16) -> Vec<String> {
        let words = if self.value.known == Known::Yes {
            Cow::Borrowed(self.value.text.as_str())
        } else {
            Cow::Owned(format!("{} {}", self.value.text, self.value.reason))
        };
        if text::width(&text::clean(&words)) <= room {
            return vec![text::clean(&words).into_owned()];
        }
        text::wrap(&words, room)
    }
}

/// Where each block goes: column and row; and how many rows all take.
fn layout(blocks: &[Block], width: u16) -> (u16, Vec<(u16, u16)>, u16) {
    let columns = (width / LEAST).clamp(1, 4);
    let each = width / columns;
    let heights: Vec<u16> = blocks.iter().map(|block| block.rows(each.saturating_sub(2))).collect();
    let all: u16 = heights.iter().fold(0, |sum, rows| sum.saturating_add(*rows));
    // Reading order goes down a column, so a column is filled to a fair share before the next.
    let tallest = heights.iter().copied().max().unwrap_or(0);
    let fair = tallest.max(all.div_ceil(columns));
    for limit in fair..=all.max(fair) {
        let (mut column, mut row, mut most) = (0, 0, 0);
        let mut places = Vec::with_capacity(blocks.len());
        for rows in &heights {
            if row > 0 && row + rows > limit + 1 {
                column += 1;
                row = 0;
            }
            places.push((column, row));
            row += rows;
            most = most.max(row);
        }
        if column < columns {
            return (each, places, most);
        }
    }
    (each, vec![(0, 0); blocks.len()], all)
}

/// Draws the blocks and returns the rows that they take in all.
pub(crate) fn draw(canvas: &mut Canvas, top: u16, blocks: &[Block]) -> u16 {
    let (each, places, rows) = layout(blocks, canvas.width());
    for (block, (column, row)) in blocks.iter().zip(places) {
        block.draw(canvas, column * each, top + row, each.saturating_sub(2).max(1));
    }
    rows
}

/// The rows that the blocks take.
pub(crate) fn rows(blocks: &[Block], width: u16) -> u16 {
    layout(blocks, width).2
}
