//! The index: an SQLite file with words and where they occur, and none of the texts themselves.

use super::shelf::{Shelf, ShelfQuery};
use super::words::folded;
use super::{IndexCandidate, Indexed, SEARCHED, SearchQuery};
use crate::cause::Cause;
use crate::query::Query;
use crate::ulid::{SessionId, Ulid};
use pinfold_core::MessageId;
use rusqlite::types::FromSql;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, params};
use std::fs::{File, remove_file};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An index of another version is rebuilt.
const VERSION: i64 = 2;

/// `words` has only the words, split and folded by us; `docs` says which rows they belong to.
const TABLES: &str = "
    CREATE TABLE state (key TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE docs (id INTEGER PRIMARY KEY AUTOINCREMENT, kind INTEGER NOT NULL, ref TEXT NOT NULL) STRICT;
    CREATE UNIQUE INDEX docs_by_ref ON docs (ref, kind);
    CREATE VIRTUAL TABLE words USING fts5 (
        session, text, content = '', contentless_delete = 1,
        tokenize = 'ascii'
    );
    -- Merging is done in steps of our own: by itself FTS5 would do it at a stroke, in the middle of one.
    INSERT INTO words (words, rank) VALUES ('automerge', 0);
    INSERT INTO words (words, rank) VALUES ('crisismerge', 64);
    PRAGMA user_version = 2;";

/// The best are chosen among this many of the newest rows with the words: ranking all of a hundred thousand
/// takes longer than a person wants to wait, and the worst of them are never read.
const WEIGHED: usize = 2000;
/// The same for a search within some sessions, whose rows are spread among all others.
const WEIGHED_WITHIN: usize = 400;

/// Why an index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// There is no index.
    #[error("there is no index at `{0}`")]
    Missing(PathBuf),
    /// It is not what we left, or of another version: it can only be rebuilt.
    #[error("`{0}` is damaged, or of another version")]
    Unusable(PathBuf),
    /// It cannot be used now.
    #[error("`{path}` cannot be used")]
    Failed {
        /// The path of the index.
        path: PathBuf,
        /// The error of SQLite or the system.
        #[source]
        source: Cause,
    },
    /// The store that it follows cannot be read.
    #[error(transparent)]
    Store(#[from] crate::ReadError),
}

/// A connection to an index.
#[derive(Debug)]
pub struct Index {
    conn: Connection,
    path: PathBuf,
    /// The device and inode of the file.
    file: Option<(u64, u64)>,
}

/// What a row of the index is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Doc {
    pub(super) id: i64,
    pub(super) of: Option<IndexCandidate>,
}

/// A row that has the words, and how well it matches.
#[derive(Debug)]
struct Weighed {
    row: i64,
    score: f64,
    of: Option<IndexCandidate>,
}

