//! Every key, declared once. The bottom bar, the help page and what a press means all come from
//! [`KEYS`]; a panel's entry in the list of panels says which of the commands it answers.

use crossterm::event::KeyCode::Char;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

mod list;

pub use list::KEYS;

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
