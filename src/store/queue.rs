//! What waits for the store's thread: bounded, so that a disk that hangs costs memory for seconds
//! and not for hours, and never waited for by whoever hands something over.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use probes::past::Mark;

use super::Limits;
use crate::moment::Moment;

/// A snapshot of a large box takes a megabyte while it waits.
const MOST_MOMENTS: usize = 16;
/// Marks are small and few.
const MOST_MARKS: usize = 256;

/// Something for the thread to do.
pub(super) enum Job {
    /// Keep a moment.
    Keep(Arc<Moment>),
    /// Keep a mark.
    Mark(Mark),
    /// Other limits from now on.
    Limits(Limits),
    /// Write what is there and end.
    Finish,
}

/// The queue.
#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    moments: usize,
    marks: usize,
    /// Moments that found no room since the thread last asked.
    dropped: u64,
    finished: bool,
}

impl Queue {
    /// Hands something over; what does not fit is dropped.
    pub(super) fn put(&self, job: Job) {
        let mut waiting = self.lock();
        match &job {
            Job::Keep(_) if waiting.moments >= MOST_MOMENTS => {
                waiting.dropped += 1;
                return;
            }
            Job::Keep(_) => waiting.moments += 1,
            Job::Mark(_) if waiting.marks >= MOST_MARKS => return,
            Job::Mark(_) => waiting.marks += 1,
            Job::Limits(_) | Job::Finish => {}
        }
        waiting.jobs.push_back(job);
        self.changed.notify_all();
    }

    /// Waits until a moment would fit, or nobody takes any more.
    pub(super) fn wait_for_room(&self) {
        let mut waiting = self.lock();
        while waiting.moments >= MOST_MOMENTS && !waiting.finished {
            waiting = wait(&self.changed, waiting, Duration::from_secs(1));
        }
    }

    /// The next job, or `None` when none came in time.
    pub(super) fn take(&self, until: Instant) -> Option<Job> {
        let mut waiting = self.lock();
        loop {
            if let Some(job) = waiting.jobs.pop_front() {
                match job {
                    Job::Keep(_) => {
                        waiting.moments -= 1;
                        self.changed.notify_all();
                    }
                    Job::Mark(_) => waiting.marks -= 1,
                    Job::Limits(_) | Job::Finish => {}
                }
                return Some(job);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            waiting = wait(&self.changed, waiting, left);
        }
    }

    /// Moments that were dropped since this was last asked.
    pub(super) fn take_dropped(&self) -> u64 {
        std::mem::take(&mut self.lock().dropped)
    }

    /// The thread says that it has ended.
    pub(super) fn ended(&self) {
        self.lock().finished = true;
        self.changed.notify_all();
    }

    /// Waits until the thread has ended, or for so long. Whether it has.
    pub(super) fn wait_for_end(&self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let mut waiting = self.lock();
        while !waiting.finished {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            waiting = wait(&self.changed, waiting, left);
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wait<'a>(
    changed: &Condvar,
    waiting: MutexGuard<'a, Waiting>,
    left: Duration,
) -> MutexGuard<'a, Waiting> {
    changed.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0
}