impl Index {
    /// Opens an index for searching only.
    ///
    /// # Errors
    /// It is missing, damaged or of another version.
    pub fn open(path: &Path) -> Result<Index, IndexError> {
        if !path.exists() {
            return Err(IndexError::Missing(path.to_owned()));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Index::connect(path, flags)?.of_this_version()
    }

    /// Opens an index for writing; one that is missing is created, one that cannot be used is rebuilt.
    pub(super) fn open_or_make(path: &Path) -> Result<Index, IndexError> {
        match Index::writable(path) {
            Err(IndexError::Unusable(_)) => {
                Index::remove(path)?;
                Index::writable(path)
            }
            other => other,
        }
    }

    fn writable(path: &Path) -> Result<Index, IndexError> {
        let made = File::options().write(true).create(true).truncate(false).mode(0o600).open(path);
        made.map_err(|source| failed_io(path, source))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let index = Index::connect(path, flags)?;
        index.prepare().map_err(|source| index.error(source))?;
        index.of_this_version()
    }

    /// Whether its file is still the one at its path: it may have been removed or replaced.
    pub(super) fn is_in_place(&self) -> bool {
        self.file.is_some() && self.file == file_at(&self.path)
    }

    /// Returns the device, inode and length of its log: only the writer of the index writes there.
    pub(super) fn log(&self) -> Option<(u64, u64, u64)> {
        let mut log = self.path.as_os_str().to_owned();
        log.push("-wal");
        Path::new(&log).metadata().ok().map(|facts| (facts.dev(), facts.ino(), facts.len()))
    }

    /// Returns what tells its file from a copy on the same disk.
    pub(super) fn file_number(&self) -> i64 {
        self.file.map_or(0, |(_, number)| number.cast_signed())
    }

    /// Removes the files of an index.
    pub(super) fn remove(path: &Path) -> Result<(), IndexError> {
        for ending in ["", "-wal", "-shm"] {
            let mut file = path.as_os_str().to_owned();
            file.push(ending);
            match remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed_io(path, error)),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Index, IndexError> {
        let connect = || {
            let conn = Connection::open_with_flags(path, flags)?;
            conn.busy_timeout(Duration::from_secs(5))?;
            conn.pragma_update(None, "mmap_size", 0)?;
            // The kernel caches the rest, as for the store itself.
            conn.pragma_update(None, "cache_size", -512)?;
            Ok(conn)
        };
        match connect() {
            Ok(conn) => Ok(Index { conn, path: path.to_owned(), file: file_at(path) }),
            Err(source) => Err(failed(path, source)),
        }
    }

    /// What a power failure takes can be rebuilt from the store, so only a checkpoint waits for the disk.
    fn prepare(&self) -> rusqlite::Result<()> {
        self.conn.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        self.conn.pragma_update(None, "synchronous", "NORMAL")?;
        self.conn.pragma_update(None, "wal_autocheckpoint", 0)?;
        self.conn.pragma_update(None, "secure_delete", true)?;
        let version: i64 = self.conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let tables: i64 = self.conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if (version, tables) == (0, 0) {
            self.conn.execute_batch(&format!("BEGIN IMMEDIATE; {TABLES} COMMIT;"))?;
        }
        Ok(())
    }

    fn of_this_version(self) -> Result<Index, IndexError> {
        let version = self.conn.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
        match version.map_err(|source| self.error(source))? {
            VERSION => Ok(self),
            _ => Err(IndexError::Unusable(self.path)),
        }
    }

    /// Starts over in the same file, so that searches go on.
    pub(super) fn empty(&self) -> Result<(), IndexError> {
        let sql = "BEGIN IMMEDIATE; DELETE FROM docs; DELETE FROM state;
                   INSERT INTO words (words) VALUES ('delete-all'); COMMIT;";
        self.conn.execute_batch(sql).map_err(|source| self.error(source))
    }

    /// Does something in one transaction.
    pub(super) fn at_once<T>(&self, act: impl FnOnce() -> Result<T, IndexError>) -> Result<T, IndexError> {
        let transaction = self.conn.unchecked_transaction().map_err(|source| self.error(source))?;
        let done = act()?;
        transaction.commit().map_err(|source| self.error(source))?;
        Ok(done)
    }

    pub(super) fn state<T: FromSql>(&self, key: &str) -> Result<Option<T>, IndexError> {
        let sql = "SELECT value FROM state WHERE key = ?1";
        let found = self
            .conn
            .prepare_cached(sql)
            .and_then(|mut one| one.query_row([key], |row| row.get(0)).optional());
        found.map_err(|source| self.error(source))
    }

    /// Returns a number; 0 if none is noted.
    pub(super) fn number(&self, key: &str) -> Result<u64, IndexError> {
        Ok(self.state(key)?.unwrap_or(0))
    }

    pub(super) fn forget_state(&self, key: &str) -> Result<(), IndexError> {
        self.execute("DELETE FROM state WHERE key = ?1", [key])
    }

    /// Returns how much of a store is indexed.
    pub(super) fn indexed(&self, reader: &dyn Query) -> Result<Indexed, IndexError> {
        let (begun, followed) = (self.number("begun")?, self.number("seq")?);
        let (seen, left) = (self.number("seen")?, self.number("left")?);
        let done = followed.saturating_sub(begun) + self.number("recalled")? + seen;
        let total = reader.max_seq()?.max(followed) + seen + left;
        Ok(Indexed { done, total })
    }

    pub(super) fn put_state(&self, key: &str, value: impl rusqlite::ToSql) -> Result<(), IndexError> {
        self.execute("INSERT OR REPLACE INTO state (key, value) VALUES (?1, ?2)", params![key, value])
    }

    /// Checkpoints the log, as far as no reader uses it.
    pub(super) fn checkpoint(&self) -> Result<(), IndexError> {
        let done = self.conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        done.map_err(|source| self.error(source))
    }

    /// Checkpoints the log and empties it; returns whether that was possible.
    pub(super) fn empty_log(&self) -> Result<bool, IndexError> {
        let busy = self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
        Ok(busy.map_err(|source| self.error(source))? == 0)
    }

    /// Inserts the words of a text, and replaces those of an earlier version of it.
    pub(super) fn put(
        &self,
        of: &IndexCandidate,
        session: Option<SessionId>,
        text: &str,
    ) -> Result<(), IndexError> {
        let (kind, name) = of.key();
        let known = self.conn.prepare_cached("SELECT id FROM docs WHERE ref = ?1 AND kind = ?2");
        let known = known
            .and_then(|mut one| one.query_row(params![name, kind], |row| row.get::<_, i64>(0)).optional());
        if let Some(id) = known.map_err(|source| self.error(source))? {
            self.take_out(id)?;
        }
        self.execute("INSERT INTO docs (kind, ref) VALUES (?1, ?2)", params![kind, name])?;
        let id = self.conn.last_insert_rowid();
        let shelf = Shelf::of(id);
        let session = session.map(|id| shelf.session(id));
        self.execute(
            "INSERT INTO words (rowid, session, text) VALUES (?1, ?2, ?3)",
            params![id, session, folded(text, SEARCHED, &shelf.mark())],
        )
    }

    pub(super) fn take_out(&self, id: i64) -> Result<(), IndexError> {
        self.execute("DELETE FROM words WHERE rowid = ?1", [id])?;
        self.execute("DELETE FROM docs WHERE id = ?1", [id])
    }

    /// Returns some of the rows of a session.
    pub(super) fn of_session(&self, session: SessionId, most: usize) -> Result<Vec<i64>, IndexError> {
        let mut found = Vec::new();
        for shelf in self.shelves()? {
            let sql = "SELECT rowid FROM words WHERE words MATCH ?1 LIMIT ?2";
            let here = self.conn.prepare_cached(sql).and_then(|mut all| {
                let rows =
                    all.query_map(params![shelf.of_session(session), most - found.len()], |row| row.get(0))?;
                rows.collect::<rusqlite::Result<Vec<i64>>>()
            });
            found.extend(here.map_err(|source| self.error(source))?);
            if found.len() >= most {
                break;
            }
        }
        Ok(found)
    }

    /// Returns all shelves, the newest first.
    fn shelves(&self) -> Result<impl Iterator<Item = Shelf> + use<>, IndexError> {
        let newest = self.conn.query_row("SELECT max(id) FROM docs", [], |row| row.get::<_, Option<i64>>(0));
        let newest = newest.map_err(|source| self.error(source))?;
        Ok(newest.into_iter().flat_map(|row| Shelf::of(row).and_older()))
    }

    /// Returns this many rows after one of them.
    pub(super) fn docs(&self, after: i64, most: usize) -> Result<Vec<Doc>, IndexError> {
        let sql = "SELECT id, kind, ref FROM docs WHERE id > ?1 ORDER BY id LIMIT ?2";
        let read = |row: &Row<'_>| {
            Ok(Doc { id: row.get(0)?, of: IndexCandidate::of(row.get(1)?, &row.get::<_, String>(2)?) })
        };
        let found = self.conn.prepare_cached(sql).and_then(|mut all| {
            all.query_map(params![after, most], read)?.collect::<rusqlite::Result<Vec<Doc>>>()
        });
        found.map_err(|source| self.error(source))
    }

    /// Rewrites some pages, because words that were removed leave traces until then; returns whether more are left.
    pub(super) fn merge(&self, pages: i64) -> Result<bool, IndexError> {
        let before = self.changes()?;
        self.execute("INSERT INTO words (words, rank) VALUES ('merge', ?1)", [-pages])?;
        // SQLite's own criterion: a merge with nothing left to do changes fewer than two rows.
        Ok(self.changes()? - before >= 2)
    }

    /// Merges some of what was inserted, so that a search has few places to look at.
    pub(super) fn tidy(&self, pages: i64) -> Result<(), IndexError> {
        self.execute("INSERT INTO words (words, rank) VALUES ('merge', ?1)", [pages])
    }

    fn changes(&self) -> Result<i64, IndexError> {
        let all = self.conn.query_row("SELECT total_changes()", [], |row| row.get(0));
        all.map_err(|source| self.error(source))
    }

    /// Returns the best rows that have the words.
    pub(super) fn candidates(&self, wanted: &SearchQuery) -> Result<Vec<IndexCandidate>, IndexError> {
        let most = wanted.within.as_ref().map_or(WEIGHED, |_| WEIGHED_WITHIN).max(wanted.limit);
        let mut found: Vec<Weighed> = Vec::new();
        // One snapshot of all shelves, whatever is inserted meanwhile.
        self.at_once(|| {
            for shelf in self.shelves()? {
                let Some(question) = shelf.question(wanted).filter(|_| found.len() < most) else { break };
                if self.may_answer(&question)? {
                    found.extend(self.weighed(&question, most - found.len())?);
                }
            }
            Ok(())
        })?;
        found.sort_by(|one, other| one.score.total_cmp(&other.score).then(other.row.cmp(&one.row)));
        Ok(found.into_iter().filter_map(|weighed| weighed.of).collect())
    }

    fn may_answer(&self, question: &ShelfQuery) -> Result<bool, IndexError> {
        let sql = "SELECT 1 FROM words WHERE words MATCH ?1 LIMIT 1";
        for first in &question.first {
            let found = self.conn.prepare_cached(sql).and_then(|mut one| one.exists([first]));
            if !found.map_err(|source| self.error(source))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the newest rows that match, each with its score: the lower, the better.
    fn weighed(&self, question: &ShelfQuery, most: usize) -> Result<Vec<Weighed>, IndexError> {
        let sql = "SELECT at, score, kind, ref FROM docs JOIN
             (SELECT rowid AS at, bm25(words, 0.0, 1.0) AS score FROM words WHERE words MATCH ?1
              ORDER BY rowid DESC LIMIT ?2) ON docs.id = at";
        let read = |row: &Row<'_>| {
            let of = IndexCandidate::of(row.get(2)?, &row.get::<_, String>(3)?);
            Ok(Weighed { row: row.get(0)?, score: row.get(1)?, of })
        };
        let found = self.conn.prepare_cached(sql).and_then(|mut all| {
            all.query_map(params![question.all, most], read)?.collect::<rusqlite::Result<Vec<_>>>()
        });
        found.map_err(|source| self.error(source))
    }

    fn execute(&self, sql: &str, params: impl rusqlite::Params) -> Result<(), IndexError> {
        let done = self.conn.prepare_cached(sql).and_then(|mut one| one.execute(params));
        done.map(drop).map_err(|source| self.error(source))
    }

    fn error(&self, source: rusqlite::Error) -> IndexError {
        failed(&self.path, source)
    }
}

impl IndexCandidate {
    fn key(&self) -> (i64, String) {
        match self {
            IndexCandidate::Message(id) => (1, Ulid::from(*id).to_string()),
            IndexCandidate::Answer(id) => (2, Ulid::from(*id).to_string()),
            IndexCandidate::Why(seq) => (3, seq.to_string()),
        }
    }

    /// Returns `None` for a kind that this version does not know.
    fn of(kind: i64, name: &str) -> Option<IndexCandidate> {
        let message = || name.parse::<Ulid>().ok().map(MessageId::from);
        match kind {
            1 => message().map(IndexCandidate::Message),
            2 => message().map(IndexCandidate::Answer),
            3 => name.parse().ok().map(IndexCandidate::Why),
            _ => None,
        }
    }
}

fn file_at(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|facts| (facts.dev(), facts.ino()))
}

fn failed(path: &Path, source: rusqlite::Error) -> IndexError {
    match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => IndexError::Unusable(path.to_owned()),
        _ => IndexError::Failed { path: path.to_owned(), source: source.into() },
    }
}

fn failed_io(path: &Path, source: io::Error) -> IndexError {
    IndexError::Failed { path: path.to_owned(), source: source.into() }
}
