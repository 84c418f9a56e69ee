//! Opening a file: one that is damaged, foreign or too new is refused, and not one byte of it is changed.
//!
//! Nothing here opens the file other than through SQLite: closing any descriptor of a file drops all POSIX
//! locks that this process has on it, including those of other connections.

use super::errors::{damaged, io_error, unusable};
use super::files::{beside, files, length, log_of, sync_folder, tighten};
use super::schema;
use super::sums::{self, EVENTS};
use super::witness::{self, Witness, WitnessNote};
use crate::open::{Damage, OpenError, Opened, StoreOptions};
use crate::position::StorePosition;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, ffi};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A log that has grown larger is cut when it is reset; below this it is reused as it is, which is faster.
pub(crate) const LARGEST_LOG: u64 = 16 << 20;

/// How much of the file a connection caches, in KiB: the kernel has the rest, and there are two connections.
const KEPT: i64 = 512;

/// A file up to this size is checked completely before it is used, which takes a few milliseconds.
const CHECKED_AT_ONCE: u64 = 8 << 20;

/// A store that can be written.
pub(crate) struct Writable {
    pub(crate) conn: Connection,
    pub(crate) opened: Opened,
    pub(crate) position: StorePosition,
    pub(crate) witness: Option<Witness>,
}

/// Opens or creates a file for writing.
pub(crate) fn open_writer(path: &Path, options: &StoreOptions) -> Result<Writable, OpenError> {
    let noted = match &options.witness {
        Some(witness) => witness::look(witness).map_err(|source| io_error(witness, source))?,
        None => WitnessNote::Missing,
    };
    let created = is_missing(path)?;
    match (created, noted) {
        (true, WitnessNote::At(position)) => return Err(damaged(path, Damage::Missing(position))),
        (_, WitnessNote::Damaged) => {
            return Err(damaged(path, Damage::Witness(options.witness.clone().unwrap_or_default())));
        }
        (true, WitnessNote::Missing) => create(path)?,
        (false, WitnessNote::At(position)) => check(path, options, Some(position))?,
        (false, WitnessNote::Missing) => check(path, options, None)?,
    }
    let tightened = tighten(path).map_err(|source| io_error(path, source))?;
    let conn = connect_writer(path, options).map_err(|source| unusable(path, source))?;
    let position = witness::position(&conn).map_err(|source| unusable(path, source))?;
    let witness = options
        .witness
        .as_ref()
        .map(|witness| Witness::open(witness, &position).map_err(|source| io_error(witness, source)));
    let witnessed = !created && options.witness.is_some() && noted == WitnessNote::Missing;
    let opened = Opened { created, tightened, witnessed };
    Ok(Writable { conn, opened, position, witness: witness.transpose()? })
}

/// Opens an existing file for reading, even while another process writes it.
pub(crate) fn open_reader(path: &Path, options: &StoreOptions) -> Result<Connection, OpenError> {
    if is_missing(path)? {
        return Err(OpenError::Missing { path: path.to_owned() });
    }
    let conn = connect_reader(path, options).map_err(|source| unusable(path, source))?;
    check_version(path, &conn)?;
    Ok(conn)
}

/// Whether nothing exists yet. A log without its file does not count: something was lost.
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

/// Creates a complete file under another name and then renames it, so that half of one is never seen.
fn create(path: &Path) -> Result<(), OpenError> {
    let draft = beside(path, &format!(".new.{}", std::process::id()));
    let made = make(&draft).and_then(|()| publish(&draft, path).map_err(|source| io_error(path, source)));
    // Left over only if creating it failed; that error is the one to report.
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
    begin_so_that_it_can_shrink(draft).map_err(|source| unusable(draft, source))?;
    let conn = connect_writer(draft, &StoreOptions::default()).map_err(|source| unusable(draft, source))?;
    conn.close().map_err(|(_, source)| unusable(draft, source))?;
    File::open(draft).and_then(|file| file.sync_all()).map_err(|source| io_error(draft, source))
}

