//! Opening a file: what is damaged, foreign or too new is refused, and not one byte of it is changed.
//!
//! Nothing here opens the file other than through SQLite: closing any descriptor of a file takes away all
//! POSIX locks that this process has on it, those of other connections too.

use crate::schema;
use crate::sums::EVENTS;
use crate::witness::{self, Noted, Position, Witness};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, ffi};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A log that has grown larger is cut back when it is reset; below this it is reused as it is, which is faster.
pub(crate) const LARGEST_LOG: u64 = 16 << 20;

/// What a connection keeps of the file, in KiB: the kernel has the rest, and there are two connections.
const KEPT: i64 = 512;

/// A file up to this size is checked all over before it is used: that takes a few milliseconds.
const CHECKED_AT_ONCE: u64 = 8 << 20;

/// How a store is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How long to wait for another process that writes.
    pub busy_timeout: Duration,
    /// Where it is noted how far the store is.
    pub witness: Option<PathBuf>,
    /// Where room is kept for a full disk.
    pub reserve: Option<PathBuf>,
    /// What becomes of a batch that cannot be written for now.
    pub when_held_up: HeldUp,
}

/// What becomes of a batch while another process writes, the disk is full, or the file has lost its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldUp {
    /// It fails.
    Fail,
    /// It waits, and so do those behind it; [`Store::on_trouble`](crate::Store::on_trouble) says what for.
    Wait,
}

impl Default for Options {
    fn default() -> Options {
        // Nobody else should write at all: whoever does so for 5 s is worth a word.
        let busy_timeout = Duration::from_secs(5);
        Options { busy_timeout, witness: None, reserve: None, when_held_up: HeldUp::Fail }
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
    #[error(
        "`{path}` has schema version {found}{}, this program knows versions up to {known}",
        program.as_ref().map(|program| format!(" of pinfold {program}")).unwrap_or_default()
    )]
    TooNew {
        /// Which file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// Ours.
        known: i64,
        /// The version of the program that wrote it, if it says so.
        program: Option<String>,
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
    /// Its tables are not the ones that were made.
    #[error("the description of its tables is damaged")]
    Tables,
    /// It is missing, and its witness is there.
    #[error("it is missing, and event {} was in it", .0.seq)]
    Missing(Position),
    /// It has not what was in it.
    #[error("it ends with event {}, and event {} was in it{}", found.seq, noted.seq, of_generation(found, noted))]
    Behind {
        /// How far it is.
        found: Position,
        /// How far it was.
        noted: Position,
    },
    /// It is a healthy store, and another one than before.
    #[error("it is not the database that was here: event {} is another one", .0.seq)]
    Another(Position),
    /// Neither half of the witness can be read.
    #[error("the note of how far it was cannot be read: `{0}` is damaged")]
    Witness(PathBuf),
    /// SQLite cannot read it.
    #[error("it cannot be read: {0}")]
    Unreadable(rusqlite::Error),
    /// SQLite can read it and finds faults.
    #[error("{}", .0.join("; "))]
    Faults(Vec<String>),
}

/// What tells two ends with the same event apart.
fn of_generation(found: &Position, noted: &Position) -> String {
    match (found.seq == noted.seq, found.generation < noted.generation) {
        (false, _) => String::new(),
        (true, true) => format!(" of daemon {}, not {}", noted.generation, found.generation),
        (true, false) => format!(", and {} changes more", noted.steps.saturating_sub(found.steps)),
    }
}

/// What was done to a store when it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Opened {
    /// It was not there before.
    pub created: bool,
    /// Others could have read it; now they cannot.
    pub tightened: bool,
    /// It was there before, and its witness was not.
    pub witnessed: bool,
}

/// A store that can be written.
pub(crate) struct Writable {
    pub(crate) conn: Connection,
    pub(crate) opened: Opened,
    pub(crate) position: Position,
    pub(crate) witness: Option<Witness>,
}

