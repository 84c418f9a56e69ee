//! Reading: sees what is durable, from any thread or process, while the writer writes.

mod old;
mod parts;

pub use parts::{MessageQuery, Part, Place};

use crate::open::{self, OpenError, Options};
use crate::parse::{Waiting, event_row, message_row, run_row, session_row, waiting_row};
use crate::rows::{Event, Loaded, Lookup, Message, MessageState, Meta, RowDamage, Run, StoredSession};
use crate::sums::{EVENTS, MESSAGES, RUNS, SESSIONS};
use crate::ulid::{self, RunId, SessionId, Ulid};
use pinfold_core::inbox::Queued;
use pinfold_core::{MessageId, Wall};
use rusqlite::types::FromSql;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Params, Row, params};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

static SESSION: LazyLock<String> = LazyLock::new(|| SESSIONS.select());
static MESSAGE: LazyLock<String> = LazyLock::new(|| MESSAGES.select());
/// The few that wait, by the index that has no others: in the order of rows SQLite would read all messages.
static WAITING: LazyLock<String> = LazyLock::new(|| {
    let few = "SELECT rowid FROM messages INDEXED BY messages_waiting WHERE state IN ('queued', 'delivered')";
    format!("{} WHERE rowid IN ({few})", MESSAGES.select())
});
static RUN: LazyLock<String> = LazyLock::new(|| RUNS.select());
static EVENT: LazyLock<String> = LazyLock::new(|| EVENTS.select());

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
    /// The one record that was asked for is not as it was written.
    #[error("{what} {id} in `{path}` is damaged: {problem}")]
    Row {
        /// The store.
        path: PathBuf,
        /// What it is.
        what: &'static str,
        /// Its id, as it is stored.
        id: String,
        /// What is wrong with it.
        problem: String,
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

    pub(crate) fn conn(&self) -> &Connection {
        &self.conn
    }

    pub(crate) fn conn_mut(&mut self) -> &mut Connection {
        &mut self.conn
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// All sessions, archived ones too, in their order. A damaged one hides none of the others.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn sessions(&self) -> Read<Vec<Loaded>> {
        let mut sessions = self.all(&format!("{} ORDER BY position, id", *SESSION), [], session_row)?;
        let mut waiting: BTreeMap<SessionId, Inbox> = BTreeMap::new();
        for row in self.all(&format!("{} ORDER BY rowid", *WAITING), [], waiting_row)? {
            waiting.entry(row.session).or_default().add(row.message);
        }
        for loaded in &mut sessions {
            if let Loaded::Whole(stored) = loaded {
                waiting.remove(&stored.id).unwrap_or_default().fill(stored);
            }
        }
        Ok(sessions)
    }

    /// The session of this id.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn session(&self, id: SessionId) -> Read<Option<Loaded>> {
        let loaded = self.one(&format!("{} WHERE id = ?1", *SESSION), [id.to_string()], session_row)?;
        loaded.map(|loaded| self.whole(loaded)).transpose()
    }

    /// With the messages that wait, which have rows of their own.
    fn whole(&self, mut loaded: Loaded) -> Read<Loaded> {
        if let Loaded::Whole(stored) = &mut loaded {
            let sql = format!("{} AND session = ?1 ORDER BY rowid", *WAITING);
            let mut inbox = Inbox::default();
            self.all(&sql, [stored.id.to_string()], waiting_row)?
                .into_iter()
                .for_each(|row| inbox.add(row.message));
            inbox.fill(stored);
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
        let named = format!("{} WHERE name = ?1 AND archived_at IS NULL", *SESSION);
        if let Some(loaded) = self.one(&named, [name_or_prefix], session_row)? {
            return Ok(Lookup::One(self.whole(loaded)?));
        }
        let once_named =
            format!("{} WHERE name = ?1 AND archived_at IS NOT NULL ORDER BY position", *SESSION);
        let found = self.all(&once_named, [name_or_prefix], session_row)?;
        if !found.is_empty() {
            return self.lookup(found);
        }
        let Some(prefix) = ulid::prefix(name_or_prefix) else { return Ok(Lookup::Nobody) };
        // No letter of an id sorts behind `Z`.
        let with_prefix = format!("{} WHERE id >= ?1 AND id < ?1 || '~' ORDER BY id", *SESSION);
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
        let sql = format!("{} WHERE session = ?1 AND {}", *MESSAGE, parts::in_state(state));
        self.taken(&sql, "rowid", take, params![session.to_string()], message_row)
    }

    /// One message.
    ///
    /// # Errors
    /// The file or this message cannot be read.
    pub fn message(&self, message: MessageId) -> Read<Option<Message>> {
        let sql = format!("{} WHERE id = ?1", *MESSAGE);
        self.whole_message(self.one(&sql, [Ulid::from(message).to_string()], message_row)?)
    }

    /// The message that a dedupe key of a session stands for.
    ///
    /// # Errors
    /// The file or this message cannot be read.
    pub fn message_by_key(&self, session: SessionId, key: &str) -> Read<Option<Message>> {
        let sql = format!("{} WHERE session = ?1 AND key = ?2", *MESSAGE);
        self.whole_message(self.one(&sql, params![session.to_string(), key], message_row)?)
    }

    /// How many bytes of text wait in an inbox, that of the turn under way included.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn waiting_bytes(&self, session: SessionId) -> Read<u64> {
        // Without reading the texts: they may be long.
        let sql = "SELECT coalesce(sum(octet_length(text)), 0) FROM messages INDEXED BY messages_waiting
                   WHERE session = ?1 AND state IN ('queued', 'delivered')";
        let bytes: Option<i64> = self.one(sql, [session.to_string()], |row| row.get(0))?;
        Ok(bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0))
    }

    fn whole_message(&self, found: Option<Message>) -> Read<Option<Message>> {
        let damage = found.as_ref().and_then(|message| message.damage.clone());
        damage.map_or(Ok(found), |damage| Err(self.damaged("message", damage)))
    }

    fn damaged(&self, what: &'static str, damage: RowDamage) -> ReadError {
        ReadError::Row { path: self.path.clone(), what, id: damage.id, problem: damage.problem }
    }

    /// The runs of a session by their numbers, also those that came to nothing.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn runs(&self, session: SessionId, take: Take) -> Read<Vec<Run>> {
        self.taken(
            &format!("{} WHERE session = ?1", *RUN),
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
        let found = self.one(&format!("{} WHERE id = ?1", *RUN), [id.to_string()], run_row)?;
        let damage = found.as_ref().and_then(|run| run.damage.clone());
        damage.map_or(Ok(found), |damage| Err(self.damaged("run", damage)))
    }

    /// Events by their numbers.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn events(&self, query: &EventQuery) -> Read<Vec<Event>> {
        // Only what is asked for is in the statement, and a plus hides a column from the choice of an index:
        // without it SQLite would walk through all numbers to find a time.
        let mut sql = match query.since {
            Some(_) => format!("{} WHERE +seq > ?1 AND +seq <= ?2 AND at >= ?3", *EVENT),
            None => format!("{} WHERE seq > ?1 AND seq <= ?2 AND ?3 IS NULL", *EVENT),
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
        Ok(Meta { generation, boot_id: self.meta_value("boot_id")?, program: self.meta_value("program")? })
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

    pub(crate) fn error(&self, source: rusqlite::Error) -> ReadError {
        let path = self.path.clone();
        match source.sqlite_error_code() {
            // `Unknown` is SQLite's word for a statement that does not fit the tables: they are not ours any more.
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown) | None => {
                ReadError::Damaged { path, source }
            }
            Some(_) => ReadError::Failed { path, source },
        }
    }
}

/// The messages of one session that wait.
#[derive(Default)]
struct Inbox {
    queued: Vec<Queued>,
    damaged: u64,
}

impl Inbox {
    fn add(&mut self, message: Waiting) {
        match message {
            Waiting::Whole(queued) => self.queued.push(queued),
            Waiting::Damaged => self.damaged += 1,
            Waiting::Not => {}
        }
    }

    fn fill(self, stored: &mut StoredSession) {
        stored.session.refill(self.queued);
        stored.damaged = self.damaged;
    }
}

fn label(loaded: &Loaded) -> (String, String) {
    match loaded {
        Loaded::Whole(stored) => (stored.id.to_string(), stored.name.clone()),
        Loaded::Damaged(damaged) => (damaged.id.clone(), damaged.name.clone()),
    }
}
