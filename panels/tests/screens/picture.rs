//! A buffer as text, with its styles: the cells, then what each run of cells looks like. A lost
//! colour changes the text.
#![allow(dead_code, reason = "the bench and the tests each use a part")]

use std::fmt::Write;

use panels::theme::{Depth, Theme};
use panels::ui::Ui;
use panels::view::View;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};

/// A picture at this size, drawn by this state.
pub(crate) fn draw(ui: &mut Ui, view: &View, width: u16, height: u16) -> Buffer {
    let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
    let area = buf.area;
    ui.draw(view, area, &mut buf);
    buf
}

/// A new state with full colour.
pub(crate) fn ui() -> Ui {
    Ui::new(Theme::new(Depth::True, false))
}

/// The cells as lines of text.
pub(crate) fn lines(buf: &Buffer) -> Vec<String> {
    let mut out = Vec::new();
    for y in 0..buf.area.height {
        let mut line = String::new();
        let mut skip = 0;
        for x in 0..buf.area.width {
            let symbol = buf[(x, y)].symbol();
            if skip > 0 {
                skip -= 1;
                continue;
            }
            line.push_str(symbol);
            skip = unicode_width::UnicodeWidthStr::width(symbol).saturating_sub(1);
        }
        out.push(line.trim_end().to_string());
    }
    out
}

/// The cells as one text.
pub(crate) fn text(buf: &Buffer) -> String {
    lines(buf).join("\n")
}

fn letter(cell: &Cell) -> char {
    let critical = Color::Rgb(255, 95, 95);
    let warning = Color::Rgb(224, 175, 70);
    if cell.bg != Color::Reset || cell.modifier.contains(Modifier::REVERSED) {
        return if cell.fg == critical {
            'C'
        } else if cell.fg == warning {
            'W'
        } else {
            'S'
        };
    }
    let bold = cell.modifier.contains(Modifier::BOLD);
    match cell.fg {
        Color::Reset if bold => 'b',
        Color::Reset if cell.modifier.contains(Modifier::DIM) => 'd',
        Color::Reset => '.',
        colour if colour == critical => 'c',
        colour if colour == warning => 'w',
        Color::Rgb(138, _, _) if bold => 'h',
        Color::Rgb(138, _, _) => 'd',
        Color::Rgb(96, _, _) => 'f',
        _ => '?',
    }
}

/// Text and styles: `b` bold, `.` plain, `d` dim, `f` faint, `h` heading, `c` critical, `w` warning,
/// `S` selected (`C`, `W`: and critical, warning). Blank cells carry no style worth a letter.
pub(crate) fn with_styles(buf: &Buffer) -> String {
    let mut out = String::new();
    for (y, line) in (0..).zip(lines(buf)) {
        let _ = writeln!(out, "{line}");
        let mut styles = String::new();
        for x in 0..buf.area.width {
            let cell = &buf[(x, y)];
            let letter = letter(cell);
            let blank = cell.symbol() == " " && letter != 'S';
            styles.push(if blank { ' ' } else { letter });
        }
        let styles = styles.trim_end();
        if styles.chars().any(|c| c != '.' && c != ' ') {
            let _ = writeln!(out, "{styles}    <");
        }
    }
    out
}
