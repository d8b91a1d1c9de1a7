//! Columns of a table: which fit a width, their heads, their cells. One unit a column, numbers to
//! the right, the same place in every frame.

use crate::canvas::Canvas;
use crate::value::Value;
use crate::view::View;

/// A column over rows of `T`.
pub(crate) struct Column<T: ?Sized + 'static> {
    /// Its head.
    pub(crate) head: &'static str,
    /// Its columns on the screen.
    pub(crate) width: u16,
    /// Words stand at the left, numbers at the right.
    pub(crate) words: bool,
    /// Order in which columns are taken as the width grows.
    pub(crate) rank: u8,
    /// The cell.
    pub(crate) pick: fn(&T, &View) -> Value,
}

impl<T: ?Sized> Column<T> {
    /// A column of numbers.
    pub(crate) const fn number(
        head: &'static str,
        width: u16,
        rank: u8,
        pick: fn(&T, &View) -> Value,
    ) -> Self {
        Self { head, width, words: false, rank, pick }
    }

    /// A column of words.
    pub(crate) const fn words(
        head: &'static str,
        width: u16,
        rank: u8,
        pick: fn(&T, &View) -> Value,
    ) -> Self {
        Self { head, width, words: true, rank, pick }
    }
}

/// The columns that fit, in their order, and the room that they leave. A column is taken only when
/// all of lower rank are.
pub(crate) fn fitting<T: ?Sized>(
    columns: &'static [Column<T>],
    mut room: u16,
) -> (Vec<&'static Column<T>>, u16) {
    let mut ranks: Vec<u8> = columns.iter().map(|column| column.rank).collect();
    ranks.sort_unstable();
    let mut cut = u8::MAX;
    for rank in ranks {
        // Columns of one rank are taken in their order, so that the place is used.
        cut = rank;
        let need: u16 =
            columns.iter().filter(|column| column.rank <= cut).map(|column| column.width + 1).sum();
        if need > room {
            break;
        }
        cut = u8::MAX;
    }
    let below: u16 =
        columns.iter().filter(|column| column.rank < cut).map(|column| column.width + 1).sum();
    room = room.saturating_sub(below);
    let mut taken = Vec::with_capacity(columns.len());
    for column in columns {
        if column.rank < cut {
            taken.push(column);
        } else if column.rank == cut && column.width < room {
            room -= column.width + 1;
            taken.push(column);
        }
    }
    (taken, room)
}

/// Draws the heads; returns the column after the last. `sorted` gets a mark behind its head.
pub(crate) fn heads<T: ?Sized>(
    canvas: &mut Canvas,
    mut x: u16,
    y: u16,
    columns: &[&Column<T>],
    sorted: Option<(&str, char)>,
) -> u16 {
    let theme = canvas.theme;
    for column in columns {
        let mut style = theme.heading();
        let mut head = column.head.to_string();
        if let Some((name, order)) = sorted
            && name == column.head
        {
            style = theme.strong();
            head.push(order);
        }
        if column.words {
            canvas.text_in(x, y, column.width, &head, style);
        } else {
            // A mark may stand in the gap before the column.
            canvas.right(x.saturating_sub(1), y, column.width + 1, &head, style);
        }
        x = x.saturating_add(column.width + 1);
    }
    x
}

/// Draws a row's cells; returns the column after the last.
pub(crate) fn cells<T: ?Sized>(
    canvas: &mut Canvas,
    mut x: u16,
    y: u16,
    columns: &[&Column<T>],
    row: &T,
    view: &View,
    fresh: bool,
) -> u16 {
    let theme = canvas.theme;
    for column in columns {
        let value = (column.pick)(row, view);
        let style = value.style(theme, fresh);
        if column.words {
            canvas.text_in(x, y, column.width, &value.text, style);
        } else {
            canvas.right(x, y, column.width, &value.text, style);
        }
        x = x.saturating_add(column.width + 1);
    }
    x
}
