//! How roles look: colour depth, greys, glyphs. The only file that names a colour.
//!
//! Red and yellow mean critical and warning and nothing else; one accent marks the selection; the
//! rest is four greys. Every meaning has a glyph and a word too, so [`Depth::None`] loses nothing.
//! The environment is read by the program and passed in as text.

use probes::finding::Severity;
use ratatui::style::{Color, Modifier, Style};

/// How many colours the terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// None: bold, dim and reverse alone.
    None,
    /// The sixteen of the console.
    Sixteen,
    /// The palette of 256.
    Palette,
    /// 24 bits.
    True,
}

impl Depth {
    /// The depth that `NO_COLOR`, `COLORTERM` and `TERM` promise; an unset variable is empty.
    pub fn from_env(no_color: &str, colorterm: &str, term: &str) -> Self {
        if !no_color.is_empty() || term.is_empty() || term == "dumb" || term.starts_with("vt") {
            return Self::None;
        }
        let palette = if term.contains("256color") { Self::Palette } else { Self::Sixteen };
        // GNU screen hands COLORTERM of the outer terminal through, and garbles 24-bit colours; the
        // kernel's console rounds them badly.
        if term == "linux" || term.starts_with("screen") {
            return palette;
        }
        let deep = matches!(colorterm, "truecolor" | "24bit") || term.ends_with("-direct");
        if deep { Self::True } else { palette }
    }
}

/// Whether to draw with ASCII alone, from the locale (`LC_ALL`, else `LC_CTYPE`, else `LANG`) and
/// `TERM`. The kernel's console has no font for sparklines.
pub fn ascii_from_env(locale: &str, term: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    let utf8 = locale.contains("utf-8") || locale.contains("utf8");
    !utf8 || matches!(term, "linux" | "dumb" | "") || term.starts_with("vt")
}

/// The characters that carry meaning.
#[derive(Debug)]
pub struct Glyphs {
    /// Held by the largest holder.
    pub held: char,
    /// Reserved and unused.
    pub reserved: char,
    /// Other holders.
    pub others: char,
    /// Nobody visible.
    pub nobody: char,
    /// Free.
    pub free: char,
    /// Eight levels, lowest first.
    pub spark: [char; 8],
    /// Critical, warning, info.
    pub severity: [char; 3],
    /// The selected row.
    pub marker: char,
    /// A branch, the last branch and the trunk of a tree.
    pub tree: [&'static str; 3],
    /// Sorted downwards, upwards.
    pub order: [char; 2],
}

const UNICODE: Glyphs = Glyphs {
    held: '█',
    reserved: '▒',
    others: '▓',
    nobody: '░',
    free: '·',
    spark: ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
    severity: ['▲', '●', '·'],
    marker: '›',
    tree: ["├ ", "└ ", "│ "],
    order: ['↓', '↑'],
};

const ASCII: Glyphs = Glyphs {
    held: '#',
    reserved: '=',
    others: '+',
    nobody: '?',
    free: '.',
    spark: ['_', '.', ',', '-', '=', '+', '*', '#'],
    severity: ['!', '*', '.'],
    marker: '>',
    tree: ["|-", "`-", "| "],
    order: ['v', '^'],
};

/// How everything looks.
#[derive(Clone, Copy, Debug)]
pub struct Theme {
    depth: Depth,
    ascii: bool,
}

impl Theme {
    /// A theme for a terminal of this depth, with ASCII alone or with block characters.
    pub const fn new(depth: Depth, ascii: bool) -> Self {
        Self { depth, ascii }
    }

    /// Whether nothing but ASCII may be drawn.
    pub const fn is_ascii(self) -> bool {
        self.ascii
    }

    /// The characters to draw with.
    pub const fn glyphs(self) -> &'static Glyphs {
        if self.ascii { &ASCII } else { &UNICODE }
    }

    fn colour(self, sixteen: Color, palette: u8, rgb: (u8, u8, u8)) -> Color {
        match self.depth {
            Depth::None => Color::Reset,
            Depth::Sixteen => sixteen,
            Depth::Palette => Color::Indexed(palette),
            Depth::True => Color::Rgb(rgb.0, rgb.1, rgb.2),
        }
    }

    /// First grey: what is looked at, sums. Bold in the terminal's own colour, so that it reads on
    /// light and on dark ground.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Second grey: values.
    pub fn text(self) -> Style {
        Style::new()
    }

