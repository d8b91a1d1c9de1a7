//! The tables, and the steps that make an older file into one of today's.

use rusqlite::Connection;

/// Marks our files: `itop`.
pub(super) const APPLICATION_ID: i32 = 0x6974_6f70;

/// Each step leads from the version that is its index to the next.
const STEPS: &[&str] = &["
CREATE TABLE tail (
    id INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    number INTEGER NOT NULL,
    dictionary INTEGER,
    data BLOB NOT NULL
);
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    from_ms INTEGER NOT NULL,
    to_ms INTEGER NOT NULL,
    frames BLOB NOT NULL,
    data BLOB NOT NULL
);
CREATE INDEX chunks_from ON chunks (from_ms, to_ms);
CREATE TABLE marks (
    id INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    until_ms INTEGER,
    kind TEXT NOT NULL,
    severity TEXT NOT NULL,
    subject TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX marks_at ON marks (at_ms);
CREATE TABLE findings (
    id INTEGER PRIMARY KEY,
    cause TEXT NOT NULL,
    subject TEXT NOT NULL,
    severity TEXT NOT NULL,
    title TEXT NOT NULL,
    evidence TEXT NOT NULL,
    opened_ms INTEGER NOT NULL,
    closed_ms INTEGER
);
CREATE INDEX findings_opened ON findings (opened_ms);
CREATE TABLE starts (
    id INTEGER PRIMARY KEY,
    version TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    pid INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    ended_ms INTEGER
);
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE subjects (
    id INTEGER PRIMARY KEY,
    subject TEXT NOT NULL,
    label TEXT NOT NULL,
    name TEXT NOT NULL,
    rank INTEGER NOT NULL,
    UNIQUE (subject, label)
);
CREATE TABLE minutes (minute INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE hours (
    metric INTEGER NOT NULL,
    hour INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (metric, hour)
);
CREATE INDEX hours_hour ON hours (hour);
CREATE TABLE fingerprints (id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, data TEXT NOT NULL);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"];

/// The version that this program writes.
pub(super) fn version() -> i32 {
    number(STEPS)
}

fn number(steps: &[&str]) -> i32 {
    i32::try_from(steps.len()).unwrap_or(i32::MAX)
}

/// Brings a file of this version to today's, in one transaction.
pub(super) fn migrate(db: &mut Connection, from: i32) -> rusqlite::Result<()> {
    go_through(db, STEPS, from)
}

fn go_through(db: &mut Connection, steps: &[&str], from: i32) -> rusqlite::Result<()> {
    let done = usize::try_from(from).unwrap_or(0);
    let Some(left @ [_, ..]) = steps.get(done..) else { return Ok(()) };
    let transaction = db.transaction()?;
    for step in left {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", number(steps))?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version_of(db: &Connection) -> i32 {
        db.query_row("PRAGMA user_version", (), |row| row.get(0)).unwrap()
    }

    #[test]
    fn an_older_file_goes_through_the_steps_that_it_lacks_and_keeps_what_it_has() {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db, 0).unwrap();
        let first = version_of(&db);
        db.execute("INSERT INTO facts VALUES ('driver', '590')", ()).unwrap();
        let mut steps = STEPS.to_vec();
        steps.push("ALTER TABLE facts ADD COLUMN since_ms INTEGER; UPDATE facts SET since_ms = 7;");
        go_through(&mut db, &steps, first).unwrap();
        assert_eq!(version_of(&db), first + 1);
        let row: (String, i64) = db
            .query_row("SELECT value, since_ms FROM facts", (), |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        assert_eq!(row, ("590".to_string(), 7));
    }

    #[test]
    fn a_step_that_breaks_off_leaves_the_file_as_it_was() {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db, 0).unwrap();
        let first = version_of(&db);
        let mut steps = STEPS.to_vec();
        steps.extend(["DROP TABLE marks", "ALTER TABLE nothing ADD COLUMN more"]);
        assert!(go_through(&mut db, &steps, first).is_err());
        assert_eq!(version_of(&db), first);
        db.query_row("SELECT count(*) FROM marks", (), |_| Ok(())).unwrap();
    }
}
