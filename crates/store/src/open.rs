//! Opening a file: what is damaged, foreign or too new is refused, and not one byte of it is changed.
//!
//! Nothing here opens the file other than through SQLite: closing any descriptor of a file takes away all
//! POSIX locks that this process has on it, those of other connections too.

use crate::schema;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row, ffi};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A log that has grown larger is cut back when it is reset; below this it is reused as it is, which is faster.
const LARGEST_LOG: i64 = 16 << 20;

/// What a connection keeps of the file, in KiB: the kernel has the rest, and there are two connections.
const KEPT: i64 = 512;

/// How a store is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How long to wait for another process that writes.
    pub busy_timeout: Duration,
}

impl Default for Options {
    fn default() -> Options {
        // Nobody else should write at all: whoever does so for 5 s is worth an error.
        Options { busy_timeout: Duration::from_secs(5) }
    }
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no store yet; only readers mind.
    #[error("there is no store at `{path}`")]
    Missing {
        /// Where.
        path: PathBuf,
    },
    /// It is not what we left; nothing in it was changed.
    #[error("`{path}` is damaged: {problem}")]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: Damage,
    },
    /// A later version of pinfold wrote it; nothing in it was changed.
    #[error("`{path}` has schema version {found}, this program knows versions up to {known}")]
    TooNew {
        /// Which file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// The system does not let us.
    #[error("`{path}` cannot be opened")]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// SQLite cannot use it, for a reason that lies outside of the file.
    #[error("`{path}` cannot be used")]
    Unusable {
        /// Which file.
        path: PathBuf,
        /// What SQLite says.
        #[source]
        source: rusqlite::Error,
    },
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// Its log is there, and it is missing or empty.
    #[error("it is missing or empty, but its log is there")]
    LogOnly,
    /// It ends in the middle of a page.
    #[error("it ends in the middle of a page, after {bytes} bytes")]
    Truncated {
        /// How long it is.
        bytes: u64,
    },
    /// It is somebody else's database.
    #[error("it is another program's database")]
    NotOurs,
    /// SQLite cannot read it.
    #[error("it cannot be read: {0}")]
    Unreadable(rusqlite::Error),
    /// SQLite can read it and finds faults.
    #[error("{}", .0.join("; "))]
    Faults(Vec<String>),
}

/// What was done to a store when it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Opened {
    /// It was not there before.
    pub created: bool,
    /// Others could have read it; now they cannot.
    pub tightened: bool,
}

/// Opens or creates a file for writing.
pub(crate) fn open_writer(path: &Path, options: &Options) -> Result<(Connection, Opened), OpenError> {
    let created = is_missing(path)?;
    if created {
        create(path)?;
    } else {
        check(path, options)?;
    }
    let tightened = tighten(path).map_err(|source| io_error(path, source))?;
    let conn = connect_writer(path, options).map_err(|source| unusable(path, source))?;
    Ok((conn, Opened { created, tightened }))
}

/// Opens an existing file for reading, also while another process writes it.
pub(crate) fn open_reader(path: &Path, options: &Options) -> Result<Connection, OpenError> {
    if is_missing(path)? {
        return Err(OpenError::Missing { path: path.to_owned() });
    }
    let conn = connect_reader(path, options).map_err(|source| unusable(path, source))?;
    check_version(path, &conn)?;
    Ok(conn)
}

/// The files that make up a store.
pub(crate) fn files(path: &Path) -> [PathBuf; 3] {
    [path.to_owned(), log_of(path), beside(path, "-shm")]
}

/// SQLite's log.
pub(crate) fn log_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Whether nothing is there yet. A log without its file is no such case: something was lost.
fn is_missing(path: &Path) -> Result<bool, OpenError> {
    let there = length(path).map_err(|source| io_error(path, source))? > 0;
    if !there && has_log(path)? {
        return Err(OpenError::Damaged { path: path.to_owned(), problem: Damage::LogOnly });
    }
    Ok(!there)
}

fn has_log(path: &Path) -> Result<bool, OpenError> {
    let log = log_of(path);
    length(&log).map(|bytes| bytes > 0).map_err(|source| io_error(&log, source))
}

