//! From when to when a finding lasted.
//!
//! One that goes and comes back within a few seconds is one finding: a value at its threshold would
//! fill the table.

use std::collections::HashMap;

use probes::finding::{Finding, Severity, Subject};
use rusqlite::{Connection, params};

use super::words::word;

/// A finding that is away longer than this is over.
const HOLD_MS: u64 = 10_000;

/// The findings that are open.
#[derive(Default)]
pub(super) struct Findings {
    open: HashMap<(String, String), Open>,
}

struct Open {
    row: i64,
    seen_ms: u64,
    severity: Severity,
    evidence: Vec<String>,
}

impl Findings {
    /// Takes in what is wrong now.
    pub(super) fn tell(
        &mut self,
        db: &Connection,
        findings: &[Finding],
        at_ms: u64,
    ) -> rusqlite::Result<()> {
        for finding in findings {
            let key = (finding.cause.clone(), subject(&finding.subject));
            if let Some(open) = self.open.get_mut(&key) {
                open.seen_ms = at_ms;
                open.severity = open.severity.max(finding.severity);
                open.evidence.clone_from(&finding.evidence);
                continue;
            }
            let row = add(db, finding, &key.1, at_ms)?;
            let (severity, evidence) = (finding.severity, finding.evidence.clone());
            self.open.insert(key, Open { row, seen_ms: at_ms, severity, evidence });
        }
        // A clock that was set back makes nothing last for ever.
        let is_over = |open: &Open| at_ms.abs_diff(open.seen_ms) > HOLD_MS;
        for open in self.open.values().filter(|open| is_over(open)) {
            close(db, open)?;
        }
        self.open.retain(|_, open| !is_over(open));
        Ok(())
    }

    /// Ends what is open in the file, at the time of the last snapshot.
    pub(super) fn close_all(db: &Connection, at_ms: u64) -> rusqlite::Result<()> {
        const CLOSE: &str =
            "UPDATE findings SET closed_ms = max(opened_ms, ?) WHERE closed_ms IS NULL";
        db.execute(CLOSE, [at_ms.cast_signed()]).map(|_| ())
    }
}

fn add(db: &Connection, finding: &Finding, subject: &str, at_ms: u64) -> rusqlite::Result<i64> {
    const BEFORE: &str = "SELECT max(closed_ms) FROM findings WHERE cause = ? AND subject = ?";
    const ADD: &str = "INSERT INTO findings (cause, subject, severity, title, evidence, opened_ms)
         VALUES (?, ?, ?, ?, ?, ?)";
    let before: Option<i64> =
        db.query_row(BEFORE, params![finding.cause, subject], |row| row.get(0))?;
    // What began before we looked is told with its own begin, once.
    let since = finding.since_ms.cast_signed();
    let at_ms = at_ms.cast_signed();
    let is_told = since <= 0 || since > at_ms || before.is_some_and(|before| before >= since);
    let opened = if is_told { at_ms } else { since };
    let (severity, evidence) = (word(&finding.severity), lines(&finding.evidence));
    db.execute(ADD, params![finding.cause, subject, severity, finding.title, evidence, opened])?;
    Ok(db.last_insert_rowid())
}

fn close(db: &Connection, open: &Open) -> rusqlite::Result<()> {
    const CLOSE: &str = "UPDATE findings SET closed_ms = max(opened_ms, ?), severity = ?, evidence = ? WHERE id = ?";
    let (severity, evidence) = (word(&open.severity), lines(&open.evidence));
    db.execute(CLOSE, params![open.seen_ms.cast_signed(), severity, evidence, open.row]).map(|_| ())
}

fn lines(evidence: &[String]) -> String {
    evidence.join("\n")
}

/// What people call it; empty for the box.
pub(super) fn subject(subject: &Subject) -> String {
    match subject {
        Subject::Box => String::new(),
        Subject::Gpu(index) => format!("GPU {index}"),
        Subject::Process(pid) => format!("process {pid}"),
    }
}