    /// Third grey: what is fine, unsupported or stale; labels.
    pub fn dim(self) -> Style {
        match self.depth {
            Depth::None => Style::new().add_modifier(Modifier::DIM),
            _ => Style::new().fg(self.colour(Color::DarkGray, 245, (138, 138, 138))),
        }
    }

    /// Fourth grey: empty parts of bars, lines of trees.
    pub fn faint(self) -> Style {
        match self.depth {
            Depth::None => Style::new().add_modifier(Modifier::DIM),
            _ => Style::new().fg(self.colour(Color::DarkGray, 240, (96, 96, 96))),
        }
    }

    /// Headings of columns and blocks.
    pub fn heading(self) -> Style {
        match self.depth {
            Depth::None => Style::new().add_modifier(Modifier::BOLD),
            _ => self.dim().add_modifier(Modifier::BOLD),
        }
    }

    /// Something critical.
    pub fn critical(self) -> Style {
        self.alarm(Color::LightRed, 203, (255, 95, 95))
    }

    /// Something to be warned of.
    pub fn warning(self) -> Style {
        self.alarm(Color::Yellow, 179, (224, 175, 70))
    }

    fn alarm(self, sixteen: Color, palette: u8, rgb: (u8, u8, u8)) -> Style {
        let style = Style::new().add_modifier(Modifier::BOLD);
        match self.depth {
            Depth::None => style,
            _ => style.fg(self.colour(sixteen, palette, rgb)),
        }
    }

    /// The style of a severity.
    pub fn severity(self, severity: Severity) -> Style {
        match severity {
            Severity::Critical => self.critical(),
            Severity::Warning => self.warning(),
            Severity::Info => self.dim(),
        }
    }

    /// The glyph of a severity.
    pub fn severity_glyph(self, severity: Severity) -> char {
        let glyphs = self.glyphs().severity;
        match severity {
            Severity::Critical => glyphs[0],
            Severity::Warning => glyphs[1],
            Severity::Info => glyphs[2],
        }
    }

    /// The ground of the selection; its foreground where none carries a meaning.
    pub fn selected(self) -> Style {
        match self.depth {
            Depth::None => Style::new().add_modifier(Modifier::REVERSED),
            _ => Style::new().bg(self.colour(Color::Blue, 24, (24, 72, 112))).fg(self.colour(
                Color::White,
                255,
                (238, 238, 238),
            )),
        }
    }

    /// Whether a foreground carries a meaning that the selection must not cover.
    pub fn is_alarm(self, colour: Color) -> bool {
        self.depth != Depth::None && [self.critical().fg, self.warning().fg].contains(&Some(colour))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_depth_follows_what_the_terminal_promises() {
        assert_eq!(Depth::from_env("1", "truecolor", "xterm-256color"), Depth::None);
        assert_eq!(Depth::from_env("", "truecolor", "dumb"), Depth::None);
        assert_eq!(Depth::from_env("", "truecolor", "xterm-256color"), Depth::True);
        assert_eq!(Depth::from_env("", "", "xterm-256color"), Depth::Palette);
        assert_eq!(Depth::from_env("", "", "xterm"), Depth::Sixteen);
        assert_eq!(Depth::from_env("", "", "tmux-256color"), Depth::Palette);
        assert_eq!(Depth::from_env("", "truecolor", "tmux-256color"), Depth::True);
        assert_eq!(Depth::from_env("", "truecolor", "screen-256color"), Depth::Palette);
        assert_eq!(Depth::from_env("", "", "screen"), Depth::Sixteen);
        assert_eq!(Depth::from_env("", "truecolor", "linux"), Depth::Sixteen);
        assert_eq!(Depth::from_env("", "", "putty"), Depth::Sixteen);
        assert_eq!(Depth::from_env("", "", "putty-256color"), Depth::Palette);
        assert_eq!(Depth::from_env("", "", "xterm-direct"), Depth::True);
    }

    #[test]
    fn a_terminal_without_utf8_gets_ascii() {
        assert!(ascii_from_env("C", "xterm"));
        assert!(ascii_from_env("de_DE.UTF-8", "linux"));
        assert!(!ascii_from_env("de_DE.UTF-8", "xterm-256color"));
        assert!(!ascii_from_env("C.utf8", "tmux"));
    }

    #[test]
    fn the_ascii_set_is_ascii_and_tells_all_fills_apart() {
        let g = Theme::new(Depth::None, true).glyphs();
        let mut fills = vec![g.held, g.reserved, g.others, g.nobody, g.free];
        assert!(fills.iter().chain(&g.spark).chain(&g.severity).all(char::is_ascii));
        fills.dedup();
        assert_eq!(fills.len(), 5);
    }
}
