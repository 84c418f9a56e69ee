//! Copies of a store: made while it is in use, and put back while it is not.

use super::answers::AnswerFiles;
use super::apply::insert_event;
use super::files::{self, log_of};
use super::open;
use super::reader::SqliteReader;
use super::reserve;
use super::schema;
use super::sums::{self, ANSWERS, MESSAGES};
use super::witness::{self, Witness, WitnessNote};
use crate::answer::AnswerKept;
use crate::copy::{BackupError, Files};
use crate::open::{Damage, OpenError, StoreOptions};
use crate::pace::CheckPace;
use crate::position::StorePosition;
use pinfold_core::{EventKind, Wall};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, params};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Pages that are copied in one go.
const PAGES: i32 = 1024;
/// Generations between the latest one known and a store that was put back: no shim has seen them.
const LEAP: u64 = 1 << 20;

/// What stands in the place of the boot in a store that was put back, until a daemon has started on it.
pub const PUT_BACK: &str = "put back";

type Done<T> = Result<T, BackupError>;

impl SqliteReader {
    /// Writes a complete and consistent copy to a new file, with the files that belong to it.
    pub(super) fn backup(&self, file: &Path, beside: &mut dyn FnMut() -> io::Result<Files>) -> Done<u64> {
        let failed = |source| BackupError::Io { path: file.to_owned(), source };
        if file.symlink_metadata().is_ok() {
            return Err(BackupError::Exists { path: file.to_owned() });
        }
        let draft = draft_beside(file);
        let whole = || {
            open::check_all(&draft, &StoreOptions::default()).map_err(|error| of_source(error, self.conn()))
        };
        let copied =
            copy((self.conn(), self.answers()), &draft, beside).and_then(|()| Ok(whole()?)).and_then(|()| {
                // Unlike a rename, a link does not replace a file that another program created meanwhile.
                fs::hard_link(&draft, file).map_err(|error| {
                    let exists = error.kind() == io::ErrorKind::AlreadyExists;
                    if exists { BackupError::Exists { path: file.to_owned() } } else { failed(error) }
                })
            });
        drop(fs::remove_file(&draft));
        copied?;
        files::sync_folder(file).map_err(failed)?;
        Ok(fs::metadata(file).map_err(failed)?.len())
    }
}

/// A copy is as damaged as what was copied.
fn of_source(error: OpenError, source: &Connection) -> OpenError {
    match error {
        OpenError::Damaged { problem, .. } => OpenError::Damaged { path: place(source), problem },
        OpenError::Missing { .. }
        | OpenError::TooNew { .. }
        | OpenError::Io { .. }
        | OpenError::Unusable { .. } => error,
    }
}

fn place(conn: &Connection) -> PathBuf {
    conn.path().map(PathBuf::from).unwrap_or_default()
}

/// Returns a separate name for each copy under way: one daemon may be asked for several at once.
fn draft_beside(file: &Path) -> PathBuf {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    files::beside(file, &format!(".new.{}.{number}", std::process::id()))
}

/// In a copy, and only there, files beside the store have a row each.
const FILE: &str = "file:";
/// The first key after theirs.
const AFTER_FILES: &str = "file;";

/// Copies all pages as they are at one moment, then the files beside them, durably.
fn copy(
    (from, answers): (&Connection, &AnswerFiles),
    draft: &Path,
    beside: &mut dyn FnMut() -> io::Result<Files>,
) -> Done<()> {
    let failed = |source| BackupError::Io { path: draft.to_owned(), source };
    let refused = |source| not_copied(from, draft, source);
    drop(fs::remove_file(draft));
    File::options().write(true).create_new(true).mode(0o600).open(draft).map_err(failed)?;
    copy_pages(from, draft).map_err(refused)?;
    take_answers_in(draft, answers).map_err(refused)?;
    add_files(draft, &beside().map_err(failed)?).map_err(refused)?;
    File::open(draft).and_then(|file| file.sync_all()).map_err(failed)
}

/// Pages that are missing or make no sense are the source's fault; any other error is the copy's.
fn not_copied(from: &Connection, draft: &Path, source: rusqlite::Error) -> BackupError {
    let short = Some(rusqlite::ffi::SQLITE_IOERR_SHORT_READ);
    let damaged = [Some(ErrorCode::DatabaseCorrupt), Some(ErrorCode::NotADatabase)]
        .contains(&source.sqlite_error_code());
    if damaged || source.sqlite_extended_error_code() == short {
        return OpenError::Damaged { path: place(from), problem: Damage::Unreadable(source.into()) }.into();
    }
    not_written(draft, source)
}

