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
    /// Choose a metric.
    Metric,
    /// A shorter stretch of time.
    ZoomIn,
    /// A longer one.
    ZoomOut,
    /// Draw the selected curve alone, or all.
    Only,
    /// End the selected process.
    EndProcess,
    /// Copy what is selected.
    Copy,
    /// Hold the picture.
    Pause,
    /// A moment earlier: the snapshot before, or what the panel takes for a step.
    Earlier,
    /// A moment later.
    Later,
    /// The snapshot before.
    TickEarlier,
    /// The snapshot after.
    TickLater,
    /// A minute earlier, or what the panel takes for a long step.
    JumpEarlier,
    /// A minute later.
    JumpLater,
    /// The oldest moment that is recorded.
    Oldest,
    /// The newest: live again, or the end of the recording.
    Newest,
    /// Let the time run, or stop it.
    Play,
    /// What happened before the moment that is shown.
    MarkBefore,
    /// What happened after it.
    MarkAfter,
    /// Type a time to go to.
    TypeTime,
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

/// Of which time the picture is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tense {
    /// Live, and nothing else can be shown.
    Live,
    /// Live, with a past to travel to.
    LiveWithPast,
    /// A past that leads back to the present.
    Past,
    /// A recording, which has no present.
    Recording,
}

/// In which tenses a key works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// In all.
    Always,
    /// While the picture is live.
    Live,
    /// While it is of the past.
    Travelling,
    /// While it is of a past that leads back to the present.
    Past,
    /// While there is a past, wherever the picture is.
    WithPast,
}

impl When {
    fn holds(self, tense: Tense) -> bool {
        let live = matches!(tense, Tense::Live | Tense::LiveWithPast);
        match self {
            Self::Always => true,
            Self::Live => live,
            Self::Travelling => !live,
            Self::Past => tense == Tense::Past,
            Self::WithPast => tense != Tense::Live,
        }
    }
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
    /// Of which time the picture must be. What is for one time goes before what is for all.
    pub when: When,
    /// When it is in the bottom bar; else it is on the help page alone.
    pub in_bar: Option<When>,
    /// Arrows of this entry are pressed with Shift.
    pub shift: bool,
    /// What to press for which command.
    pub chords: &'static [(KeyCode, Command)],
}

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

use KeyCode::Char;

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

impl Key {
    /// Whether it stands before the panel's own keys in the bottom bar: it moves in time.
    pub(crate) fn is_of_time(&self) -> bool {
        self.everywhere && (self.in_bar, self.when) != (Some(When::Always), When::Always)
    }

    /// Whether it works on a panel that answers these commands.
    pub fn works_with(&self, answered: &[Command]) -> bool {
        self.everywhere || self.chords.iter().any(|(_, command)| answered.contains(command))
    }

    /// Whether it is in the bottom bar of a panel that answers these commands: another key that goes
    /// before it may have taken all of its chords.
    pub(crate) fn is_in_bar(&self, answered: &[Command], tense: Tense) -> bool {
        let told = self.in_bar.is_some_and(|when| when.holds(tense));
        let mut chords = self.chords.iter();
        told && self.when.holds(tense)
            && self.works_with(answered)
            && (self.chords.is_empty()
                || chords.any(|(code, meant)| {
                    let shift = if self.shift { KeyModifiers::SHIFT } else { KeyModifiers::NONE };
                    command(KeyEvent::new(*code, shift), answered, tense) == Some(*meant)
                }))
    }

    fn is_pressed(&self, code: KeyCode, event: KeyEvent) -> bool {
        // A letter is another one with Shift already; on other keys it changes nothing.
        let arrow = matches!(code, KeyCode::Left | KeyCode::Right);
        let shift = event.modifiers.contains(KeyModifiers::SHIFT);
        code == event.code && (!arrow || shift == self.shift)
    }
}

