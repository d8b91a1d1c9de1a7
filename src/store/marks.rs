//! The table of what happened.

use probes::past::Mark;
use rusqlite::{Connection, params};

use super::words::word;

/// Adds a mark.
pub(super) fn add(db: &Connection, mark: &Mark) -> rusqlite::Result<()> {
    const ADD: &str = "INSERT INTO marks (at_ms, until_ms, kind, severity, subject, text)
         VALUES (?, ?, ?, ?, ?, ?)";
    let (at_ms, until_ms) = (mark.at_ms.cast_signed(), mark.until_ms.map(u64::cast_signed));
    let (kind, severity) = (word(&mark.kind), word(&mark.severity));
    db.execute(ADD, params![at_ms, until_ms, kind, severity, mark.subject, mark.text]).map(|_| ())
}
