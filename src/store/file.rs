//! The open file: each thing that is written to it, as one transaction.

use std::path::Path;

use probes::past::{Mark, Span};
use rusqlite::{Connection, Transaction, params};

use super::chunk::times::Tick;
use super::findings::Findings;
use super::minute::{Minute, unsigned};
use super::open::{self, Unusable};
use super::words::word;
use super::{Limits, Start};
use crate::moment::Moment;

/// A file that is written.
pub(super) struct File {
    db: Connection,
    limits: Limits,
    minute: Minute,
    findings: Findings,
    start: i64,
    span: Option<Span>,
    bytes: u64,
}

impl File {
    /// Opens the file, ends what a daemon before left open, and notes this one.
    pub(super) fn open(path: &Path, limits: Limits, start: &Start) -> Result<Self, Unusable> {
        let db = open::open(path)?;
        let mut file = Self {
            db,
            limits,
            minute: Minute::default(),
            findings: Findings::default(),
            start: 0,
            span: None,
            bytes: 0,
        };
        file.begin(start).map_err(Unusable::from_any)?;
        Ok(file)
    }

    fn begin(&mut self, start: &Start) -> anyhow::Result<()> {
        const KNOWN: &str =
            "SELECT max(id) FROM starts WHERE pid = ? AND at_ms = ? AND boot_id = ?";
        const ADD: &str = "INSERT INTO starts (version, boot_id, pid, at_ms) VALUES (?, ?, ?, ?)";
        let db = self.db.transaction()?;
        self.minute.seal(&db)?;
        self.span = span(&db)?;
        if let Some(span) = self.span {
            Findings::close_all(&db, span.to_ms)?;
        }
        let (pid, at_ms) = (start.pid, start.at_ms.cast_signed());
        let known: Option<i64> =
            db.query_row(KNOWN, params![pid, at_ms, start.boot_id], |row| row.get(0))?;
        self.start = if let Some(known) = known {
            known
        } else {
            db.execute(ADD, params![start.version, start.boot_id, pid, at_ms])?;
            db.last_insert_rowid()
        };
        db.commit()?;
        self.bytes = size(&self.db)?;
        Ok(())
    }

    /// Keeps a moment, and a mark with it.
    pub(super) fn keep(&mut self, moment: &Moment, mark: Option<Mark>) -> anyhow::Result<()> {
        let tick = Tick { at_ms: moment.snapshot.taken_at_ms, number: moment.number };
        if self.minute.is_over(tick.at_ms) {
            let db = self.db.transaction()?;
            self.minute.seal(&db)?;
            db.commit()?;
            self.bytes = size(&self.db)?;
        }
        let db = self.db.transaction()?;
        self.minute.add(&db, tick, &moment.bytes)?;
        self.findings.tell(&db, &moment.findings, tick.at_ms)?;
        if let Some(mark) = mark {
            add_mark(&db, &mark)?;
        }
        db.commit()?;
        let from_ms = self.span.map_or(tick.at_ms, |span| span.from_ms.min(tick.at_ms));
        self.span = Some(Span { from_ms, to_ms: tick.at_ms });
        Ok(())
    }

    /// Keeps a mark.
    pub(super) fn mark(&mut self, mark: &Mark) -> anyhow::Result<()> {
        let db = self.db.transaction()?;
        add_mark(&db, mark)?;
        Ok(db.commit()?)
    }

    pub(super) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Notes a clean end and closes.
    pub(super) fn finish(mut self, now_ms: u64) -> anyhow::Result<()> {
        let db = self.db.transaction()?;
        self.minute.seal(&db)?;
        if let Some(span) = self.span {
            Findings::close_all(&db, span.to_ms)?;
        }
        db.execute(
            "UPDATE starts SET ended_ms = ? WHERE id = ?",
            params![now_ms.cast_signed(), self.start],
        )?;
        db.commit()?;
        // Without a log beside it the file can be read where nothing can be written.
        self.db.pragma_update(None, "journal_mode", "DELETE")?;
        self.db.close().map_err(|(_, error)| error)?;
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

fn add_mark(db: &Transaction<'_>, mark: &Mark) -> rusqlite::Result<()> {
    const ADD: &str = "INSERT INTO marks (at_ms, until_ms, kind, severity, subject, text)
         VALUES (?, ?, ?, ?, ?, ?)";
    let (at_ms, until_ms) = (mark.at_ms.cast_signed(), mark.until_ms.map(u64::cast_signed));
    let (kind, severity) = (word(&mark.kind), word(&mark.severity));
    db.execute(ADD, params![at_ms, until_ms, kind, severity, mark.subject, mark.text])?;
    Ok(())
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

fn size(db: &Connection) -> rusqlite::Result<u64> {
    let pragma = |name: &str| -> rusqlite::Result<i64> {
        db.query_row(&format!("PRAGMA {name}"), (), |row| row.get(0))
    };
    let pages = pragma("page_count")? - pragma("freelist_count")?;
    Ok(unsigned(pages * pragma("page_size")?))
}