/// What a press means on a panel that answers these commands. What is for one tense goes before what
/// is for all, and then a panel's own keys before those that work everywhere.
pub fn command(event: KeyEvent, answered: &[Command], tense: Tense) -> Option<Command> {
    if event.modifiers.contains(KeyModifiers::CONTROL) {
        return (event.code == Char('c')).then_some(Command::Quit);
    }
    if event.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    let find = |always: bool, everywhere: bool| {
        KEYS.iter()
            .filter(|key| (key.when == When::Always) == always && key.when.holds(tense))
            .filter(|key| key.everywhere == everywhere && key.works_with(answered))
            .find_map(|key| {
                let mut chords = key.chords.iter();
                chords.find(|(code, _)| key.is_pressed(*code, event)).map(|(_, command)| *command)
            })
    };
    find(false, false)
        .or_else(|| find(false, true))
        .or_else(|| find(true, false))
        .or_else(|| find(true, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    #[test]
    fn k_ends_a_process_only_where_a_panel_says_so() {
        assert_eq!(command(press(Char('k')), &[], Tense::Live), Some(Command::Up));
        assert_eq!(
            command(press(Char('k')), &[Command::EndProcess], Tense::Live),
            Some(Command::EndProcess)
        );
        assert_eq!(
            command(press(KeyCode::Up), &[Command::EndProcess], Tense::Live),
            Some(Command::Up)
        );
    }

    #[test]
    fn control_c_quits_and_other_control_keys_do_nothing() {
        let control = |c| KeyEvent::new(Char(c), KeyModifiers::CONTROL);
        assert_eq!(command(control('c'), &[], Tense::Live), Some(Command::Quit));
        assert_eq!(command(control('k'), &[Command::EndProcess], Tense::Live), None);
    }

    #[test]
    fn no_chord_is_declared_twice_in_the_same_place() {
        let mut seen = Vec::new();
        for key in KEYS {
            for (code, _) in key.chords {
                let place = (key.everywhere, key.when, key.shift, *code);
                assert!(!seen.contains(&place), "{code:?} twice");
                seen.push(place);
            }
        }
    }

    #[test]
    fn arrows_change_the_gpu_while_live_and_the_time_while_travelling() {
        let gpu = &[Command::Left];
        let (left, shift) =
            (press(KeyCode::Left), KeyEvent::new(KeyCode::Left, KeyModifiers::SHIFT));
        for live in [Tense::Live, Tense::LiveWithPast] {
            assert_eq!(command(left, gpu, live), Some(Command::Left));
            assert_eq!(command(left, &[], live), Some(Command::Earlier));
        }
        for past in [Tense::Past, Tense::Recording] {
            assert_eq!(command(left, gpu, past), Some(Command::Earlier));
            assert_eq!(command(press(Char('h')), gpu, past), Some(Command::Left));
        }
        for tense in [Tense::Live, Tense::LiveWithPast, Tense::Past, Tense::Recording] {
            assert_eq!(command(shift, gpu, tense), Some(Command::JumpEarlier));
        }
    }

    #[test]
    fn esc_leads_back_to_the_present_where_there_is_one() {
        let esc = press(KeyCode::Esc);
        assert_eq!(command(esc, &[], Tense::LiveWithPast), Some(Command::Back));
        assert_eq!(command(esc, &[], Tense::Past), Some(Command::Newest));
        assert_eq!(command(esc, &[], Tense::Recording), Some(Command::Back));
    }

    #[test]
    fn the_bar_names_a_key_by_what_it_does_now() {
        let bar = |answered: &[Command], tense| -> Vec<String> {
            let keys = KEYS.iter().filter(|key| key.is_in_bar(answered, tense));
            keys.map(|key| format!("{} {}", key.shown, key.label)).collect()
        };
        let live = bar(&[Command::Left], Tense::LiveWithPast);
        assert!(live.contains(&"←→ GPU".into()) && live.contains(&"esc back".into()), "{live:?}");
        assert!(!live.iter().any(|key| key.contains("time") || key.contains("h l")), "{live:?}");
        let past = bar(&[Command::Left], Tense::Past);
        for key in ["←→ time", "h l GPU", "esc live", "space play"] {
            assert!(past.contains(&key.into()), "{key} in {past:?}");
        }
        assert!(!past.contains(&"←→ GPU".into()) && !past.contains(&"esc back".into()));
        assert!(bar(&[], Tense::Recording).contains(&"esc back".into()));
    }
}
