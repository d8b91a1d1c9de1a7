//! Any snapshot in terminals of any size, under any keys. Input: a snapshot, then width, height and
//! look of the terminal, then keys.

#![no_main]

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use panels::theme::{Depth, Theme};
use panels::ui::{Action, Ui};
use panels::view::{Feed, Source, View};
use probes::history::History;
use probes::ledger::ledgers;
use probes::snapshot::Snapshot;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

const KEYS: &[KeyCode] = &[
    KeyCode::Up,
    KeyCode::Down,
    KeyCode::PageUp,
    KeyCode::PageDown,
    KeyCode::Home,
    KeyCode::End,
    KeyCode::Left,
    KeyCode::Right,
    KeyCode::Enter,
    KeyCode::Esc,
    KeyCode::Tab,
    KeyCode::BackTab,
    KeyCode::Backspace,
    KeyCode::F(1),
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((_, rest)) = infertop_fuzz::split(bytes) else { return };
    let Ok(snapshot) = Snapshot::decode(bytes) else { return };
    let &[width, height, look, ref keys @ ..] = rest else { return };
    let mut history = History::new(60);
    for sequence in 0..4 {
        history.push(&Snapshot { sequence, ..snapshot.clone() });
    }
    let findings = playbooks::judge(&snapshot);
    let feed = Feed {
        source: [Source::Live, Source::Daemon, Source::Recording][usize::from(look) % 3].clone(),
        interval_ms: u64::from(look) * 100,
        last_ms: (look % 5 > 0).then_some(snapshot.taken_at_ms),
        ..Feed::default()
    };
    let view = View {
        snapshot: &snapshot,
        ledgers: &ledgers(&snapshot),
        history: &history,
        findings: &findings,
        past: &panels::view::Past::default(),
        feed: &feed,
        now_ms: snapshot.taken_at_ms.saturating_add(u64::from(look)),
        utc_offset_seconds: i32::from(look) * 300 - 36_000,
    };
    let ascii = look % 7 == 0;
    let depth = [Depth::None, Depth::True][usize::from(look & 1)];
    let mut ui = Ui::new(Theme::new(depth, ascii));
    let area = Rect::new(0, 0, u16::from(width), u16::from(height) % 80);
    check(&mut ui, &view, area, ascii);
    for &key in keys.iter().take(24) {
        let action = match key {
            0..=31 => ui.key(KeyEvent::from(KEYS[usize::from(key) % KEYS.len()]), &view),
            32..=126 => ui.key(KeyEvent::from(KeyCode::Char(char::from(key))), &view),
            127..=160 => {
                let letter = KeyCode::Char(char::from(b'a' + (key - 127) % 26));
                ui.key(KeyEvent::new(letter, KeyModifiers::CONTROL), &view)
            }
            _ => {
                let kinds = [
                    MouseEventKind::Down(MouseButton::Left),
                    MouseEventKind::ScrollUp,
                    MouseEventKind::ScrollDown,
                ];
                let event = MouseEvent {
                    kind: kinds[usize::from(key % 3)],
                    column: u16::from(key),
                    row: u16::from(key - 161),
                    modifiers: KeyModifiers::NONE,
                };
                ui.mouse(event, &view, area)
            }
        };
        if let Action::Kill { pid, start_ticks, .. } = action {
            let shown = |start: Option<u64>| start == Some(start_ticks);
            let mut processes = snapshot.processes.iter();
            assert!(processes.any(|p| p.pid == pid && shown(p.start_ticks.get())));
        }
        check(&mut ui, &view, area, ascii);
    }
});

/// Draws twice: the same cells both times, and nothing in them that moves a cursor.
fn check(ui: &mut Ui, view: &View, area: Rect, ascii: bool) {
    let mut first = Buffer::empty(area);
    ui.draw(view, area, &mut first);
    let mut second = Buffer::empty(area);
    ui.draw(view, area, &mut second);
    assert!(first == second, "same view, same cells");
    for cell in &first.content {
        let symbol = cell.symbol();
        assert!(!symbol.chars().any(char::is_control), "{symbol:?} in a cell");
        assert!(!ascii || symbol.is_ascii(), "{symbol:?} in a terminal for ASCII");
    }
}

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    infertop_fuzz::mutate(data, size, max_size, seed)
});
