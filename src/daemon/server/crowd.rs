//! Who is connected, and who must go when there is no seat left.
//!
//! A connection first waits for its request, then is answered. Only one that waits, or that does not
//! take its answer, may be sent away for another: so a crowd that hangs on the socket never keeps
//! out somebody who asks.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use tokio::task::{AbortHandle, Id, JoinSet};

use crate::api::SocketCounts;

/// Connections at a time.
const SEATS: usize = 64;
/// An answer that waits so long for its reader is given up where somebody else needs the seat.
const SLOW_MS: u64 = 100;
/// What was served, counted.
#[derive(Default)]
pub(crate) struct Counters {
    pub(super) connections: AtomicU64,
    pub(super) taken: AtomicU64,
    pub(super) refused: AtomicU64,
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
            refused_total: self.refused.load(Relaxed),
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
    began: Instant,
    asked: AtomicBool,
    /// Milliseconds after `began` when the answer began to wait for its reader, plus one; 0 while
    /// it does not.
    waits_since: AtomicU64,
    pub(super) counters: Arc<Counters>,
}

impl Standing {
    fn new(counters: Arc<Counters>) -> Self {
        let (asked, waits_since) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { began: Instant::now(), asked, waits_since, counters }
    }

    /// The request has come.
    pub(in crate::daemon) fn ask(&self) {
        self.asked.store(true, Relaxed);
        self.counters.requests.fetch_add(1, Relaxed);
    }

    /// The answer waits for its reader.
    pub(super) fn wait(&self) {
        self.waits_since.store(self.lasted_ms() + 1, Relaxed);
    }

    /// The answer goes out.
    pub(super) fn go_on(&self) {
        self.waits_since.store(0, Relaxed);
    }

    fn lasted_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX - 1)
    }

    /// How soon it may be sent away, the larger the sooner; `None`: not at all.
    fn may_go(&self) -> Option<(bool, u64)> {
        let lasted = self.lasted_ms();
        if !self.asked.load(Relaxed) {
            return Some((true, lasted));
        }
        let since = self.waits_since.load(Relaxed).checked_sub(1)?;
        let waited = lasted.saturating_sub(since);
        (waited >= SLOW_MS).then_some((false, waited))
    }
}

/// All connections.
pub(in crate::daemon) struct Crowd {
    counters: Arc<Counters>,
    tasks: JoinSet<()>,
    seats: HashMap<Id, (Arc<Standing>, AbortHandle)>,
}

impl Crowd {
    pub(in crate::daemon) fn new(counters: Arc<Counters>) -> Self {
        Self { counters, tasks: JoinSet::new(), seats: HashMap::new() }
    }

    /// Gives a connection a seat, someone else's if need be, or gives it back.
    pub(in crate::daemon) fn seat<S, F>(
        &mut self,
        stream: S,
        serve: impl FnOnce(S, Arc<Standing>) -> F,
    ) -> Option<S>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.counters.taken.fetch_add(1, Relaxed);
        if self.seats.len() >= SEATS {
            self.counters.refused.fetch_add(1, Relaxed);
            if !self.free_a_seat() {
                return Some(stream);
            }
        }
        let standing = Arc::new(Standing::new(Arc::clone(&self.counters)));
        let handle = self.tasks.spawn(serve(stream, Arc::clone(&standing)));
        self.seats.insert(handle.id(), (standing, handle));
        self.count();
        None
    }

    fn free_a_seat(&mut self) -> bool {
        let going =
            self.seats.iter().filter_map(|(id, (standing, _))| Some((standing.may_go()?, *id)));
        let Some((_, id)) = going.max_by_key(|(when, _)| *when) else { return false };
        if let Some((_, handle)) = self.seats.remove(&id) {
            handle.abort();
        }
        true
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
        self.seats.remove(&id);
        self.count();
    }

    fn count(&self) {
        self.counters.connections.store(self.seats.len() as u64, Relaxed);
    }
}
