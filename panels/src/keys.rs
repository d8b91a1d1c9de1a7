//! Every key, declared once. The bottom bar, the help page and what a press means all come from
//! [`KEYS`]; a panel's entry in the list of panels says which of the commands it answers.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// The first row.
    First,
    /// The last row.
    Last,
    /// The GPU before.
    Left,
    /// The GPU after.
    Right,
    /// Open what is selected.
    Open,
    /// Back to where one came from.
    Back,
    /// Type a filter.
    Filter,
    /// Sort by the next column.
    Sort,
    /// Turn the order around.
    Reverse,
    /// Show parents above their children.
    Tree,
    /// End the selected process.
    EndProcess,
    /// Copy what is selected.
    Copy,
    /// Hold the picture.
    Pause,
    /// A longer refresh interval.
    Slower,
    /// A shorter one.
    Faster,
    /// The panel after.
    NextPanel,
    /// The panel before.
    PreviousPanel,
    /// The panel with this number, counted from 0.
    Panel(usize),
    /// What this panel and its numbers mean.
    Help,
    /// Leave.
    Quit,
}

/// One entry of the bottom bar and of the help page.
pub struct Key {
    /// As shown.
    pub shown: &'static str,
    /// What it does, in a word or two.
    pub label: &'static str,
    /// What it does, in a sentence.
    pub help: &'static str,
    /// Works on every panel; otherwise on those whose entry names the command.
    pub everywhere: bool,
    /// In the bottom bar; the rest is on the help page alone.
    pub in_bar: bool,
    /// What to press for which command.
    pub chords: &'static [(KeyCode, Command)],
}

use KeyCode::Char;

/// The keys, in the order of the bottom bar.
pub const KEYS: &[Key] = &[
    Key {
        shown: "←→",
        label: "GPU",
        help: "Show the GPU before or after this one (also h and l).",
        everywhere: false,
        in_bar: true,
        chords: &[
            (KeyCode::Left, Command::Left),
            (KeyCode::Right, Command::Right),
            (Char('h'), Command::Left),
            (Char('l'), Command::Right),
        ],
    },
    Key {
        shown: "k",
        label: "end",
        help: "End the selected process: names what it will hit and asks for its pid. On panels \
               with this key, k does not move up; the arrows do.",
        everywhere: false,
        in_bar: true,
        chords: &[(Char('k'), Command::EndProcess)],
    },
    Key {
        shown: "/",
        label: "filter",
        help: "Show the rows that contain what is typed, in any column. Enter keeps the filter, \
               Esc drops it.",
        everywhere: false,
        in_bar: true,
        chords: &[(Char('/'), Command::Filter)],
    },
    Key {
        shown: "s",
        label: "sort",
        help: "Sort by the next column.",
        everywhere: false,
        in_bar: true,
        chords: &[(Char('s'), Command::Sort)],
    },
    Key {
        shown: "r",
        label: "reverse",
        help: "Turn the order around.",
        everywhere: false,
        in_bar: true,
        chords: &[(Char('r'), Command::Reverse)],
    },
    Key {
        shown: "t",
        label: "tree",
        help: "Show each process below its parent.",
        everywhere: false,
        in_bar: true,
        chords: &[(Char('t'), Command::Tree)],
    },
    Key {
        shown: "y",
        label: "copy",
        help: "Copy what is selected to the clipboard of the terminal.",
        everywhere: false,
        in_bar: true,
        chords: &[(Char('y'), Command::Copy)],
    },
    Key {
        shown: "enter",
        label: "open",
        help: "Open what is selected: a GPU, a process, a finding.",
        everywhere: false,
        in_bar: true,
        chords: &[(KeyCode::Enter, Command::Open)],
    },
    Key {
        shown: "↑↓",
        label: "move",
        help: "Move or scroll: also j and k, PgUp and PgDn, g and G, Home and End, the wheel.",
        everywhere: true,
        in_bar: true,
        chords: &[
            (KeyCode::Up, Command::Up),
            (KeyCode::Down, Command::Down),
            (Char('j'), Command::Down),
            (Char('k'), Command::Up),
            (KeyCode::PageUp, Command::PageUp),
            (KeyCode::PageDown, Command::PageDown),
            (Char('g'), Command::First),
            (Char('G'), Command::Last),
            (KeyCode::Home, Command::First),
            (KeyCode::End, Command::Last),
        ],
    },
    Key {
        shown: "tab",
        label: "panel",
        help: "Go to the next panel, with Shift to the one before; the digits go to one directly.",
        everywhere: true,
        in_bar: false,
        chords: &[
            (KeyCode::Tab, Command::NextPanel),
            (KeyCode::BackTab, Command::PreviousPanel),
            (Char('1'), Command::Panel(0)),
            (Char('2'), Command::Panel(1)),
            (Char('3'), Command::Panel(2)),
            (Char('4'), Command::Panel(3)),
            (Char('5'), Command::Panel(4)),
            (Char('6'), Command::Panel(5)),
            (Char('7'), Command::Panel(6)),
            (Char('8'), Command::Panel(7)),
            (Char('9'), Command::Panel(8)),
        ],
    },
    Key {
        shown: "space",
        label: "pause",
        help: "Hold the picture; reading goes on.",
        everywhere: true,
        in_bar: false,
        chords: &[(Char(' '), Command::Pause)],
    },
    Key {
        shown: "+ -",
        label: "interval",
        help: "Refresh less often or more often, 250 ms to 10 s.",
        everywhere: true,
        in_bar: false,
        chords: &[
            (Char('+'), Command::Slower),
            (Char('='), Command::Slower),
            (Char('-'), Command::Faster),
        ],
    },
    Key {
        shown: "esc",
        label: "back",
        help: "Go back to where you came from.",
        everywhere: true,
        in_bar: true,
        chords: &[(KeyCode::Esc, Command::Back)],
    },
    Key {
        shown: "shift drag",
        label: "mark text",
        help: "Mark text with the mouse: hold Shift, in some terminals Option or Fn, since a plain \
               click selects a row, a second one opens it, and the wheel moves.",
        everywhere: true,
        in_bar: true,
        chords: &[],
    },
    Key {
        shown: "?",
        label: "help",
        help: "What this panel shows and what its numbers mean.",
        everywhere: true,
        in_bar: true,
        chords: &[(Char('?'), Command::Help), (KeyCode::F(1), Command::Help)],
    },
    Key {
        shown: "q",
        label: "quit",
        help: "Leave; Ctrl-C does the same at any moment.",
        everywhere: true,
        in_bar: true,
        chords: &[(Char('q'), Command::Quit)],
    },
];

