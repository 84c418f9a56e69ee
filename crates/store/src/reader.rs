//! Reading: sees what is durable, from any thread or process, while the writer writes.

mod old;
mod parts;

pub use parts::{MessageQuery, Part, Place};

use crate::open::{self, OpenError, Options};
use crate::parse::{event_row, message_row, run_row, session_row, waiting_row};
use crate::rows::{Event, Loaded, Lookup, Message, MessageState, Meta, Run};
use crate::ulid::{self, RunId, SessionId, Ulid};
use pinfold_core::inbox::Queued;
use pinfold_core::{MessageId, Wall};
use rusqlite::types::FromSql;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Params, Row, params};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const SESSION: &str =
    "SELECT id, name, definition, core, created_at, archived_at, parent, position FROM sessions";
const MESSAGE: &str = "SELECT id, session, key, text, state, tries, enqueued_at, done_at, answer, failure,
     run, log_from, log_to FROM messages";
const WAITING: &str = "SELECT session, id, tries FROM messages WHERE state IN ('queued', 'delivered')";
const RUN: &str = "SELECT session, number, id, purpose, pid, fence, started_at, ended_at, code, signal,
     verdict, lived_ms, forced FROM runs";
const EVENT: &str = "SELECT seq, at, session, name, run, kind, why, data FROM events";

/// A connection that only reads. Each call sees the store as it was at one moment.
#[derive(Debug)]
pub struct Reader {
    conn: Connection,
    path: PathBuf,
}

/// Why something cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file, or the one record that was asked for, is damaged.
    #[error("`{path}` is damaged")]
    Damaged {
        /// The store.
        path: PathBuf,
        /// What SQLite says.
        #[source]
        source: rusqlite::Error,
    },
    /// It cannot be read now.
    #[error("`{path}` cannot be read")]
    Failed {
        /// The store.
        path: PathBuf,
        /// What SQLite says.
        #[source]
        source: rusqlite::Error,
    },
}

/// How many of those that match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Take {
    /// All of them.
    #[default]
    All,
    /// The oldest so many.
    First(u32),
    /// The newest so many.
    Last(u32),
}

/// Which events; all of them unless it says otherwise. It spans everything that is stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventQuery {
    /// Only those with a greater number.
    pub after: u64,
    /// Only those with a number up to this.
    pub until: Option<u64>,
    /// Only those not older than this.
    pub since: Option<Wall>,
    /// Only those of this session.
    pub session: Option<SessionId>,
    /// How many of these.
    pub take: Take,
}

type Read<T> = Result<T, ReadError>;

impl Reader {
    /// Opens a store for reading only, whether or not somebody writes it.
    ///
    /// # Errors
    /// A missing, damaged or too new file.
    pub fn open(path: &Path) -> Result<Reader, OpenError> {
        Reader::open_with(path, &Options::default())
    }

    pub(crate) fn open_with(path: &Path, options: &Options) -> Result<Reader, OpenError> {
        Ok(Reader { conn: open::open_reader(path, options)?, path: path.to_owned() })
    }

