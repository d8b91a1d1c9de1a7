//! The sampler of an earlier daemon of this state folder, which a driver call may hold for long after
//! that daemon is gone.

use std::time::Duration;

use tokio::time::Instant;

use crate::daemon::lock::{Holder, Peek};

/// One that is about to end takes a moment; one that is there for so long is held by a driver call.
const STUCK: Duration = Duration::from_secs(3);
/// How often it is looked whether it is gone: until then, and from then on.
const AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Looks for it by the lock that every sampler holds.
pub(super) struct Earlier {
    lock: Option<Peek>,
    since: Option<Instant>,
}

/// One that is there.
pub(super) struct InTheWay {
    /// Its number, where it is known.
    pub(super) pid: Option<u32>,
    /// Whether it has been there for long.
    pub(super) is_stuck: bool,
    /// When to look again.
    pub(super) again: Instant,
}

impl Earlier {
    pub(super) fn new(lock: Option<Peek>) -> Self {
        Self { lock, since: None }
    }

    /// The one that is there now.
    pub(super) fn look(&mut self) -> Option<InTheWay> {
        let Some(Holder { pid }) = self.lock.as_ref().and_then(Peek::holder) else {
            self.since = None;
            return None;
        };
        let now = Instant::now();
        let is_stuck = now - *self.since.get_or_insert(now) >= STUCK;
        let again = now + if is_stuck { AGAIN.1 } else { AGAIN.0 };
        Some(InTheWay { pid, is_stuck, again })
    }
}
