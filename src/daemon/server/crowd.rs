//! Who is connected, and who must go when there is no seat left.
//!
//! Whoever comes gets a seat. When all are taken, somebody else loses his: first one that has not
//! asked in time, then one that does not take its answer, then one of whoever has most seats. Readers
//! that read and questions about the past have places of their own and stay, so a crowd that hangs on
//! the socket keeps out only itself.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::task::{AbortHandle, Id, JoinSet};

use crate::api::SocketCounts;

use super::places::Kind;

/// Connections at a time.
const SEATS: usize = 64;
/// A client that means well has asked by then.
const JUST_COME_US: u64 = 100_000;

/// What was served, counted.
#[derive(Default)]
pub(crate) struct Counters {
    pub(super) connections: AtomicU64,
    pub(super) taken: AtomicU64,
    pub(super) sent_away: AtomicU64,
    pub(super) stalled: AtomicU64,
    pub(super) requests: AtomicU64,
    pub(super) readers: AtomicU64,
    pub(super) frames: AtomicU64,
    pub(super) frames_lost: AtomicU64,
}

impl Counters {
    /// As they stand.
    pub(crate) fn counts(&self) -> SocketCounts {
        SocketCounts {
            connections: self.connections.load(Relaxed),
            connections_total: self.taken.load(Relaxed),
            sent_away_total: self.sent_away.load(Relaxed),
            stalled_total: self.stalled.load(Relaxed),
            requests_total: self.requests.load(Relaxed),
            readers: self.readers.load(Relaxed),
            frames_total: self.frames.load(Relaxed),
            frames_lost_total: self.frames_lost.load(Relaxed),
        }
    }
}

/// How a connection stands, told by the connection and read by the crowd.
pub(in crate::daemon) struct Standing {
    /// Tells apart who is at the other end: a process, or an address.
    whose: u64,
    began: Instant,
    asked: AtomicBool,
    /// The kind of place that it holds; 0 for none.
    holds: AtomicU8,
    /// Microseconds after `began` when the answer began to wait for its reader, plus one; 0 while it
    /// does not.
    waits_since: AtomicU64,
    pub(super) counters: Arc<Counters>,
}

impl Standing {
    fn new(whose: u64, counters: Arc<Counters>) -> Self {
        Self {
            whose,
            began: Instant::now(),
            asked: AtomicBool::new(false),
            holds: AtomicU8::new(0),
            waits_since: AtomicU64::new(0),
            counters,
        }
    }

    /// The request has come.
    pub(in crate::daemon) fn ask(&self) {
        self.asked.store(true, Relaxed);
        self.counters.requests.fetch_add(1, Relaxed);
    }

    /// The answer holds a place of this kind.
    pub(super) fn hold(&self, kind: Kind) {
        self.holds.store(kind as u8, Relaxed);
    }

    /// The answer waits for its reader.
    pub(super) fn wait(&self) {
        self.waits_since.store(self.lasted_us() + 1, Relaxed);
    }

    /// The answer goes out.
    pub(super) fn go_on(&self) {
        self.waits_since.store(0, Relaxed);
    }

    fn lasted_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX - 1)
    }

    /// How long its answer has waited for its reader, if it does.
    fn waited_us(&self) -> Option<u64> {
        let since = self.waits_since.load(Relaxed).checked_sub(1)?;
        Some(self.lasted_us().saturating_sub(since))
    }

    /// How soon it may be sent away for another, the larger the sooner; `None`: not at all. Where
    /// nothing is to be said against it, the seats of its process count.
    fn may_go(&self, seats: u64) -> Option<(u8, u64, u64)> {
        let lasted = self.lasted_us();
        match (self.asked.load(Relaxed), self.waited_us()) {
            (false, _) if lasted >= JUST_COME_US => Some((2, 0, lasted)),
            (true, Some(waited)) => Some((1, 0, waited)),
            (true, None) if self.holds.load(Relaxed) != 0 => None,
            _ => Some((0, seats, lasted)),
        }
    }
}

type Taken = HashMap<Id, (Arc<Standing>, AbortHandle)>;

/// Who sits where.
pub(super) struct Seats {
    counters: Arc<Counters>,
    taken: Mutex<Taken>,
}

impl Seats {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends away the one that may go soonest, if any may.
    fn free<R: Ord>(&self, may_go: impl Fn(&Taken, &Standing) -> Option<R>) -> bool {
        let mut taken = self.taken();
        let going = taken.iter().filter_map(|(id, seat)| Some((may_go(&taken, &seat.0)?, *id)));
        let Some((_, id)) = going.max_by(|(one, _), (other, _)| one.cmp(other)) else {
            return false;
        };
        if let Some((_, handle)) = taken.remove(&id) {
            handle.abort();
        }
        self.counters.sent_away.fetch_add(1, Relaxed);
        true
    }

    /// Makes room for one who comes.
    fn free_any(&self) -> bool {
        self.free(|taken, standing| {
            let same = |seat: &&(Arc<Standing>, AbortHandle)| seat.0.whose == standing.whose;
            standing.may_go(taken.values().filter(same).count() as u64)
        })
    }

    /// Sends away the one that holds a place of this kind and has not read for longest, if there is
    /// one. Its place is free a moment later.
    pub(super) fn free_one_of(&self, kind: Kind) -> bool {
        let holds = |standing: &Standing| standing.holds.load(Relaxed) == kind as u8;
        self.free(|_, standing| standing.waited_us().filter(|_| holds(standing)))
    }

    fn count(&self) {
        self.counters.connections.store(self.taken().len() as u64, Relaxed);
    }
}

/// All connections.
pub(in crate::daemon) struct Crowd {
    tasks: JoinSet<()>,
    seats: Arc<Seats>,
}

impl Crowd {
    pub(in crate::daemon) fn new(counters: Arc<Counters>) -> Self {
        let seats = Arc::new(Seats { counters, taken: Mutex::default() });
        Self { tasks: JoinSet::new(), seats }
    }

    /// Who sits where.
    pub(super) fn seats(&self) -> Arc<Seats> {
        Arc::clone(&self.seats)
    }

    /// Gives a connection a seat, someone else's if need be; `whose` is the same for all that come
    /// from one process or address.
    pub(in crate::daemon) fn seat<S, F>(
        &mut self,
        stream: S,
        whose: u64,
        serve: impl FnOnce(S, Arc<Standing>) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let counters = &self.seats.counters;
        counters.taken.fetch_add(1, Relaxed);
        let is_full = self.seats.taken().len() >= SEATS;
        if is_full && !self.seats.free_any() {
            // There are fewer places than seats, so this cannot be; if it were, it would be too many.
            return;
        }
        let standing = Arc::new(Standing::new(whose, Arc::clone(counters)));
        let handle = self.tasks.spawn(serve(stream, Arc::clone(&standing)));
        self.seats.taken().insert(handle.id(), (standing, handle));
        self.seats.count();
    }

    /// Waits until somebody has left. May be dropped half way.
    pub(in crate::daemon) async fn left(&mut self) {
        let Some(ended) = self.tasks.join_next_with_id().await else {
            return std::future::pending().await;
        };
        let id = match ended {
            Ok((id, ())) => id,
            Err(error) => error.id(),
        };
        self.seats.taken().remove(&id);
        self.seats.count();
    }
}