fn length(path: &Path) -> io::Result<u64> {
    match fs::metadata(path) {
        Ok(found) => Ok(found.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// Makes a complete file aside and then gives it its name: nobody ever sees half of one.
fn create(path: &Path) -> Result<(), OpenError> {
    let draft = beside(path, &format!(".new.{}", std::process::id()));
    let made = make(&draft).and_then(|()| publish(&draft, path).map_err(|source| io_error(path, source)));
    // Left over only if making it failed; that error is the one to tell.
    drop(fs::remove_file(&draft));
    made
}

fn make(draft: &Path) -> Result<(), OpenError> {
    drop(fs::remove_file(draft));
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(draft)
        .map_err(|source| io_error(draft, source))?;
    let conn = connect_writer(draft, &Options::default()).map_err(|source| unusable(draft, source))?;
    conn.close().map_err(|(_, source)| unusable(draft, source))?;
    File::open(draft).and_then(|file| file.sync_all()).map_err(|source| io_error(draft, source))
}

fn publish(draft: &Path, path: &Path) -> io::Result<()> {
    // Unlike a rename, a link does not replace what another process made meanwhile.
    match fs::hard_link(draft, path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && length(path)? > 0 => return Ok(()),
        // The file is there and empty, or this file system has no links.
        Err(_) => fs::rename(draft, path)?,
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Whether the file is whole, ours, and of a version that we know; looks without touching.
fn check(path: &Path, options: &Options) -> Result<(), OpenError> {
    let conn = connect_checker(path, options).map_err(|source| unusable(path, source))?;
    check_version(path, &conn)?;
    check_length(path, &conn)?;
    check_pages(path, &conn)
}

/// SQLite reads what is missing of the last page as zeros. With a log, the rest may still be in there.
fn check_length(path: &Path, conn: &Connection) -> Result<(), OpenError> {
    let page: u64 =
        conn.query_row("PRAGMA page_size", [], |row| row.get(0)).map_err(|source| unusable(path, source))?;
    let bytes = length(path).map_err(|source| io_error(path, source))?;
    if has_log(path)? || bytes.is_multiple_of(page) {
        return Ok(());
    }
    Err(damaged(path, Damage::Truncated { bytes }))
}

fn check_version(path: &Path, conn: &Connection) -> Result<(), OpenError> {
    let owner: i32 = conn
        .query_row("PRAGMA application_id", [], |row| row.get(0))
        .map_err(|source| unusable(path, source))?;
    let found = schema::version(conn).map_err(|source| unusable(path, source))?;
    if owner != schema::APPLICATION_ID || found < 1 {
        return Err(damaged(path, Damage::NotOurs));
    }
    if found > schema::VERSION {
        return Err(OpenError::TooNew { path: path.to_owned(), found, known: schema::VERSION });
    }
    Ok(())
}

fn check_pages(path: &Path, conn: &Connection) -> Result<(), OpenError> {
    let faults = conn
        .prepare("PRAGMA quick_check(3)")
        .and_then(|mut check| check.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>())
        .map_err(|source| unusable(path, source))?;
    if faults == ["ok"] { Ok(()) } else { Err(damaged(path, Damage::Faults(faults))) }
}

/// A connection that creates and changes nothing. With a log it needs SQLite's shared index, which is
/// not data; without one, nobody writes, and the file can be read as it lies there.
fn connect_checker(path: &Path, options: &Options) -> rusqlite::Result<Connection> {
    if length(&log_of(path)).is_ok_and(|bytes| bytes > 0) {
        return connect_reader(path, options);
    }
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(format!("file:{}?immutable=1", percent_encoded(path)), flags)
}

fn percent_encoded(path: &Path) -> String {
    let mut text = String::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                text.push(char::from(*byte));
            }
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}

fn connect_reader(path: &Path, options: &Options) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(options.busy_timeout)?;
    conn.pragma_update(None, "mmap_size", 0)?;
    conn.pragma_update(None, "cache_size", -KEPT)?;
    Ok(conn)
}

/// A connection that writes durably, to tables of this version.
fn connect_writer(path: &Path, options: &Options) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(options.busy_timeout)?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.pragma_update(None, "mmap_size", 0)?;
    conn.pragma_update(None, "cache_size", -KEPT)?;
    conn.pragma_update_and_check(None, "journal_mode", "WAL", in_wal_mode)?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    // Only macOS knows the difference: there an fsync is not enough.
    conn.pragma_update(None, "fullfsync", true)?;
    conn.pragma_update(None, "checkpoint_fullfsync", true)?;
    conn.pragma_update(None, "journal_size_limit", LARGEST_LOG)?;
    conn.pragma_update(None, "foreign_keys", true)?;
    schema::migrate(&mut conn)?;
    Ok(conn)
}

fn in_wal_mode(row: &Row<'_>) -> rusqlite::Result<()> {
    match row.get_ref(0)?.as_str()? {
        "wal" => Ok(()),
        other => {
            let cause = ffi::Error::new(ffi::SQLITE_CANTOPEN);
            let text = format!("the file system allows journal mode `{other}` only, and `wal` is needed");
            Err(rusqlite::Error::SqliteFailure(cause, Some(text)))
        }
    }
}

/// Takes away what others may do with the files; tells whether there was anything to take away.
fn tighten(path: &Path) -> io::Result<bool> {
    let mut tightened = false;
    for file in files(path) {
        match fs::metadata(&file) {
            Ok(found) if found.permissions().mode() & 0o077 != 0 => {
                fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
                tightened = true;
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(tightened)
}

fn damaged(path: &Path, problem: Damage) -> OpenError {
    OpenError::Damaged { path: path.to_owned(), problem }
}

fn io_error(path: &Path, source: io::Error) -> OpenError {
    OpenError::Io { path: path.to_owned(), source }
}

/// What an error of SQLite's says about opening: these codes tell of locks, rights and space, all others
/// of the file itself.
fn unusable(path: &Path, source: rusqlite::Error) -> OpenError {
    match source.sqlite_error_code() {
        Some(
            ErrorCode::CannotOpen
            | ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::DiskFull
            | ErrorCode::OutOfMemory
            | ErrorCode::PermissionDenied
            | ErrorCode::ReadOnly
            | ErrorCode::SystemIoFailure,
        ) => OpenError::Unusable { path: path.to_owned(), source },
        Some(_) | None => damaged(path, Damage::Unreadable(source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_is_durable_and_a_reader_cannot_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let (writer, _) = open_writer(&path, &Options::default()).unwrap();
        let pragma = |name: &str| -> i64 { writer.pragma_query_value(None, name, |row| row.get(0)).unwrap() };
        assert_eq!((pragma("synchronous"), pragma("foreign_keys"), pragma("mmap_size")), (2, 1, 0));
        let mode: String = writer.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!((mode.as_str(), pragma("busy_timeout")), ("wal", 5000));
        let reader = open_reader(&path, &Options::default()).unwrap();
        reader.execute("DELETE FROM events", []).unwrap_err();
    }

    #[test]
    fn a_store_that_somebody_else_made_meanwhile_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (draft, path) = (folder.path().join("draft"), folder.path().join("s.db"));
        fs::write(&draft, "mine").unwrap();
        fs::write(&path, "theirs").unwrap();
        publish(&draft, &path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        fs::write(&path, "").unwrap();
        publish(&draft, &path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"mine");
    }
}
