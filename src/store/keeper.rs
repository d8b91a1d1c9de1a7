//! The store's thread: takes what is handed over, writes it, and when that does not go, says why
//! and tries again.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use probes::finding::Severity;
use probes::past::{Mark, MarkKind};

use super::clock::Clocks;
use super::file::File;
use super::open::{self, Unusable};
use super::queue::{Job, Queue};
use super::{Limits, Start, StoreState, StoreStatus};
use crate::moment::Moment;

/// How long the thread sleeps when nothing comes.
const IDLE: Duration = Duration::from_mins(1);
/// Another program that holds the file lets go of it soon.
const HELD: Duration = Duration::from_secs(1);
/// Marks that wait for a file at most.
const MOST_WAITING: usize = 256;

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
    /// When a damaged file was last moved aside.
    moved: Option<Instant>,
    clocks: Clocks,
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

impl Keeper {
    pub(super) fn new(
        path: PathBuf,
        limits: Limits,
        start: Start,
        retry: Duration,
        queue: Arc<Queue>,
        status: Arc<Mutex<StoreStatus>>,
    ) -> Self {
        Self {
            path,
            limits,
            start,
            retry,
            queue,
            status,
            file: None,
            again: Instant::now(),
            moved: None,
            clocks: Clocks::read(),
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
            let job = self.queue.take(until);
            self.look_at_the_clocks();
            match job {
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
            return;
        }
        self.update(|status| status.state = StoreState::Closed);
    }

    fn look_at_the_clocks(&mut self) {
        let now = Clocks::read();
        for mark in now.since(std::mem::replace(&mut self.clocks, now)) {
            self.mark(mark);
        }
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
                for mark in std::mem::take(&mut self.marks) {
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
        if self.file.as_ref().is_some_and(File::is_gone) {
            self.file = None;
            self.open();
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
                self.lost(at_ms, 1, &unusable.words(&self.path).0);
                self.fail(&unusable);
            }
        }
    }

    fn mark(&mut self, mark: Mark) {
        // Begin and end of a daemon stand in a table of their own.
        if matches!(mark.kind, MarkKind::DaemonStart | MarkKind::DaemonEnd) {
            return;
        }
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

    /// The file cannot be used: it is closed, and opened again after a while. One that is damaged is
    /// moved aside, and a new one is begun at once.
    fn fail(&mut self, unusable: &Unusable) {
        self.file = None;
        let (why, help) = unusable.words(&self.path);
        if matches!(unusable, Unusable::Damaged { .. }) && self.move_aside(&why) {
            self.again = Instant::now();
            return;
        }
        self.again = Instant::now() + if unusable.passes() { HELD } else { self.retry };
        self.update(|status| {
            let since_ms = match &status.state {
                StoreState::Unavailable { since_ms, .. } => *since_ms,
                _ => wall_ms(),
            };
            status.state = StoreState::Unavailable { why, help, since_ms };
        });
    }

    /// Whether that was done. On a disk that damages the new file as well it is done once a while.
    fn move_aside(&mut self, why: &str) -> bool {
        if self.moved.is_some_and(|moved| moved.elapsed() < self.retry) {
            return false;
        }
        let Ok(aside) = open::move_aside(&self.path, wall_ms()) else { return false };
        self.moved = Some(Instant::now());
        let aside = aside.display().to_string();
        let text = format!("{why}; it was moved to {aside}, and a new one was begun");
        self.update(|status| status.moved_aside = Some(aside));
        let (kind, severity) = (MarkKind::NotStored, Severity::Critical);
        self.mark(Mark { at_ms: wall_ms(), kind, severity, text, ..Mark::default() });
        true
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
