//! Opening the file: what it is, whether it can be used, and if not, why and what to do.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::schema;

/// Someone who looks into the file with another program may hold it so long.
const PATIENCE: Duration = Duration::from_secs(1);

/// Why the file cannot be used.
#[derive(Debug)]
pub(super) enum Unusable {
    /// It was written by a newer version.
    Newer { version: i32 },
    /// It is a database of something else.
    Foreign,
    /// It is damaged, or no database.
    Damaged(rusqlite::Error),
    /// The folder cannot be made.
    Folder(std::io::Error),
    /// The database does not do what it is asked.
    Sql(rusqlite::Error),
    /// Something else does not.
    Other(anyhow::Error),
}

impl From<rusqlite::Error> for Unusable {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error),
            _ => Self::Sql(error),
        }
    }
}

impl Unusable {
    /// Why a write did not succeed.
    pub(super) fn from_any(error: anyhow::Error) -> Self {
        match error.downcast::<rusqlite::Error>() {
            Ok(error) => error.into(),
            Err(error) => Self::Other(error),
        }
    }

    /// What failed on what, and what to do.
    pub(super) fn words(&self, path: &Path) -> (String, String) {
        let file = path.display();
        let folder = path.parent().unwrap_or(path).display();
        match self {
            Self::Newer { version } => (
                format!(
                    "the store {file} has layout {version}, and this version knows {} at most",
                    schema::version()
                ),
                "run the newer infertop again, or set store.folder to another folder".into(),
            ),
            Self::Foreign => (
                format!("{file} is a database of another program"),
                "move it away, or set store.folder to another folder".into(),
            ),
            Self::Damaged(error) => (
                format!("the store {file} is damaged: {error}"),
                "it is moved aside; if that does not succeed, move it away".into(),
            ),
            Self::Folder(error) => (
                format!("cannot make the folder {folder}: {error}"),
                "make it writable for the daemon's user, or set store.folder to another folder"
                    .into(),
            ),
            Self::Sql(error) => {
                (format!("cannot write the store {file}: {error}"), help(error, path))
            }
            Self::Other(error) => (
                format!("cannot write the store {file}: {error:#}"),
                "report this with the log; the daemon goes on without its past".into(),
            ),
        }
    }
}

fn help(error: &rusqlite::Error, path: &Path) -> String {
    let folder = path.parent().unwrap_or(path).display();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => format!("free some space on the disk of {folder}"),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => format!(
            "make {folder} and the files in it writable for the daemon's user, or set store.folder \
             to another folder"
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program holds the file; end its transaction".into()
        }
        Some(ErrorCode::SystemIoFailure) => {
            format!("look at the disk of {folder}: is it full, are there errors in the kernel log?")
        }
        _ => format!("look at the disk of {folder}"),
    }
}

/// Opens the file to write, makes it if there is none, and brings it to today's layout.
pub(super) fn open(path: &Path) -> Result<Connection, Unusable> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(Unusable::Folder)?;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(PATIENCE)?;
    let application: i32 = db.query_row("PRAGMA application_id", (), |row| row.get(0))?;
    let version: i32 = db.query_row("PRAGMA user_version", (), |row| row.get(0))?;
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))?;
    if application != schema::APPLICATION_ID && tables > 0 {
        return Err(Unusable::Foreign);
    }
    if version > schema::version() {
        return Err(Unusable::Newer { version });
    }
    if tables == 0 {
        // Has an effect before the first table only.
        db.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
    }
    db.execute_batch(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = NORMAL;
         PRAGMA cache_size = -1024;
         PRAGMA temp_store = MEMORY;
         PRAGMA journal_size_limit = 4194304;",
    )?;
    schema::migrate(&mut db, if tables == 0 { 0 } else { version })?;
    Ok(db)
}

/// Opens a file to read.
pub(super) fn open_to_read(path: &Path) -> Result<Connection, Unusable> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(PATIENCE)?;
    db.execute_batch("PRAGMA cache_size = -1024; PRAGMA temp_store = MEMORY;")?;
    let application: i32 = db.query_row("PRAGMA application_id", (), |row| row.get(0))?;
    let version: i32 = db.query_row("PRAGMA user_version", (), |row| row.get(0))?;
    match application {
        schema::APPLICATION_ID if version <= schema::version() => Ok(db),
        schema::APPLICATION_ID => Err(Unusable::Newer { version }),
        _ => Err(Unusable::Foreign),
    }
}
