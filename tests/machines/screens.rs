//! Panels, drawn of a settled box into text.

use panels::theme::{Depth, Theme};
use panels::ui::Ui;
use panels::view::{Feed, Past, View};
use probes::finding::Finding;
use probes::history::History;
use probes::ledger::{Ledger, ledgers};
use probes::snapshot::Snapshot;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::normal::NOW_MS;

/// A minute of the same, so that sparklines are full.
const PAST: u64 = 60;

/// A settled box with all that a panel looks at.
pub struct Picture {
    pub snapshot: Snapshot,
    pub ledgers: Vec<Ledger>,
    pub findings: Vec<Finding>,
    history: History,
}

impl Picture {
    pub fn of(mut snapshot: Snapshot) -> Self {
        let mut history = History::new(300);
        for sequence in snapshot.sequence - PAST..=snapshot.sequence {
            history.push(&Snapshot { sequence, ..snapshot.clone() });
        }
        snapshot.interval_ms = 1000;
        let ledgers = ledgers(&snapshot);
        let findings = playbooks::judge(&snapshot);
        Self { snapshot, ledgers, findings, history }
    }
}

/// In the colours of an ordinary terminal, with block characters.
pub fn colour(picture: &Picture, panel: &str, size: (u16, u16)) -> String {
    draw(picture, panel, size, Theme::new(Depth::Palette, false))
}

/// Without colour, in ASCII alone.
pub fn plain(picture: &Picture, panel: &str, size: (u16, u16)) -> String {
    draw(picture, panel, size, Theme::new(Depth::None, true))
}

fn draw(picture: &Picture, panel: &str, (width, height): (u16, u16), theme: Theme) -> String {
    let feed = Feed { interval_ms: 1000, last_ms: Some(NOW_MS), ..Feed::default() };
    let view = View {
        snapshot: &picture.snapshot,
        ledgers: &picture.ledgers,
        history: &picture.history,
        findings: &picture.findings,
        feed: &feed,
        past: &Past::default(),
        now_ms: NOW_MS,
        utc_offset_seconds: 0,
    };
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    let mut ui = Ui::new(theme);
    assert!(ui.show(panel), "no panel {panel}");
    ui.draw(&view, area, &mut buffer);
    let mut text = String::new();
    for y in 0..height {
        let mut line = String::new();
        let mut skip = 0;
        for x in 0..width {
            // A wide letter covers the cell behind it.
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            skip = ratatui::text::Span::raw(symbol).width().saturating_sub(1);
            line.push_str(symbol);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