/// Opens or creates a file for writing.
pub(crate) fn open_writer(path: &Path, options: &Options) -> Result<Writable, OpenError> {
    let noted = match &options.witness {
        Some(witness) => witness::look(witness).map_err(|source| io_error(witness, source))?,
        None => Noted::Missing,
    };
    let created = is_missing(path)?;
    match (created, noted) {
        (true, Noted::At(position)) => return Err(damaged(path, Damage::Missing(position))),
        (_, Noted::Damaged) => {
            return Err(damaged(path, Damage::Witness(options.witness.clone().unwrap_or_default())));
        }
        (true, Noted::Missing) => create(path)?,
        (false, Noted::At(position)) => check(path, options, Some(position))?,
        (false, Noted::Missing) => check(path, options, None)?,
    }
    let tightened = tighten(path).map_err(|source| io_error(path, source))?;
    let conn = connect_writer(path, options).map_err(|source| unusable(path, source))?;
    let position = Position::of(&conn).map_err(|source| unusable(path, source))?;
    let witness = options
        .witness
        .as_ref()
        .map(|witness| Witness::open(witness, &position).map_err(|source| io_error(witness, source)));
    let witnessed = !created && options.witness.is_some() && noted == Noted::Missing;
    let opened = Opened { created, tightened, witnessed };
    Ok(Writable { conn, opened, position, witness: witness.transpose()? })
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

pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
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
    sync_folder(path)
}

/// Puts the names in the folder of a file on disk.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Whether the file is whole, ours, of a version that we know, and as far as it was; looks without touching.
fn check(path: &Path, options: &Options, noted: Option<Position>) -> Result<(), OpenError> {
    let conn = connect_checker(path, options).map_err(|source| unusable(path, source))?;
    check_version(path, &conn)?;
    check_schema(path, &conn)?;
    check_length(path, &conn)?;
    if let Some(noted) = noted {
        check_position(path, &conn, noted)?;
    }
    // What is small is looked at all over, at once; the rest is looked at while it is in use.
    let bytes = files(path).iter().map(|file| length(file).unwrap_or(0)).sum::<u64>();
    if bytes <= CHECKED_AT_ONCE { check_pages(path, &conn) } else { Ok(()) }
}

/// Whether a file that is small enough to be looked at all over is whole.
pub(crate) fn is_small_and_whole(conn: &Connection, path: &Path) -> bool {
    length(path).is_ok_and(|bytes| bytes <= CHECKED_AT_ONCE) && check_pages(path, conn).is_ok()
}

/// Whether a file is whole, ours and of a version that we know, however large it is.
pub(crate) fn check_all(path: &Path, options: &Options) -> Result<(), OpenError> {
    if is_missing(path)? {
        return Err(OpenError::Missing { path: path.to_owned() });
    }
    let conn = connect_checker(path, options).map_err(|source| unusable(path, source))?;
    check_version(path, &conn)?;
    check_schema(path, &conn)?;
    check_length(path, &conn)?;
    check_pages(path, &conn)
}

/// Whether everything is there that was there.
fn check_position(path: &Path, conn: &Connection, noted: Position) -> Result<(), OpenError> {
    let failed = |source| unusable(path, source);
    // A file from before there were witnesses is older than any of them.
    let old = schema::version(conn).map_err(failed)? < schema::SUMMED;
    let found = if old { Position::default() } else { Position::of(conn).map_err(failed)? };
    if found.is_behind(&noted) {
        return Err(damaged(path, Damage::Behind { found, noted }));
    }
    let same = conn.query_row(&format!("{} WHERE seq = ?1", EVENTS.select()), [noted.seq], |row| {
        let sum: Option<i64> = row.get(EVENTS.columns.len())?;
        // One that is damaged says nothing about all the others; it is named when it is read.
        Ok(sum == Some(noted.sum) || !EVENTS.holds(row)?)
    });
    match same.optional().map_err(failed)? {
        Some(false) => Err(damaged(path, Damage::Another(noted))),
        Some(true) | None => Ok(()),
    }
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
pub(crate) fn connect_writer(path: &Path, options: &Options) -> rusqlite::Result<Connection> {
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
    conn.pragma_update(None, "journal_size_limit", LARGEST_LOG.cast_signed())?;
    conn.pragma_update(None, "foreign_keys", true)?;
    // What is deleted is overwritten; all that it costs are pages that are written anyway.
    conn.pragma_update(None, "secure_delete", true)?;
    crate::sums::teach(&conn)?;
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
    let refused = [ErrorCode::DiskFull, ErrorCode::CannotOpen, ErrorCode::SystemIoFailure];
    if source.sqlite_error_code().is_some_and(|code| refused.contains(&code)) && crate::reserve::is_full(path)
    {
        return io_error(path, rustix::io::Errno::NOSPC.into());
    }
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
        let writer = open_writer(&path, &Options::default()).unwrap().conn;
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
