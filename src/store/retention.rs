//! What is too old, or too much, goes: a little at a time, the oldest first.
//!
//! A step is small, so that no snapshot waits for it, and so that a clock that was set a year ahead
//! by mistake costs a few minutes of the past and not all of it. It comes with each minute and takes
//! more than a minute brings.

use rusqlite::{Connection, params};

use super::Limits;

/// Chunks that go in one step.
const CHUNKS: u32 = 10;
/// Rows of the other tables.
const ROWS: u32 = 1000;
/// More marks and findings are never kept: something that flaps for months must not fill the disk.
const MOST_ROWS: i64 = 200_000;
const DAY_MS: u64 = 86_400_000;
/// Free pages that are kept for what comes, and how many go back to the disk in one step.
const FREE_PAGES: (i64, i64) = (1024, 256);

/// Takes a step. `now_ms`: the time of the newest snapshot.
pub(super) fn step(db: &mut Connection, limits: Limits, now_ms: u64) -> rusqlite::Result<()> {
    let transaction = db.transaction()?;
    chunks_by_age(&transaction, u64::from(limits.raw_days) * DAY_MS, now_ms)?;
    by_age(&transaction, u64::from(limits.rollup_days) * DAY_MS, now_ms)?;
    if size(&transaction)? > limits.max_bytes {
        by_size(&transaction)?;
    }
    for table in ["marks", "findings"] {
        let sql = format!(
            "DELETE FROM {table} WHERE id IN (SELECT id FROM {table}
             WHERE id <= (SELECT max(id) FROM {table}) - ? ORDER BY id LIMIT ?)"
        );
        transaction.execute(&sql, params![MOST_ROWS, ROWS])?;
    }
    transaction.commit()?;
    give_back(db)
}

/// Bytes of the file without its free pages.
pub(super) fn size(db: &Connection) -> rusqlite::Result<u64> {
    let pages = pragma(db, "page_count")? - pragma(db, "freelist_count")?;
    Ok(u64::try_from(pages * pragma(db, "page_size")?).unwrap_or(0))
}

fn pragma(db: &Connection, name: &str) -> rusqlite::Result<i64> {
    db.query_row(&format!("PRAGMA {name}"), (), |row| row.get(0))
}

/// A chunk is too old too when it lies as far ahead: it is of a clock that was wrong.
fn chunks_by_age(db: &Connection, age_ms: u64, now_ms: u64) -> rusqlite::Result<()> {
    const OLD: &str = "DELETE FROM chunks WHERE id IN
         (SELECT id FROM chunks WHERE from_ms < ?1 OR from_ms > ?2 ORDER BY from_ms LIMIT ?3)";
    let (oldest, newest) = (now_ms.saturating_sub(age_ms), now_ms.saturating_add(age_ms));
    db.execute(OLD, params![signed(oldest), signed(newest), CHUNKS]).map(|_| ())
}

fn by_age(db: &Connection, age_ms: u64, now_ms: u64) -> rusqlite::Result<()> {
    const HOURS: &str = "DELETE FROM hours WHERE rowid IN
         (SELECT rowid FROM hours WHERE hour < ?1 OR hour > ?2 LIMIT ?3)";
    let (oldest, newest) = (now_ms.saturating_sub(age_ms), now_ms.saturating_add(age_ms));
    let hour = |ms: u64| signed(ms / 3_600_000);
    db.execute(HOURS, params![hour(oldest), hour(newest), ROWS])?;
    for (table, time) in [
        ("marks", "at_ms"),
        ("findings", "opened_ms"),
        ("fingerprints", "at_ms"),
        ("starts", "at_ms"),
    ] {
        // The newest start is ours.
        let sql = format!(
            "DELETE FROM {table} WHERE id IN (SELECT id FROM {table} WHERE {time} < ?
             AND id < (SELECT max(id) FROM {table}) LIMIT ?)"
        );
        db.execute(&sql, params![signed(oldest), ROWS])?;
    }
    Ok(())
}

/// Whole snapshots go before roll-ups.
fn by_size(db: &Connection) -> rusqlite::Result<()> {
    const OLDEST: &str =
        "DELETE FROM chunks WHERE id IN (SELECT id FROM chunks ORDER BY id LIMIT ?)";
    const HOURS: &str =
        "DELETE FROM hours WHERE rowid IN (SELECT rowid FROM hours ORDER BY hour LIMIT ?)";
    if db.execute(OLDEST, [CHUNKS])? == 0 {
        db.execute(HOURS, [ROWS])?;
    }
    Ok(())
}

/// Gives free pages back to the disk.
fn give_back(db: &Connection) -> rusqlite::Result<()> {
    let (kept, most) = FREE_PAGES;
    let free = pragma(db, "freelist_count")? - kept;
    if free <= 0 {
        return Ok(());
    }
    // A row for each page.
    let mut pages = db.prepare(&format!("PRAGMA incremental_vacuum({})", free.min(most)))?;
    let mut pages = pages.query(())?;
    while pages.next()?.is_some() {}
    Ok(())
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
