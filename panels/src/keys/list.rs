//! The keys themselves, a uniform list.

use crossterm::event::KeyCode::{self, Char};

use super::{Command, Key, When};

/// An entry with the usual answers.
const KEY: Key = Key {
    shown: "",
    label: "",
    help: "",
    everywhere: false,
    when: When::Always,
    in_bar: Some(When::Always),
    shift: false,
    chords: &[],
};

/// The keys, in the order of the bottom bar.
pub const KEYS: &[Key] = &[
    Key {
        shown: "←→",
        label: "GPU",
        help: "Show the GPU before or after this one (also h and l).",
        when: When::Live,
        chords: &[
            (KeyCode::Left, Command::Left),
            (KeyCode::Right, Command::Right),
            (Char('h'), Command::Left),
            (Char('l'), Command::Right),
        ],
        ..KEY
    },
    Key {
        shown: "h l",
        label: "GPU",
        help: "Show the GPU before or after this one; the arrows move in time now.",
        when: When::Travelling,
        chords: &[(Char('h'), Command::Left), (Char('l'), Command::Right)],
        ..KEY
    },
    Key {
        shown: "k",
        label: "end",
        help: "End the selected process: names what it will hit and asks for its pid. On panels \
               with this key, k does not move up; the arrows do. Nothing is sent from a picture \
               of the past.",
        in_bar: Some(When::Live),
        chords: &[(Char('k'), Command::EndProcess)],
        ..KEY
    },
    Key {
        shown: "/",
        label: "filter",
        help: "Show the rows that contain what is typed, in any column. Enter keeps the filter, \
               Esc drops it.",
        chords: &[(Char('/'), Command::Filter)],
        ..KEY
    },
    Key {
        shown: "s",
        label: "sort",
        help: "Sort by the next column.",
        chords: &[(Char('s'), Command::Sort)],
        ..KEY
    },
    Key {
        shown: "r",
        label: "reverse",
        help: "Turn the order around.",
        chords: &[(Char('r'), Command::Reverse)],
        ..KEY
    },
    Key {
        shown: "t",
        label: "tree",
        help: "Show each process below its parent.",
        chords: &[(Char('t'), Command::Tree)],
        ..KEY
    },
    Key {
        shown: "m",
        label: "metric",
        help: "Choose the metric to draw; typing narrows the list.",
        chords: &[(Char('m'), Command::Metric)],
        ..KEY
    },
    Key {
        shown: "z Z",
        label: "zoom",
        help: "A shorter or a longer stretch of time, 2 minutes to all that is remembered; also + \
               and -.",
        chords: &[
            (Char('z'), Command::ZoomIn),
            (Char('Z'), Command::ZoomOut),
            (Char('+'), Command::ZoomIn),
            (Char('='), Command::ZoomIn),
            (Char('-'), Command::ZoomOut),
        ],
        ..KEY
    },
    Key {
        shown: "o",
        label: "only",
        help: "Draw the selected curve alone, on a scale of its own, or all again.",
        chords: &[(Char('o'), Command::Only)],
        ..KEY
    },
    Key {
        shown: "y",
        label: "copy",
        help: "Copy what is selected to the clipboard of the terminal.",
        chords: &[(Char('y'), Command::Copy)],
        ..KEY
    },
    Key {
        shown: "enter",
        label: "open",
        help: "Open what is selected: a GPU, a process, a finding.",
        chords: &[(KeyCode::Enter, Command::Open)],
        ..KEY
    },
    Key {
        shown: "↑↓",
        label: "move",
        help: "Move or scroll: also j and k, PgUp and PgDn, g and G, Home and End, the wheel.",
        everywhere: true,
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
        ..KEY
    },
    Key {
        shown: "tab",
        label: "panel",
        help: "Go to the next panel, with Shift to the one before; the digits go to one directly.",
        everywhere: true,
        in_bar: None,
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
        ..KEY
    },
    Key {
        shown: "←→",
        label: "time",
        help: "Earlier or later: by a snapshot, on history by a column of the chart. ← leads from \
               the live picture into the past, except where it changes the GPU.",
        everywhere: true,
        in_bar: Some(When::WithPast),
        chords: &[(KeyCode::Left, Command::Earlier), (KeyCode::Right, Command::Later)],
        ..KEY
    },
    Key {
        shown: "esc",
        label: "live",
        help: "Back from the past to what is live.",
        everywhere: true,
        when: When::Past,
        chords: &[(KeyCode::Esc, Command::Newest)],
        ..KEY
    },
    Key {
        shown: "space",
        label: "play",
        help: "Let the recorded time run, or stop it.",
        everywhere: true,
        when: When::Travelling,
        in_bar: Some(When::Travelling),
        chords: &[(Char(' '), Command::Play)],
        ..KEY
    },
    Key {
        shown: "[ ]",
        label: "events",
        help: "Go to what happened before or after this moment: findings, Xids, restarts, driver \
               changes. [ leads into the past.",
        everywhere: true,
        in_bar: Some(When::Travelling),
        chords: &[(Char('['), Command::MarkBefore), (Char(']'), Command::MarkAfter)],
        ..KEY
    },
    Key {
        shown: "@",
        label: "go to",
        help: "Type the time to go to: 03:12, 03:12:07, -2h, -3d, 2026-11-30 14:00.",
        everywhere: true,
        in_bar: Some(When::Travelling),
        chords: &[(Char('@'), Command::TypeTime)],
        ..KEY
    },
    Key {
        shown: ", .",
        label: "snapshot",
        help: "Earlier or later by a snapshot, on every panel.",
        everywhere: true,
        in_bar: None,
        chords: &[(Char(','), Command::TickEarlier), (Char('.'), Command::TickLater)],
        ..KEY
    },
    Key {
        shown: "shift ←→",
        label: "minute",
        help: "Earlier or later by a minute, on history by a tenth of the stretch; also < and >. \
               Leads into the past from every panel.",
        everywhere: true,
        in_bar: None,
        shift: true,
        chords: &[
            (KeyCode::Left, Command::JumpEarlier),
            (KeyCode::Right, Command::JumpLater),
            (Char('<'), Command::JumpEarlier),
            (Char('>'), Command::JumpLater),
        ],
        ..KEY
    },
    Key {
        shown: "home end",
        label: "oldest, newest",
        help: "While the picture is of the past: the oldest moment, the newest one. End is live \
               again, or the end of a recording. The first and last row are g and G then.",
        everywhere: true,
        when: When::Travelling,
        in_bar: None,
        chords: &[(KeyCode::Home, Command::Oldest), (KeyCode::End, Command::Newest)],
        ..KEY
    },
    Key {
        shown: "space",
        label: "pause",
        help: "Hold the picture; reading goes on.",
        everywhere: true,
        in_bar: None,
        chords: &[(Char(' '), Command::Pause)],
        ..KEY
    },
    Key {
        shown: "+ -",
        label: "interval",
        help: "Refresh less often or more often, 250 ms to 10 s.",
        everywhere: true,
        in_bar: None,
        chords: &[
            (Char('+'), Command::Slower),
            (Char('='), Command::Slower),
            (Char('-'), Command::Faster),
        ],
        ..KEY
    },
    Key {
        shown: "esc",
        label: "back",
        help: "Go back to where you came from.",
        everywhere: true,
        chords: &[(KeyCode::Esc, Command::Back)],
        ..KEY
    },
    Key {
        shown: "shift drag",
        label: "mark text",
        help: "Mark text with the mouse: hold Shift, in some terminals Option or Fn, since a plain \
               click selects a row, a second one opens it, and the wheel moves.",
        everywhere: true,
        chords: &[],
        ..KEY
    },
    Key {
        shown: "?",
        label: "help",
        help: "What this panel shows and what its numbers mean.",
        everywhere: true,
        chords: &[(Char('?'), Command::Help), (KeyCode::F(1), Command::Help)],
        ..KEY
    },
    Key {
        shown: "q",
        label: "quit",
        help: "Leave; Ctrl-C does the same at any moment.",
        everywhere: true,
        chords: &[(Char('q'), Command::Quit)],
        ..KEY
    },
];
