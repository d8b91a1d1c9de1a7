//! What the log says of the store: when it cannot be used, when it can again, when snapshots were
//! left out. The store itself only keeps how it stands.

use crate::store::{StoreState, StoreStatus};

use super::log::{self, Level};

/// What was said last.
#[derive(Default)]
pub(crate) struct StoreWords {
    unusable: log::State,
    was_unusable: bool,
    slow: log::State,
    lost: u64,
    moved_aside: Option<String>,
}

impl StoreWords {
    /// Looks at how it stands.
    pub(crate) fn look(&mut self, status: &StoreStatus) {
        match &status.state {
            StoreState::Unavailable { why, help, .. } => {
                let text = format!("nothing is stored: {why}\n  help: {help}");
                self.unusable.say(Level::Error, &text);
                self.was_unusable = true;
            }
            StoreState::Ok if std::mem::take(&mut self.was_unusable) => {
                log::info("snapshots are stored again");
                self.unusable.clear();
            }
            StoreState::Ok if status.frames_lost > self.lost => {
                let help = "the disk is too slow or too busy; the daemon goes on without them";
                let text = format!("snapshots were not stored\n  help: {help}");
                self.slow.say(Level::Warning, &text);
            }
            _ => {}
        }
        self.lost = status.frames_lost;
        if status.moved_aside != self.moved_aside {
            self.moved_aside.clone_from(&status.moved_aside);
            if let Some(aside) = &self.moved_aside {
                log::error(&format!(
                    "the store was damaged, and a new one was begun\n  found: the damaged one is {aside}"
                ));
            }
        }
    }
}
