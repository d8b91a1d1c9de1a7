//! The store's thread: takes what is handed over, writes it, and when that does not go, says why
//! and tries again.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use probes::finding::Severity;
use probes::past::{Mark, MarkKind};

use super::file::File;
use super::open::Unusable;
use super::queue::{Job, Queue};
use super::{Limits, Start, StoreState, StoreStatus};
use crate::moment::Moment;

/// How long the thread sleeps when nothing comes.
const IDLE: Duration = Duration::from_mins(1);

/// What the thread knows.
pub(super) struct Keeper {
    path: PathBuf,
    limits: Limits,
    start: Start,
    retry: Duration,
    queue: Arc<Queue>,
    status: Arc<Mutex<StoreStatus>>,
    file: Option<File>,
    /// When a file that could not be used is tried again.
    again: Instant,
    /// What could not be stored and has not been told yet.
    gap: Option<Gap>,
    /// Marks that wait for a file.
    marks: Vec<Mark>,
}

struct Gap {
    from_ms: u64,
    to_ms: u64,
    frames: u64,
    why: String,
}

/// Marks that wait for a file at most.
const MOST_WAITING: usize = 256;

impl Keeper {
    pub(super) fn new(
        path: PathBuf,
        limits: Limits,
        start: Start,
        retry: Duration,
        queue: Arc<Queue>,
        status: Arc<Mutex<StoreStatus>>,
    ) -> Self {
        let again = Instant::now();
        Self {
            path,
            limits,
            start,
            retry,
            queue,
            status,
            file: None,
            again,
            gap: None,
            marks: Vec::new(),
        }
    }

    /// Works until it is told to finish.
    pub(super) fn run(mut self) {
        loop {
            if self.file.is_none() && Instant::now() >= self.again {
                self.open();
            }
            let until = if self.file.is_some() { Instant::now() + IDLE } else { self.again };
            match self.queue.take(until) {
                Some(Job::Keep(moment)) => self.keep(&moment),
                Some(Job::Mark(mark)) => self.mark(mark),
                Some(Job::Limits(limits)) => {
                    self.limits = limits;
                    if let Some(file) = &mut self.file {
                        file.set_limits(limits);
                    }
                }
                Some(Job::Finish) => break,
                None => {}
            }
        }
        if let Some(file) = self.file.take()
            && let Err(error) = file.finish(wall_ms())
        {
            self.fail(&Unusable::from_any(error));
        }
        self.update(|status| status.state = StoreState::Closed);
    }

    fn open(&mut self) {
        match File::open(&self.path, self.limits, &self.start) {
            Ok(file) => {
                self.update(|status| {
                    status.state = StoreState::Ok;
                    status.span = file.span();
                    status.bytes = file.bytes();
                });
                self.file = Some(file);
                let marks = std::mem::take(&mut self.marks);
                for mark in marks {
                    self.mark(mark);
                }
            }
            Err(unusable) => self.fail(&unusable),
        }
    }

    fn keep(&mut self, moment: &Moment) {
        let at_ms = moment.snapshot.taken_at_ms;
        let dropped = self.queue.take_dropped();
        if dropped > 0 {
            self.lost(at_ms, dropped, "the disk was too slow");
        }
        let Some(file) = &mut self.file else {
            let why = match &self.status().state {
                StoreState::Unavailable { why, .. } => why.clone(),
                _ => "the store was not open".into(),
            };
            self.lost(at_ms, 1, &why);
            return;
        };
        let begin = Instant::now();
        let gap = self.gap.as_ref().map(Gap::mark);
        match file.keep(moment, gap) {
            Ok(()) => {
                self.gap = None;
                let took_ms = begin.elapsed().as_secs_f64() * 1e3;
                let (span, bytes) = (file.span(), file.bytes());
                self.update(|status| {
                    status.frames_kept += 1;
                    status.last_write_ms = took_ms;
                    status.longest_write_ms = status.longest_write_ms.max(took_ms);
                    status.span = span;
                    status.bytes = bytes;
                });
            }
            Err(error) => {
                let unusable = Unusable::from_any(error);
                self.fail(&unusable);
                self.lost(at_ms, 1, &unusable.words(&self.path).0);
            }
        }
    }

    fn mark(&mut self, mark: Mark) {
        match &mut self.file {
            Some(file) => {
                if let Err(error) = file.mark(&mark) {
                    self.fail(&Unusable::from_any(error));
                    self.marks.push(mark);
                }
            }
            None if self.marks.len() < MOST_WAITING => self.marks.push(mark),
            None => {}
        }
    }

    /// The file cannot be used: it is closed, and opened again after a while.
    fn fail(&mut self, unusable: &Unusable) {
        self.file = None;
        self.again = Instant::now() + self.retry;
        let (why, help) = unusable.words(&self.path);
        self.update(|status| {
            let since_ms = match &status.state {
                StoreState::Unavailable { since_ms, .. } => *since_ms,
                _ => wall_ms(),
            };
            status.state = StoreState::Unavailable { why, help, since_ms };
        });
    }

    fn lost(&mut self, at_ms: u64, frames: u64, why: &str) {
        self.update(|status| status.frames_lost += frames);
        let gap = self.gap.get_or_insert_with(|| Gap {
            from_ms: at_ms,
            to_ms: at_ms,
            frames: 0,
            why: why.into(),
        });
        gap.frames += frames;
        gap.to_ms = at_ms;
    }

    fn status(&self) -> StoreStatus {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn update(&self, change: impl FnOnce(&mut StoreStatus)) {
        change(&mut self.status.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Gap {
    fn mark(&self) -> Mark {
        let plural = if self.frames == 1 { "snapshot was" } else { "snapshots were" };
        Mark {
            at_ms: self.from_ms,
            until_ms: Some(self.to_ms),
            kind: MarkKind::NotStored,
            severity: Severity::Warning,
            subject: String::new(),
            text: format!("{} {plural} not stored: {}", self.frames, self.why),
        }
    }
}

/// Wall clock in milliseconds since 1970.
pub(super) fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