impl Key {
    /// Whether it works on a panel that answers these commands.
    pub fn works_with(&self, answered: &[Command]) -> bool {
        self.everywhere || self.chords.iter().any(|(_, command)| answered.contains(command))
    }
}

/// What a press means on a panel that answers these commands; a panel's own keys come first.
pub fn command(event: KeyEvent, answered: &[Command]) -> Option<Command> {
    if event.modifiers.contains(KeyModifiers::CONTROL) {
        return (event.code == Char('c')).then_some(Command::Quit);
    }
    if event.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    let chords = |everywhere: bool| {
        KEYS.iter()
            .filter(move |key| key.everywhere == everywhere && key.works_with(answered))
            .flat_map(|key| key.chords)
            .find(|(code, _)| *code == event.code)
            .map(|(_, command)| *command)
    };
    chords(false).or_else(|| chords(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    #[test]
    fn k_ends_a_process_only_where_a_panel_says_so() {
        assert_eq!(command(press(Char('k')), &[]), Some(Command::Up));
        assert_eq!(command(press(Char('k')), &[Command::EndProcess]), Some(Command::EndProcess));
        assert_eq!(command(press(KeyCode::Up), &[Command::EndProcess]), Some(Command::Up));
    }

    #[test]
    fn control_c_quits_and_other_control_keys_do_nothing() {
        let control = |c| KeyEvent::new(Char(c), KeyModifiers::CONTROL);
        assert_eq!(command(control('c'), &[]), Some(Command::Quit));
        assert_eq!(command(control('k'), &[Command::EndProcess]), None);
    }

    #[test]
    fn no_chord_is_declared_twice_in_the_same_place() {
        let mut seen = Vec::new();
        for key in KEYS {
            for (code, _) in key.chords {
                assert!(!seen.contains(&(key.everywhere, *code)), "{code:?} twice");
                seen.push((key.everywhere, *code));
            }
        }
    }
}