/// Prepares a file to give space back, which must be set before anything else.
fn begin_so_that_it_can_shrink(draft: &Path) -> rusqlite::Result<()> {
    let conn = Connection::open_with_flags(draft, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    conn.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    // This writes its first page.
    conn.pragma_update_and_check(None, "journal_mode", "WAL", in_wal_mode)?;
    conn.close().map_err(|(_, source)| source)
}

fn publish(draft: &Path, path: &Path) -> io::Result<()> {
    // Unlike a rename, a link does not replace a file that another process created meanwhile.
    match fs::hard_link(draft, path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && length(path)? > 0 => return Ok(()),
        // The file exists and is empty, or this file system has no links.
        Err(_) => fs::rename(draft, path)?,
    }
    sync_folder(path)
}

/// Checks that the file is whole, ours, of a known version, and as far as it was; changes nothing.
fn check(path: &Path, options: &StoreOptions, noted: Option<StorePosition>) -> Result<(), OpenError> {
    let conn = connect_checker(path, options).map_err(|source| unusable(path, source))?;
    check_version(path, &conn)?;
    check_schema(path, &conn)?;
    check_length(path, &conn)?;
    if let Some(noted) = noted {
        check_position(path, &conn, noted)?;
    }
    // A small file is checked completely, at once; a large one while it is in use.
    let bytes = files(path).iter().map(|file| length(file).unwrap_or(0)).sum::<u64>();
    if bytes <= CHECKED_AT_ONCE { check_pages(path, &conn) } else { Ok(()) }
}

/// Whether a file that is small enough for a complete check is whole.
pub(crate) fn is_small_and_whole(conn: &Connection, path: &Path) -> bool {
    length(path).is_ok_and(|bytes| bytes <= CHECKED_AT_ONCE) && check_pages(path, conn).is_ok()
}

/// Checks that a file is whole, ours and of a known version, however large it is.
pub(crate) fn check_all(path: &Path, options: &StoreOptions) -> Result<(), OpenError> {
    if is_missing(path)? {
        return Err(OpenError::Missing { path: path.to_owned() });
    }
    let conn = connect_checker(path, options).map_err(|source| unusable(path, source))?;
    check_version(path, &conn)?;
    check_schema(path, &conn)?;
    check_length(path, &conn)?;
    check_pages(path, &conn)
}

/// Checks that everything that was there is still there.
fn check_position(path: &Path, conn: &Connection, noted: StorePosition) -> Result<(), OpenError> {
    let failed = |source| unusable(path, source);
    // A file from before there were witnesses is older than any of them.
    let old = schema::version(conn).map_err(failed)? < schema::SUMMED;
    let found = if old { StorePosition::default() } else { witness::position(conn).map_err(failed)? };
    if found.is_behind(&noted) {
        return Err(damaged(path, Damage::Behind { found, noted }));
    }
    let same = conn.query_row(&format!("{} WHERE seq = ?1", EVENTS.select()), [noted.seq], |row| {
        let sum: Option<i64> = row.get(EVENTS.columns.len())?;
        // A damaged one says nothing about all the others; it is named when it is read.
        Ok(sum == Some(noted.sum) || !EVENTS.holds(row)?)
    });
    match same.optional().map_err(failed)? {
        Some(false) => Err(damaged(path, Damage::Another(noted))),
        Some(true) | None => Ok(()),
    }
}

/// SQLite reads the missing part of the last page as zeros. If there is a log, the rest may still be in there.
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
        let named = conn.query_row("SELECT value FROM meta WHERE key = 'program'", [], |row| row.get(0));
        let (path, known) = (path.to_owned(), schema::VERSION);
        return Err(OpenError::TooNew { path, found, known, program: named.ok() });
    }
    Ok(())
}

fn check_schema(path: &Path, conn: &Connection) -> Result<(), OpenError> {
    match schema::holds(conn).map_err(|source| unusable(path, source))? {
        true => Ok(()),
        false => Err(damaged(path, Damage::Tables)),
    }
}

fn check_pages(path: &Path, conn: &Connection) -> Result<(), OpenError> {
    let faults = conn
        .prepare("PRAGMA integrity_check(3)")
        .and_then(|mut check| check.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>())
        .map_err(|source| unusable(path, source))?;
    if faults == ["ok"] { Ok(()) } else { Err(damaged(path, Damage::Faults(faults))) }
}

/// Opens a connection that creates and changes nothing. If there is a log it needs SQLite's shared index,
/// which is not data; without one, nothing writes, and the file can be read as it is.
fn connect_checker(path: &Path, options: &StoreOptions) -> rusqlite::Result<Connection> {
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

fn connect_reader(path: &Path, options: &StoreOptions) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(options.busy_timeout)?;
    conn.pragma_update(None, "mmap_size", 0)?;
    conn.pragma_update(None, "cache_size", -KEPT)?;
    Ok(conn)
}

/// Opens a connection that writes durably, to tables of this version.
pub(crate) fn connect_writer(path: &Path, options: &StoreOptions) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(options.busy_timeout)?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.pragma_update(None, "mmap_size", 0)?;
    conn.pragma_update(None, "cache_size", -KEPT)?;
    conn.pragma_update_and_check(None, "journal_mode", "WAL", in_wal_mode)?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    // Matters only on macOS: there an fsync is not enough.
    conn.pragma_update(None, "fullfsync", true)?;
    conn.pragma_update(None, "checkpoint_fullfsync", true)?;
    conn.pragma_update(None, "journal_size_limit", LARGEST_LOG.cast_signed())?;
    conn.pragma_update(None, "foreign_keys", true)?;
    // What is deleted is overwritten; the cost is only pages that are written anyway.
    conn.pragma_update(None, "secure_delete", true)?;
    sums::teach(&conn)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_is_durable_and_a_reader_cannot_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let writer = open_writer(&path, &StoreOptions::default()).unwrap().conn;
        let pragma = |name: &str| -> i64 { writer.pragma_query_value(None, name, |row| row.get(0)).unwrap() };
        assert_eq!((pragma("synchronous"), pragma("foreign_keys"), pragma("mmap_size")), (2, 1, 0));
        let mode: String = writer.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!((mode.as_str(), pragma("busy_timeout")), ("wal", 5000));
        let reader = open_reader(&path, &StoreOptions::default()).unwrap();
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
