//! Opening the file: what it is, whether it can be used, and if not, why and what to do.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::schema;

/// Someone who looks into the file with another program may hold it so long.
const PATIENCE: Duration = Duration::from_secs(1);
/// The tables without which nothing can be written are small, and are looked through at each start.
/// The large ones are not: damage there is met when it is read.
const SMALL: [&str; 7] = ["tail", "marks", "findings", "starts", "names", "subjects", "facts"];

/// Why the file cannot be used.
#[derive(Debug)]
pub(super) enum Unusable {
    /// It was written by a newer version.
    Newer { version: i32 },
    /// It is a database of something else.
    Foreign,
    /// It is damaged, or no database.
    Damaged { what: String },
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
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Damaged { what: error.to_string() }
            }
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

    /// Whether another program holds the file for the moment.
    pub(super) fn passes(&self) -> bool {
        let code = match self {
            Self::Sql(error) => error.sqlite_error_code(),
            _ => None,
        };
        matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
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
            Self::Damaged { what } => (
                format!("the store {file} is damaged: {what}"),
                format!("it cannot be moved aside; move it away, and look at the disk of {folder}"),
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
        _ => {
            format!("look at the disk of {folder}: is it full, are there errors in the kernel log?")
        }
    }
}

/// Opens the file to write, makes it if there is none, and brings it to today's layout.
pub(super) fn open(path: &Path) -> Result<Connection, Unusable> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(Unusable::Folder)?;
    }
    // A file of a newer version is not written, and a writer's end moves its log into it.
    let is_new = std::fs::metadata(path).map_or(true, |found| found.len() == 0);
    let found = if is_new { 0 } else { identify(&read_only(path)?)? };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(PATIENCE)?;
    if found == 0 {
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
    schema::migrate(&mut db, found)?;
    for table in SMALL {
        let sql = format!("PRAGMA quick_check({table})");
        let answer: String = db.query_row(&sql, (), |row| row.get(0))?;
        if answer != "ok" {
            return Err(Unusable::Damaged { what: format!("table {table}: {answer}") });
        }
    }
    Ok(db)
}

/// Opens a file to read.
pub(super) fn open_to_read(path: &Path) -> Result<Connection, Unusable> {
    let opened = || -> Result<Connection, Unusable> {
        let db = read_only(path)?;
        identify(&db)?;
        Ok(db)
    };
    let db = match opened() {
        Ok(db) => db,
        // Where nothing can be written, the log cannot be shared with a writer, and there is none.
        Err(Unusable::Sql(error)) if needs_to_write(&error) => {
            let db = open_unchanging(path)?;
            identify(&db)?;
            db
        }
        Err(unusable) => return Err(unusable),
    };
    db.execute_batch("PRAGMA cache_size = -1024; PRAGMA temp_store = MEMORY;")?;
    Ok(db)
}

fn read_only(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(PATIENCE)?;
    Ok(db)
}

fn needs_to_write(error: &rusqlite::Error) -> bool {
    use ErrorCode::{CannotOpen, ReadOnly, SystemIoFailure};
    matches!(error.sqlite_error_code(), Some(CannotOpen | ReadOnly | SystemIoFailure))
}

fn open_unchanging(path: &Path) -> rusqlite::Result<Connection> {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(char::from(*byte));
            }
            byte => {
                uri.push('%');
                uri.extend(
                    [byte >> 4, byte & 15]
                        .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])),
                );
            }
        }
    }
    uri.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(uri, flags)
}

/// The version of the layout; 0 of an empty file.
fn identify(db: &Connection) -> Result<i32, Unusable> {
    let number = |sql: &str| db.query_row(sql, (), |row| row.get::<_, i32>(0));
    if number("SELECT count(*) FROM sqlite_schema")? == 0 {
        return Ok(0);
    }
    if number("PRAGMA application_id")? != schema::APPLICATION_ID {
        return Err(Unusable::Foreign);
    }
    let version = number("PRAGMA user_version")?;
    if version > schema::version() { Err(Unusable::Newer { version }) } else { Ok(version) }
}

/// Moves a damaged file aside, its log with it, and takes away one that was moved aside before. Where
/// it is now.
pub(super) fn move_aside(path: &Path, now_ms: u64) -> std::io::Result<PathBuf> {
    let with = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let prefix = with(".corrupt-");
    let prefix = prefix.file_name().unwrap_or_default().as_bytes();
    for entry in std::fs::read_dir(path.parent().unwrap_or(path))? {
        let entry = entry?;
        if entry.file_name().as_bytes().starts_with(prefix) {
            std::fs::remove_file(entry.path())?;
        }
    }
    let aside = with(&format!(".corrupt-{}", now_ms / 1000));
    std::fs::rename(path, &aside)?;
    let log = with(&format!(".corrupt-{}-wal", now_ms / 1000));
    for (part, target) in [("-wal", Some(log)), ("-shm", None)] {
        let done = match target {
            Some(target) => std::fs::rename(with(part), target),
            None => std::fs::remove_file(with(part)),
        };
        match done {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(aside)
}
