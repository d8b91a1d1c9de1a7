//! Travelling in time, as far as the picture decides: what a key asks for, and why it leads nowhere.

use super::{Action, Travel, Ui};
use crate::dialog::Dialog;
use crate::keys::{Command, Tense};
use crate::view::View;

/// How far the long step goes.
const JUMP_MS: i64 = 60_000;

/// Where a command leads in time, on a panel that takes it for nothing else.
pub(super) fn meant(command: Command) -> Option<Travel> {
    Some(match command {
        Command::Earlier | Command::TickEarlier => Travel::Step { forward: false },
        Command::Later | Command::TickLater => Travel::Step { forward: true },
        Command::JumpEarlier => Travel::By { ms: -JUMP_MS },
        Command::JumpLater => Travel::By { ms: JUMP_MS },
        Command::Oldest => Travel::Oldest,
        Command::Newest => Travel::Newest,
        Command::Play => Travel::TogglePlay,
        Command::MarkBefore => Travel::Mark { forward: false },
        Command::MarkAfter => Travel::Mark { forward: true },
        _ => return None,
    })
}

fn is_forward(travel: Travel) -> bool {
    match travel {
        Travel::Step { forward } | Travel::Mark { forward } => forward,
        Travel::By { ms } => ms > 0,
        Travel::To { .. } | Travel::Oldest => false,
        Travel::Newest | Travel::TogglePlay => true,
    }
}

impl Ui {
    /// Asks for another moment, or says why there is none.
    pub(super) fn travel(&mut self, travel: Travel, view: &View) -> Action {
        match view.tense() {
            Tense::Past | Tense::Recording => return Action::Travel(travel),
            Tense::LiveWithPast if !is_forward(travel) => return Action::Travel(travel),
            Tense::LiveWithPast => self.notice("this is live; nothing is newer", view.now_ms),
            Tense::Live => self.notice(no_past(view), view.now_ms),
        }
        Action::Redraw
    }

    /// Opens the line in which a time is typed.
    pub(super) fn type_time(&mut self, view: &View) -> Action {
        if view.tense() == Tense::Live {
            self.notice(no_past(view), view.now_ms);
        } else {
            self.dialog = Some(Dialog::time());
        }
        Action::Redraw
    }
}

/// Why there is no past, and what to do.
fn no_past(view: &View) -> String {
    match &view.past.trouble {
        Some(why) => format!("no past to show: {why}"),
        None => "no past to show: nothing is remembered without infertop daemon; start it".into(),
    }
}
