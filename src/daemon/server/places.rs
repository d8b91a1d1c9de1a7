//! Answers that last or are large have places, so that together they leave connections free and
//! memory bounded. When all places of a kind are held, whoever does not read loses his to the next.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::crowd::{Seats, Standing};

/// So long a place is waited for: whoever is sent away leaves it a moment later.
const LEAVES_WITHIN: Duration = Duration::from_millis(100);
/// How often it is looked whether somebody does not read.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Connections that wait for somebody to leave; more would only look for each other.
const MOST_WAITING: usize = 16;

/// What a place is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A stream of frames.
    Stream = 1,
    /// A look into the past, from its question to the end of its answer.
    Past = 2,
}

impl Kind {
    /// Places of this kind.
    pub(super) fn most(self) -> usize {
        match self {
            Self::Stream => 48,
            Self::Past => 8,
        }
    }
}

/// A place that is held.
pub(super) struct Place {
    _permit: OwnedSemaphorePermit,
}

/// All places.
pub(super) struct Places {
    seats: Arc<Seats>,
    streams: Arc<Semaphore>,
    past: Arc<Semaphore>,
    waiting: Semaphore,
}

impl Places {
    pub(super) fn new(seats: Arc<Seats>) -> Self {
        let of = |kind: Kind| Arc::new(Semaphore::new(kind.most()));
        let (streams, past) = (of(Kind::Stream), of(Kind::Past));
        Self { seats, streams, past, waiting: Semaphore::new(MOST_WAITING) }
    }

    /// A place for a connection, free or somebody else's who does not read; `None` when all are in
    /// good use.
    pub(super) async fn take(&self, kind: Kind, standing: &Standing) -> Option<Place> {
        let places = match kind {
            Kind::Stream => &self.streams,
            Kind::Past => &self.past,
        };
        let permit = match Arc::clone(places).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => self.wait(kind, places).await?,
        };
        standing.hold(kind);
        Some(Place { _permit: permit })
    }

    async fn wait(&self, kind: Kind, places: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
        let _waiting = self.waiting.try_acquire().ok()?;
        let free = async {
            // Those who come later wait behind.
            let mut left = pin!(Arc::clone(places).acquire_owned());
            let mut freed = self.seats.free_one_of(kind);
            loop {
                tokio::select! {
                    permit = &mut left => return permit.ok(),
                    () = tokio::time::sleep(LOOK_EVERY) => {
                        freed = freed || self.seats.free_one_of(kind);
                    }
                }
            }
        };
        tokio::time::timeout(LEAVES_WITHIN, free).await.ok()?
    }
}
