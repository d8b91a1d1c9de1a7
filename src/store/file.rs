//! The open file: each thing that is written to it, as one transaction.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use probes::past::{Mark, Span};
use probes::snapshot::Snapshot;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::chunk::times::Tick;
use super::events::Events;
use super::findings::Findings;
use super::minute::{self, Minute, unsigned};
use super::open::{self, Unusable};
use super::rollup::Rollup;
use super::{Limits, Start, marks, retention};
use crate::moment::Moment;

/// A file that is written.
pub(super) struct File {
    path: PathBuf,
    /// Device and number: another file may stand under the name some day.
    id: Option<(u64, u64)>,
    db: Connection,
    limits: Limits,
    minute: Minute,
    rollup: Rollup,
    findings: Findings,
    events: Events,
    start: i64,
    span: Option<Span>,
    bytes: u64,
}

impl File {
    /// Opens the file, ends what a daemon before left open, and notes this one.
    pub(super) fn open(path: &Path, limits: Limits, start: &Start) -> Result<Self, Unusable> {
        let mut file = Self {
            path: path.into(),
            id: None,
            db: open::open(path)?,
            limits,
            minute: Minute::default(),
            rollup: Rollup::default(),
            findings: Findings::default(),
            events: Events::default(),
            start: 0,
            span: None,
            bytes: 0,
        };
        file.id = id(path);
        file.begin(start).map_err(Unusable::from_any)?;
        Ok(file)
    }

    fn begin(&mut self, start: &Start) -> anyhow::Result<()> {
        const KNOWN: &str = "SELECT id FROM starts WHERE pid = ? AND at_ms = ? AND boot_id = ?";
        const ADD: &str = "INSERT INTO starts (version, boot_id, pid, at_ms) VALUES (?, ?, ?, ?)";
        self.sum_up_the_rest()?;
        self.seal()?;
        self.span = span(&self.db)?;
        let db = self.db.transaction()?;
        if let Some(span) = self.span {
            Findings::close_all(&db, span.to_ms)?;
        }
        let (pid, at_ms) = (start.pid, start.at_ms.cast_signed());
        // The file may have been out of reach for a while.
        let known = db.query_row(KNOWN, params![pid, at_ms, start.boot_id], |row| row.get(0));
        self.start = if let Some(known) = known.optional()? {
            known
        } else {
            db.execute(ADD, params![start.version, start.boot_id, pid, at_ms])?;
            db.last_insert_rowid()
        };
        db.commit()?;
        self.bytes = retention::size(&self.db)?;
        Ok(())
    }

    /// What a daemon before left of its running minute is in no roll-up yet.
    fn sum_up_the_rest(&mut self) -> anyhow::Result<()> {
        let db = self.db.transaction()?;
        let mut tail = minute::Tail::default();
        for (row, _) in minute::rows(&db)? {
            let snapshot = tail.frame(&db, row).map(|bytes| Snapshot::decode(&bytes));
            if let Ok(Ok(snapshot)) = snapshot {
                self.rollup.add(&db, &snapshot)?;
            }
        }
        Ok(db.commit()?)
    }

    /// Keeps a moment, and a mark with it.
    pub(super) fn keep(&mut self, moment: &Moment, mark: Option<Mark>) -> anyhow::Result<()> {
        let tick = Tick { at_ms: moment.snapshot.taken_at_ms, number: moment.number };
        if self.minute.is_over(tick.at_ms) {
            self.seal()?;
            self.tidy()?;
        }
        let db = self.db.transaction()?;
        self.minute.add(&db, tick, &moment.bytes)?;
        self.rollup.add(&db, &moment.snapshot)?;
        self.findings.tell(&db, &moment.findings, tick.at_ms)?;
        self.events.tell(&db, &moment.snapshot)?;
        if let Some(mark) = mark {
            marks::add(&db, &mark)?;
        }
        db.commit()?;
        let from_ms = self.span.map_or(tick.at_ms, |span| span.from_ms.min(tick.at_ms));
        self.span = Some(Span { from_ms, to_ms: tick.at_ms });
        Ok(())
    }

    /// Moves the minute into its chunk, and what it says into the roll-ups.
    fn seal(&mut self) -> anyhow::Result<()> {
        let db = self.db.transaction()?;
        if let Some(last) = self.minute.seal(&db)? {
            self.rollup.flush(&db, last.at_ms)?;
        }
        Ok(db.commit()?)
    }

    /// Once a minute: what is too old goes, and the log into the file.
    fn tidy(&mut self) -> anyhow::Result<()> {
        if let Some(span) = self.span {
            retention::step(&mut self.db, self.limits, span.to_ms)?;
        }
        // Someone who reads may hold a part of it up until the next time.
        self.db.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(()))?;
        self.bytes = retention::size(&self.db)?;
        let oldest = span(&self.db)?;
        self.span = self
            .span
            .zip(oldest)
            .map(|(span, oldest)| Span { from_ms: oldest.from_ms.min(span.to_ms), ..span });
        Ok(())
    }

    /// Keeps a mark.
    pub(super) fn mark(&mut self, mark: &Mark) -> anyhow::Result<()> {
        let db = self.db.transaction()?;
        marks::add(&db, mark)?;
        Ok(db.commit()?)
    }

    pub(super) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Whether the file was taken away or replaced: what is written goes nowhere then.
    pub(super) fn is_gone(&self) -> bool {
        id(&self.path) != self.id
    }

    /// Notes a clean end and closes.
    pub(super) fn finish(mut self, now_ms: u64) -> anyhow::Result<()> {
        const ENDED: &str = "UPDATE starts SET ended_ms = ? WHERE id = ?";
        self.seal()?;
        let db = self.db.transaction()?;
        if let Some(span) = self.span {
            Findings::close_all(&db, span.to_ms)?;
        }
        db.execute(ENDED, params![now_ms.cast_signed(), self.start])?;
        db.commit()?;
        self.db.close().map_err(|(_, error)| error)?;
        Ok(())
    }

    /// Lets the file grow by so many pages and no more, as a disk would.
    #[cfg(test)]
    pub(super) fn limit_pages(&self, more: u32) -> anyhow::Result<()> {
        let pages: u32 = self.db.query_row("PRAGMA page_count", (), |row| row.get(0))?;
        self.db.query_row(&format!("PRAGMA max_page_count = {}", pages + more), (), |_| Ok(()))?;
        Ok(())
    }

    /// The stretch of whole snapshots.
    pub(super) fn span(&self) -> Option<Span> {
        self.span
    }

    /// The size without free pages.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

fn id(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// The stretch from the oldest snapshot to the one written last.
pub(super) fn span(db: &Connection) -> rusqlite::Result<Option<Span>> {
    const OLDEST: &str = "SELECT min(at) FROM
        (SELECT min(from_ms) AS at FROM chunks UNION ALL SELECT min(at_ms) FROM tail)";
    const LAST: &str = "SELECT coalesce(
        (SELECT at_ms FROM tail ORDER BY id DESC LIMIT 1),
        (SELECT to_ms FROM chunks ORDER BY id DESC LIMIT 1))";
    let oldest: Option<i64> = db.query_row(OLDEST, (), |row| row.get(0))?;
    let last: Option<i64> = db.query_row(LAST, (), |row| row.get(0))?;
    let both = oldest.zip(last);
    Ok(both.map(|(from, to)| Span { from_ms: unsigned(from), to_ms: unsigned(to) }))
}
