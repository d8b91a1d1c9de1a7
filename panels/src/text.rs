//! Text of unknown origin made fit for a terminal: cleaned, measured in columns, cut, wrapped.
//!
//! Names and command lines come from processes and may hold anything. Control characters, bidi
//! overrides and invisible characters never reach the screen; each becomes one replacement
//! character, so that two names which differ only in them still look odd.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

const REPLACEMENT: char = '\u{fffd}';

fn is_unfit(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

/// The text without anything that could move the cursor or hide.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if is_plain(text) || !text.chars().any(is_unfit) {
        return Cow::Borrowed(text);
    }
    text.chars()
        .map(|c| match c {
            '\t' | '\n' | '\r' => ' ',
            c if is_unfit(c) => REPLACEMENT,
            c => c,
        })
        .collect()
}

/// How many columns a cleaned text takes.
pub(crate) fn width(text: &str) -> u16 {
    let columns = if is_plain(text) { text.len() } else { text.width() };
    u16::try_from(columns).unwrap_or(u16::MAX)
}

/// The text cut to a number of columns; a cut is shown by `…`.
pub(crate) fn fit(text: &str, columns: u16) -> Cow<'_, str> {
    let text = clean(text);
    if width(&text) <= columns {
        return text;
    }
    let Some(room) = columns.checked_sub(1) else { return Cow::Borrowed("") };
    let mut out = String::with_capacity(usize::from(columns) + 2);
    let mut taken = 0;
    for c in text.chars() {
        taken += u16::try_from(c.width().unwrap_or(0)).unwrap_or(0);
        if taken > room {
            break;
        }
        out.push(c);
    }
    out.push('…');
    Cow::Owned(out)
}

/// The text in lines of at most `columns`, broken at spaces where there are any.
pub(crate) fn wrap(text: &str, columns: u16) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in clean(text).split(' ').filter(|word| !word.is_empty()) {
        let gap = u16::from(!line.is_empty());
        if width(&line) + gap + width(word) <= columns {
            if gap == 1 {
                line.push(' ');
            }
            line.push_str(word);
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for c in word.chars() {
            let next = u16::try_from(c.width().unwrap_or(0)).unwrap_or(0);
            if width(&line) + next > columns && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// The twin of a character for terminals that draw ASCII alone; always one column wide.
pub(crate) fn ascii_twin(c: char) -> char {
    match c {
        ' '..='~' => c,
        '–' | '─' | '—' | '‐' | '−' => '-',
        '·' => '.',
        '█' => '#',
        '▒' | '━' => '=',
        '│' | '┃' | '▏' => '|',
        '▓' | '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '╭' | '╮' | '╰' | '╯' => {
            '+'
        }
        '×' => 'x',
        '…' => '~',
        '→' | '▸' | '›' => '>',
        '←' | '◂' => '<',
        '↑' => '^',
        '↓' => 'v',
        '●' => '*',
        '▲' => '!',
        '“' | '”' => '"',
        '°' | '’' | '‘' => '\'',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_move_the_cursor_or_turn_the_line_around() {
        assert_eq!(clean("a\x1b[2Jb\u{202e}c\nd"), "a\u{fffd}[2Jb\u{fffd}c d");
        assert_eq!(clean("plain"), "plain");
    }

    #[test]
    fn wide_letters_count_two_columns_and_are_never_cut_in_half() {
        assert_eq!(width("推理"), 4);
        assert_eq!(fit("推理服务", 6), "推理…");
        assert_eq!(fit("推理服务", 8), "推理服务");
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("abc", 0), "");
    }

    #[test]
    fn lines_break_at_spaces_and_long_words_break_anywhere() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("", 3), [""]);
    }
}