/// Reports a full disk as such, whatever SQLite makes of it.
fn not_written(draft: &Path, source: rusqlite::Error) -> BackupError {
    let path = draft.to_owned();
    match reserve::is_full(draft) {
        true => BackupError::Io { path, source: rustix::io::Errno::NOSPC.into() },
        false => BackupError::Copy { path, source: source.into() },
    }
}

fn copy_pages(from: &Connection, draft: &Path) -> rusqlite::Result<()> {
    // Within one transaction the source stands still, however much is written meanwhile.
    let moment = from.unchecked_transaction()?;
    moment.query_row("SELECT count(*) FROM meta", [], |_| Ok(()))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut to = Connection::open_with_flags(draft, flags)?;
    let backup = Backup::new(from, &mut to)?;
    let mut step = StepResult::More;
    while step == StepResult::More {
        step = backup.step(PAGES)?;
    }
    if step != StepResult::Done {
        return Err(rusqlite::Error::SqliteFailure(busy(), None));
    }
    drop(backup);
    // One file, without a log beside it.
    to.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
    to.close().map_err(|(_, error)| error)
}

/// Puts all answers into their rows, because a copy is one file. An answer whose file is damaged, or went
/// meanwhile with its message, keeps only its beginning and is marked as cut.
fn take_answers_in(draft: &Path, answers: &AnswerFiles) -> rusqlite::Result<()> {
    let mut to = Connection::open_with_flags(draft, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let has = "SELECT count(*) FROM sqlite_schema WHERE name = 'answers'";
    if to.query_row(has, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(());
    }
    sums::teach(&to)?;
    let whole = to.transaction()?;
    let all = "SELECT message, session, bytes, content FROM answers JOIN messages ON id = message
         WHERE content IS NOT NULL";
    let rows: Vec<(String, String, u64, i64)> = whole
        .prepare(all)?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
        .collect::<Result<_, _>>()?;
    for (message, session, bytes, content) in rows {
        let (Ok(id), Ok(of)) = (message.parse(), session.parse()) else { continue };
        let kept = AnswerKept { beside: Some(bytes), cut: false };
        let read = answers.read(of, id, kept, content).ok();
        let change = ANSWERS.update(&[("content", "NULL"), ("cut", "max(cut, ?2)")], "message = ?1");
        whole.execute(&change, params![message, read.is_none()])?;
        if let Some(answer) = read {
            whole.execute(&MESSAGES.update(&[("answer", "?2")], "id = ?1"), params![message, answer])?;
        }
    }
    whole.commit()?;
    to.close().map_err(|(_, error)| error)
}

fn add_files(draft: &Path, files: &Files) -> rusqlite::Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    let mut to = Connection::open_with_flags(draft, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let whole = to.transaction()?;
    for (name, content) in files {
        let row = params![format!("{FILE}{name}"), content];
        whole.execute("INSERT INTO meta (key, value) VALUES (?1, ?2)", row)?;
    }
    whole.commit()?;
    to.close().map_err(|(_, error)| error)
}

fn busy() -> rusqlite::ffi::Error {
    rusqlite::ffi::Error { code: ErrorCode::DatabaseBusy, extended_code: rusqlite::ffi::SQLITE_BUSY }
}

/// A copy that can be put back.
#[derive(Debug)]
pub struct BackupCopy {
    file: PathBuf,
    /// How far it is.
    pub position: StorePosition,
}

/// Checks a whole copy.
///
/// # Errors
/// It is damaged, too new, or not a store.
pub fn look(file: &Path) -> Done<BackupCopy> {
    let options = StoreOptions::default();
    open::check_all(file, &options)?;
    let mut reader = SqliteReader::open_with(file, &options)?;
    let unreadable = |source: rusqlite::Error| OpenError::Damaged {
        path: file.to_owned(),
        problem: Damage::Unreadable(source.into()),
    };
    let old = schema::version(reader.conn()).map_err(unreadable)? < schema::SENT_BY;
    if old {
        // What it knows about daemons is in the same place in all versions.
        let sql = "SELECT value FROM meta WHERE key = 'generation'";
        let generation = reader.conn().query_row(sql, [], |row| row.get(0)).unwrap_or(0);
        let position = StorePosition { generation, ..StorePosition::default() };
        return Ok(BackupCopy { file: file.to_owned(), position });
    }
    let findings = reader.check(&CheckPace::at_once()).unwrap_or_else(|error| vec![error.to_string()]);
    if !findings.is_empty() {
        return Err(OpenError::Damaged { path: file.to_owned(), problem: Damage::Faults(findings) }.into());
    }
    let position = witness::position(reader.conn()).map_err(unreadable)?;
    Ok(BackupCopy { file: file.to_owned(), position })
}

impl BackupCopy {
    /// Returns the files that were copied with it.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn files(&self) -> Done<Files> {
        let reader = SqliteReader::open_with(&self.file, &StoreOptions::default())?;
        let unreadable = |source: rusqlite::Error| OpenError::Damaged {
            path: self.file.clone(),
            problem: Damage::Unreadable(source.into()),
        };
        let sql = "SELECT substr(key, ?1), value FROM meta WHERE key >= ?2 AND key < ?3";
        let range = params![FILE.len() + 1, FILE, AFTER_FILES];
        let read = reader.conn().prepare(sql).and_then(|mut all| {
            let rows = all.query_map(range, |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        });
        Ok(read.map_err(unreadable)?)
    }

    /// Puts it in the place of a store that is not in use. What was there is kept beside it, as `.old`.
    ///
    /// Its generation is greater than any ever seen here, and the witness refers to it from now on.
    ///
    /// # Errors
    /// The files cannot be written; what was there is then still there, under its own name or as `.old`.
    pub fn put_back(&self, database: &Path, witness: &Path, seen: u64, at: Wall) -> Done<StorePosition> {
        // The database that is replaced may have been newer than any living shim.
        let noted =
            if let Ok(WitnessNote::At(noted)) = witness::look(witness) { noted.generation } else { 0 };
        let seen = seen.max(noted);
        let draft = draft_beside(database);
        let source = SqliteReader::open_with(&self.file, &StoreOptions::default())?;
        let made = copy((source.conn(), source.answers()), &draft, &mut || Ok(Vec::new()))
            .and_then(|()| self.renew(&draft, seen, at));
        let position = made.inspect_err(|_| drop(fs::remove_file(&draft)))?;
        let failed = |source| BackupError::Io { path: database.to_owned(), source };
        // Without a witness neither half of this is mistaken for the other: a missing database is reported,
        // and this is done again.
        missing_is_fine(fs::remove_file(witness)).map_err(failed)?;
        let old = files::beside(database, ".old");
        missing_is_fine(fs::rename(log_of(database), log_of(&old))).map_err(failed)?;
        missing_is_fine(fs::rename(database, &old)).map_err(failed)?;
        missing_is_fine(fs::remove_file(files::beside(database, "-shm"))).map_err(failed)?;
        fs::rename(&draft, database).map_err(failed)?;
        files::sync_folder(database).map_err(failed)?;
        Witness::open(witness, &position).map_err(failed)?;
        Ok(position)
    }

    /// Brings a copy up to date, and its generation above all others.
    fn renew(&self, draft: &Path, seen: u64, at: Wall) -> Done<StorePosition> {
        let refused = |source| not_written(draft, source);
        let_it_shrink(draft).map_err(refused)?;
        let conn = open::connect_writer(draft, &StoreOptions::default()).map_err(refused)?;
        let generation = seen.max(self.position.generation) + LEAP;
        self.note(&conn, generation, at).map_err(refused)?;
        let position = witness::position(&conn).map_err(refused)?;
        conn.close().map_err(|(_, source)| refused(source))?;
        File::open(draft)
            .and_then(|file| file.sync_all())
            .map_err(|source| BackupError::Io { path: draft.to_owned(), source })?;
        Ok(position)
    }

    fn note(&self, conn: &Connection, generation: u64, at: Wall) -> rusqlite::Result<()> {
        let moment = conn.unchecked_transaction()?;
        // They belong beside the store; the caller that puts it back has already extracted them.
        conn.execute("DELETE FROM meta WHERE key >= ?1 AND key < ?2", [FILE, AFTER_FILES])?;
        let sql = "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)";
        conn.execute(sql, params!["generation", generation])?;
        conn.execute(sql, params!["boot_id", PUT_BACK])?;
        let newest: i64 = conn.query_row("SELECT coalesce(max(seq), 0) FROM events", [], |row| row.get(0))?;
        let why = format!("a backup was put back: it ends with event {newest}");
        let (seq, at) = (ValueRef::Integer(newest + 1), ValueRef::Integer(at.0));
        let [session, name, run] = [ValueRef::Null; 3];
        let kind = EventKind::BackupRestored;
        let (kind, why) = (kind.word().into(), why.as_str().into());
        insert_event(conn, [seq, at, session, name, run, kind, why, "{}".into()])?;
        moment.commit()
    }
}

/// Rewrites a file from before files could shrink, so that it can.
fn let_it_shrink(draft: &Path) -> rusqlite::Result<()> {
    let conn = Connection::open_with_flags(draft, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let can: i64 = conn.pragma_query_value(None, "auto_vacuum", |row| row.get(0))?;
    if can == 0 {
        conn.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; VACUUM")?;
    }
    conn.close().map_err(|(_, error)| error)
}

fn missing_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
