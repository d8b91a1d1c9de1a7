//! All keys, and every panel with its numbers in plain words. Made from the lists of keys and panels.

use crate::canvas::Canvas;
use crate::keys::{Command, KEYS};
use crate::list::Scroll;
use crate::panels::{Entry, Focus, PANELS, Panel, Reply};
use crate::text;
use crate::view::View;

/// This panel in the list.
pub(super) const ENTRY: Entry = Entry {
    name: "help",
    purpose: "All keys, and every panel with its numbers in plain words.",
    answers: &[],
    explains: &[
        ("▲ ● ·", "Critical, warning, for your information."),
        (
            "█ ▓ ░ ▒ ·",
            "Memory of the largest holder, of other holders, of nobody visible, kept by \
                        the driver, free.",
        ),
        ("–", "Not supported here."),
        ("?", "Should be known and is not; the reason is shown when the row is selected."),
        ("dim numbers", "Not from now: the GPU does not answer, or its group is read more slowly."),
    ],
    make: || Box::<Help>::default(),
};

#[derive(Default)]
struct Help {
    scroll: Scroll,
}

/// Columns of a term.
const MARGIN: u16 = 20;

enum Line {
    Head(String),
    Text(String),
    Term(&'static str, String),
}

impl Panel for Help {
    fn subject(&self, _view: &View, _focus: &Focus) -> String {
        "help".into()
    }

    fn draw(&mut self, _view: &View, _focus: &Focus, canvas: &mut Canvas) {
        let lines = lines(canvas.width().saturating_sub(2).min(100));
        let rows = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        super::paged(canvas, &mut self.scroll, rows, |page| {
            let theme = page.theme;
            for (line, y) in lines.iter().zip(0..) {
                match line {
                    Line::Head(words) => page.text(0, y, words, theme.strong()),
                    Line::Text(words) => page.text(0, y, words, theme.text()),
                    Line::Term(term, words) => {
                        page.text_in(0, y, MARGIN - 1, term, theme.text());
                        page.text(MARGIN, y, words, theme.dim())
                    }
                };
            }
        });
    }

    fn command(&mut self, command: Command, _view: &View, _focus: &mut Focus) -> Reply {
        if self.scroll.command(command) { Reply::Redraw } else { Reply::Ignored }
    }
}

fn lines(width: u16) -> Vec<Line> {
    let mut out = vec![Line::Head("keys".into())];
    for key in KEYS {
        term(&mut out, key.shown, key.help, width);
    }
    for (at, entry) in PANELS.iter().enumerate() {
        out.push(Line::Text(String::new()));
        out.push(Line::Head(format!("{} {}", at + 1, entry.name)));
        out.extend(text::wrap(entry.purpose, width).into_iter().map(Line::Text));
        for (name, words) in entry.explains {
            term(&mut out, name, words, width);
        }
    }
    out
}

fn term(out: &mut Vec<Line>, name: &'static str, words: &str, width: u16) {
    let mut name = name;
    if text::width(name) >= MARGIN {
        out.push(Line::Text(name.into()));
        name = "";
    }
    for line in text::wrap(words, width.saturating_sub(MARGIN)) {
        out.push(Line::Term(name, line));
        name = "";
    }
}