    /// All sessions, archived ones too, in their order. A damaged one hides none of the others.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn sessions(&self) -> Read<Vec<Loaded>> {
        let mut sessions = self.all(&format!("{SESSION} ORDER BY position, id"), [], session_row)?;
        let mut waiting: BTreeMap<SessionId, Vec<Queued>> = BTreeMap::new();
        for (session, queued) in self.all(&format!("{WAITING} ORDER BY rowid"), [], waiting_row)? {
            waiting.entry(session).or_default().push(queued);
        }
        for loaded in &mut sessions {
            if let Loaded::Whole(stored) = loaded {
                stored.session.refill(waiting.remove(&stored.id).unwrap_or_default());
            }
        }
        Ok(sessions)
    }

    /// The session of this id.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn session(&self, id: SessionId) -> Read<Option<Loaded>> {
        let loaded = self.one(&format!("{SESSION} WHERE id = ?1"), [id.to_string()], session_row)?;
        loaded.map(|loaded| self.whole(loaded)).transpose()
    }

    /// With the messages that wait, which have rows of their own.
    fn whole(&self, mut loaded: Loaded) -> Read<Loaded> {
        if let Loaded::Whole(stored) = &mut loaded {
            let sql = format!("{WAITING} AND session = ?1 ORDER BY rowid");
            let waiting = self.all(&sql, [stored.id.to_string()], waiting_row)?;
            stored.session.refill(waiting.into_iter().map(|(_, queued)| queued));
        }
        Ok(loaded)
    }

    /// The session that a name or the beginning of an id stands for.
    ///
    /// A name goes before an id, and one that is not archived before those that are.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn find(&self, name_or_prefix: &str) -> Read<Lookup> {
        let named = format!("{SESSION} WHERE name = ?1 AND archived_at IS NULL");
        if let Some(loaded) = self.one(&named, [name_or_prefix], session_row)? {
            return Ok(Lookup::One(self.whole(loaded)?));
        }
        let once_named = format!("{SESSION} WHERE name = ?1 AND archived_at IS NOT NULL ORDER BY position");
        let found = self.all(&once_named, [name_or_prefix], session_row)?;
        if !found.is_empty() {
            return self.lookup(found);
        }
        let Some(prefix) = ulid::prefix(name_or_prefix) else { return Ok(Lookup::Nobody) };
        // No letter of an id sorts behind `Z`.
        let with_prefix = format!("{SESSION} WHERE id >= ?1 AND id < ?1 || '~' ORDER BY id");
        self.lookup(self.all(&with_prefix, [prefix], session_row)?)
    }

    /// The messages of a session in the order in which they came.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn messages(
        &self,
        session: SessionId,
        state: Option<MessageState>,
        take: Take,
    ) -> Read<Vec<Message>> {
        let mut sql = format!("{MESSAGE} WHERE session = ?1");
        sql.push_str(if state.is_some() { " AND state = ?2" } else { " AND ?2 IS NULL" });
        let params = params![session.to_string(), state.map(MessageState::word)];
        self.taken(&sql, "rowid", take, params, message_row)
    }

    /// One message.
    ///
    /// # Errors
    /// The file or this message cannot be read.
    pub fn message(&self, message: MessageId) -> Read<Option<Message>> {
        self.one(&format!("{MESSAGE} WHERE id = ?1"), [Ulid::from(message).to_string()], message_row)
    }

    /// The message that a dedupe key of a session stands for.
    ///
    /// # Errors
    /// The file or this message cannot be read.
    pub fn message_by_key(&self, session: SessionId, key: &str) -> Read<Option<Message>> {
        let sql = format!("{MESSAGE} WHERE session = ?1 AND key = ?2");
        self.one(&sql, params![session.to_string(), key], message_row)
    }

    /// The runs of a session by their numbers, also those that came to nothing.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn runs(&self, session: SessionId, take: Take) -> Read<Vec<Run>> {
        self.taken(
            &format!("{RUN} WHERE session = ?1"),
            "number",
            take,
            params![session.to_string()],
            run_row,
        )
    }

    /// One run.
    ///
    /// # Errors
    /// The file or this run cannot be read.
    pub fn run(&self, id: RunId) -> Read<Option<Run>> {
        self.one(&format!("{RUN} WHERE id = ?1"), [id.to_string()], run_row)
    }

    /// Events by their numbers.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn events(&self, query: &EventQuery) -> Read<Vec<Event>> {
        // Only what is asked for is in the statement, and a plus hides a column from the choice of an index:
        // without it SQLite would walk through all numbers to find a time.
        let mut sql = match query.since {
            Some(_) => format!("{EVENT} WHERE +seq > ?1 AND +seq <= ?2 AND at >= ?3"),
            None => format!("{EVENT} WHERE seq > ?1 AND seq <= ?2 AND ?3 IS NULL"),
        };
        sql.push_str(if query.session.is_some() { " AND session = ?4" } else { " AND ?4 IS NULL" });
        let until = query.until.unwrap_or(u64::MAX).min(i64::MAX as u64);
        let after = query.after.min(i64::MAX as u64);
        let session = query.session.map(|session| session.to_string());
        let params = params![after, until, query.since.map(|at| at.0), session];
        self.taken(&sql, "seq", query.take, params, event_row)
    }

    /// The number of the newest event; 0 before the first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn max_seq(&self) -> Read<u64> {
        let seq = self.one("SELECT max(seq) FROM events", [], |row| row.get::<_, Option<u64>>(0))?;
        Ok(seq.flatten().unwrap_or(0))
    }

    /// What is known of the daemons that used this store.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn meta(&self) -> Read<Meta> {
        let generation = self.meta_value("generation")?.unwrap_or(0);
        Ok(Meta { generation, boot_id: self.meta_value("boot_id")? })
    }

    /// The bytes that its files take up on disk.
    #[must_use]
    pub fn disk_used(&self) -> u64 {
        let lengths =
            open::files(&self.path).map(|file| std::fs::metadata(file).map_or(0, |found| found.len()));
        lengths.into_iter().sum()
    }

    fn lookup(&self, mut found: Vec<Loaded>) -> Read<Lookup> {
        Ok(match found.len() {
            0 => Lookup::Nobody,
            1 => Lookup::One(self.whole(found.remove(0))?),
            _ => Lookup::Several(found.iter().map(label).collect()),
        })
    }

    fn meta_value<T: FromSql>(&self, key: &str) -> Read<Option<T>> {
        self.one("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0))
    }

    fn taken<T>(
        &self,
        sql: &str,
        by: &str,
        take: Take,
        params: impl Params,
        parse: fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Read<Vec<T>> {
        let ordered = match take {
            Take::All => format!("{sql} ORDER BY {by}"),
            Take::First(count) => format!("{sql} ORDER BY {by} LIMIT {count}"),
            Take::Last(count) => format!("{sql} ORDER BY {by} DESC LIMIT {count}"),
        };
        let mut rows = self.all(&ordered, params, parse)?;
        if let Take::Last(_) = take {
            rows.reverse();
        }
        Ok(rows)
    }

    fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        parse: fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Read<Vec<T>> {
        let rows = self
            .conn
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_map(params, parse)?.collect());
        rows.map_err(|source| self.error(source))
    }

    fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        parse: fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Read<Option<T>> {
        let row = self
            .conn
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row(params, parse).optional());
        row.map_err(|source| self.error(source))
    }

    fn error(&self, source: rusqlite::Error) -> ReadError {
        let path = self.path.clone();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) | None => {
                ReadError::Damaged { path, source }
            }
            Some(_) => ReadError::Failed { path, source },
        }
    }
}

fn label(loaded: &Loaded) -> (String, String) {
    match loaded {
        Loaded::Whole(stored) => (stored.id.to_string(), stored.name.clone()),
        Loaded::Damaged(damaged) => (damaged.id.clone(), damaged.name.clone()),
    }
}
