//! Selection and scrolling. A selection is a key, not a place: rows may move between two frames and
//! the selection moves with its row.

use std::ops::Range;

use crate::keys::Command;

/// The selection in a list of rows with keys.
#[derive(Clone, Debug)]
pub(crate) struct List<K> {
    keys: Vec<K>,
    selected: Option<K>,
    /// Where the selected row was last, for when it is gone.
    at: usize,
    offset: usize,
    page: usize,
    /// Screen row and place in `keys` of what was drawn last, for the mouse.
    hits: Vec<(u16, usize)>,
}

impl<K> Default for List<K> {
    fn default() -> Self {
        Self { keys: Vec::new(), selected: None, at: 0, offset: 0, page: 1, hits: Vec::new() }
    }
}

impl<K: Clone + PartialEq> List<K> {
    /// Takes the rows of this frame. A selected row that is gone hands over to the one now in its
    /// place.
    pub(crate) fn set(&mut self, keys: Vec<K>) {
        self.keys = keys;
        self.hits.clear();
        let found = self.selected.as_ref().and_then(|key| self.keys.iter().position(|k| k == key));
        self.at = found.unwrap_or(self.at).min(self.keys.len().saturating_sub(1));
        self.selected = self.keys.get(self.at).cloned();
    }

    /// The selected row's key.
    pub(crate) fn selected(&self) -> Option<&K> {
        self.selected.as_ref()
    }

    /// Selects a key, now or as soon as a frame has it.
    pub(crate) fn choose(&mut self, key: K) {
        self.selected = Some(key);
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether the row at this place is the selected one.
    pub(crate) fn is_at(&self, at: usize) -> bool {
        self.at == at && !self.keys.is_empty()
    }

    /// The rows to show in `height` lines, with the selected one among them.
    pub(crate) fn window(&mut self, height: u16) -> Range<usize> {
        self.page = usize::from(height.max(1));
        window(&mut self.offset, Some(self.at), self.keys.len(), usize::from(height))
    }

    /// Sets how far a page key goes, for lists that scroll in parts.
    pub(crate) fn set_page(&mut self, rows: usize) {
        self.page = rows.max(1);
    }

    /// The place of the selected row.
    pub(crate) fn place(&self) -> usize {
        self.at
    }

    /// Remembers where a row was drawn.
    pub(crate) fn drawn(&mut self, screen_row: Option<u16>, at: usize) {
        if let Some(row) = screen_row {
            self.hits.push((row, at));
        }
    }

    /// Moves the selection; false when the command is none that moves.
    pub(crate) fn command(&mut self, command: Command) -> bool {
        let last = self.keys.len().saturating_sub(1);
        let to = match command {
            Command::Up => self.at.saturating_sub(1),
            Command::Down => self.at + 1,
            Command::PageUp => self.at.saturating_sub(self.page),
            Command::PageDown => self.at + self.page,
            Command::First => 0,
            Command::Last => last,
            _ => return false,
        };
        self.at = to.min(last);
        self.selected = self.keys.get(self.at).cloned();
        true
    }

    /// A click on a screen row. `Some(true)` when it hit the row that was selected already.
    pub(crate) fn click(&mut self, screen_row: u16) -> Option<bool> {
        let (_, at) = *self.hits.iter().find(|(row, _)| *row == screen_row)?;
        let again = self.at == at;
        self.at = at;
        self.selected = self.keys.get(at).cloned();
        Some(again)
    }
}

/// Moves `offset` as little as needed so that `at` is within `height` rows, and gives the rows.
pub(crate) fn window(
    offset: &mut usize,
    at: Option<usize>,
    count: usize,
    height: usize,
) -> Range<usize> {
    if let Some(at) = at {
        if at < *offset {
            *offset = at;
        } else if at >= *offset + height {
            *offset = at + 1 - height.min(at + 1);
        }
    }
    *offset = (*offset).min(count.saturating_sub(height));
    *offset..(*offset + height).min(count)
}

/// A page of text that scrolls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scroll {
    offset: u16,
    most: u16,
    page: u16,
}

impl Scroll {
    /// Takes the size of what is shown, and gives the row to start from.
    pub(crate) fn set(&mut self, rows: u16, height: u16) -> u16 {
        self.most = rows.saturating_sub(height);
        self.page = height.max(1);
        self.offset = self.offset.min(self.most);
        self.offset
    }

    /// Scrolls; false when the command is none that moves.
    pub(crate) fn command(&mut self, command: Command) -> bool {
        self.offset = match command {
            Command::Up => self.offset.saturating_sub(1),
            Command::Down => self.offset.saturating_add(1),
            Command::PageUp => self.offset.saturating_sub(self.page),
            Command::PageDown => self.offset.saturating_add(self.page),
            Command::First => 0,
            Command::Last => self.most,
            _ => return false,
        }
        .min(self.most);
        true
    }

    /// `2–20 of 64` when not all is shown.
    pub(crate) fn note(&self, rows: u16) -> Option<String> {
        (self.most > 0).then(|| {
            format!("{}–{} of {rows}", self.offset + 1, (self.offset + self.page).min(rows))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selection_stays_with_its_row_when_rows_move() {
        let mut list = List::default();
        list.set(vec![1, 2, 3]);
        list.command(Command::Down);
        list.set(vec![2, 3, 1]);
        assert_eq!(list.selected(), Some(&2));
        assert_eq!(list.place(), 0);
    }

    #[test]
    fn a_row_that_is_gone_hands_over_to_the_one_in_its_place() {
        let mut list = List::default();
        list.set(vec![1, 2, 3]);
        list.command(Command::Last);
        list.set(vec![1, 2]);
        assert_eq!(list.selected(), Some(&2));
        list.set(vec![]);
        assert_eq!(list.selected(), None);
        list.set(vec![7]);
        assert_eq!(list.selected(), Some(&7));
    }

    #[test]
    fn the_window_follows_the_selection() {
        let mut offset = 0;
        assert_eq!(window(&mut offset, Some(12), 64, 8), 5..13);
        assert_eq!(window(&mut offset, Some(5), 64, 8), 5..13);
        assert_eq!(window(&mut offset, Some(0), 64, 8), 0..8);
        assert_eq!(window(&mut offset, None, 4, 8), 0..4);
        assert_eq!(window(&mut offset, Some(3), 4, 0), 4..4);
    }
}
