//! A connection that only reads, and how rows come out of it.

use super::answers::AnswerFiles;
use super::errors::read_error;
use super::open;
use super::parse::{BesideRow, WaitingMessage, answer_row, waiting_row};
use super::schema;
use super::sums::{ANSWERS, CURSORS, EVENTS, KEYS, MESSAGES, RUNS, SESSIONS};
use crate::open::{OpenError, StoreOptions};
use crate::query::{Read, ReadError, Take};
use crate::rows::{Loaded, Lookup, Message, RowDamage, StoredSession};
use pinfold_core::inbox::Queued;
use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, Params, Row};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

pub(super) static SESSION: LazyLock<String> = LazyLock::new(|| SESSIONS.select());
pub(super) static MESSAGE: LazyLock<String> = LazyLock::new(|| MESSAGES.select());
/// The few waiting messages, by the index that has no others: in row order SQLite would read all messages.
pub(super) static WAITING: LazyLock<String> = LazyLock::new(|| {
    let few = "SELECT rowid FROM messages INDEXED BY messages_waiting WHERE state IN ('queued', 'delivered')";
    format!("{} WHERE rowid IN ({few})", MESSAGES.select())
});
pub(super) static RUN: LazyLock<String> = LazyLock::new(|| RUNS.select());
pub(super) static EVENT: LazyLock<String> = LazyLock::new(|| EVENTS.select());
pub(super) static KEY: LazyLock<String> = LazyLock::new(|| KEYS.select());
static ANSWER: LazyLock<String> = LazyLock::new(|| ANSWERS.select());
pub(super) static CURSOR: LazyLock<String> = LazyLock::new(|| CURSORS.select());

/// A connection that only reads. Each call sees the store as it was at one moment.
#[derive(Debug)]
pub(crate) struct SqliteReader {
    conn: Connection,
    path: PathBuf,
    answers: AnswerFiles,
    /// Whether the file has the tables of version [`schema::SPENDS`].
    spends: bool,
}

impl SqliteReader {
    /// Opens a store for reading only, whether or not another process writes it.
    ///
    /// # Errors
    /// A missing, damaged or too new file.
    pub(crate) fn open_with(path: &Path, options: &StoreOptions) -> Result<SqliteReader, OpenError> {
        let (conn, answers) = (open::open_reader(path, options)?, AnswerFiles::new(options));
        let spends = schema::version(&conn).is_ok_and(|version| version >= schema::SPENDS);
        Ok(SqliteReader { conn, path: path.to_owned(), answers, spends })
    }

    pub(crate) fn conn(&self) -> &Connection {
        &self.conn
    }

    pub(crate) fn conn_mut(&mut self) -> &mut Connection {
        &mut self.conn
    }

    /// Returns what an SQLite error means here.
    pub(crate) fn error(&self, source: rusqlite::Error) -> ReadError {
        read_error(&self.path, source)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds the waiting messages, which have their own rows.
    pub(super) fn whole(&self, mut loaded: Loaded) -> Read<Loaded> {
        if let Loaded::Whole(stored) = &mut loaded {
            let sql = format!("{} AND session = ?1 ORDER BY rowid", *WAITING);
            let mut inbox = WaitingMessages::default();
            self.all(&sql, [stored.id.to_string()], waiting_row)?
                .into_iter()
                .for_each(|row| inbox.add(row.message));
            inbox.fill(stored);
        }
        Ok(loaded)
    }

    pub(super) fn whole_message(&self, found: Option<Message>) -> Read<Option<Message>> {
        let found = found.map(|message| self.with_kept(message)).transpose()?;
        let damage = found.as_ref().and_then(|message| message.damage.clone());
        damage.map_or(Ok(found), |damage| Err(self.damaged("message", damage)))
    }

    /// Adds how the answer of a message is kept; if that is damaged, so is the message.
    pub(super) fn with_kept(&self, message: Message) -> Read<Message> {
        let message = match self.kept(&message)? {
            None => message,
            Some(Ok((kept, _))) => Message { kept, ..message },
            Some(Err(damage)) => Message { damage: Some(damage), ..message },
        };
        if self.spends { self.with_rest(message) } else { Ok(message) }
    }

    /// Nearly all answers are so short that their message says everything about them.
    fn kept(&self, message: &Message) -> Read<Option<Result<BesideRow, RowDamage>>> {
        if message.has_short_answer() {
            return Ok(None);
        }
        self.one(&format!("{} WHERE message = ?1", *ANSWER), [message.id.to_string()], answer_row)
    }

    /// Adds the whole answer to a message.
    pub(super) fn with_answer(&self, message: Message) -> Read<Message> {
        let Some(Ok((kept, Some(content)))) = self.kept(&message)? else { return Ok(message) };
        let read = self.answers.read(message.session, message.id, kept, content);
        let answer = read.map_err(|error| {
            let id = message.id.to_string();
            self.damaged("answer", RowDamage { id, problem: format!("its file cannot be read: {error}") })
        })?;
        Ok(Message { answer: Some(answer), ..message })
    }

    pub(super) fn answers(&self) -> &AnswerFiles {
        &self.answers
    }

    pub(super) fn damaged(&self, what: &'static str, damage: RowDamage) -> ReadError {
        ReadError::Row { path: self.path.clone(), what, id: damage.id, problem: damage.problem }
    }

    pub(super) fn lookup(&self, mut found: Vec<Loaded>) -> Read<Lookup> {
        Ok(match found.len() {
            0 => Lookup::Nobody,
            1 => Lookup::One(self.whole(found.remove(0))?),
            _ => Lookup::Several(found.iter().map(label).collect()),
        })
    }

    pub(super) fn meta_value<T: FromSql>(&self, key: &str) -> Read<Option<T>> {
        self.one("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0))
    }

    pub(super) fn taken<T>(
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

    pub(super) fn all<T>(
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

    pub(super) fn one<T>(
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
}

/// The waiting messages of one session.
#[derive(Default)]
pub(super) struct WaitingMessages {
    queued: Vec<Queued>,
    damaged: u64,
}

impl WaitingMessages {
    pub(super) fn add(&mut self, message: WaitingMessage) {
        match message {
            WaitingMessage::Whole(queued) => self.queued.push(queued),
            WaitingMessage::Damaged => self.damaged += 1,
            WaitingMessage::Not => {}
        }
    }

    pub(super) fn fill(self, stored: &mut StoredSession) {
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
