//! Turns rows of the tables into what readers return.

use super::sums::{
    ACCOUNTS, ANSWERS, CURSORS, EVENTS, FILES, KEYS, MESSAGES, RUNS, SESSIONS, SummedTable, USAGE,
};
use crate::answer::AnswerKept;
use crate::rows::{
    Cursor, DamagedSession, Loaded, Message, MessageState, RowDamage, SpentKey, StoredEvent, StoredRun,
    StoredSession, TurnPlace,
};
use crate::ulid::{SessionId, Ulid};
use crate::usage::Spent;
use pinfold_core::inbox::Queued;
use pinfold_core::usage::{Figures, Money};
use pinfold_core::{EventKind, RunNumber, Wall};
use rusqlite::Row;
use rusqlite::types::{Type, ValueRef};
use serde_json::Map;
use std::str::FromStr;

const SUM: &str = "its checksum is wrong";

/// Never fails because of what is in the record: one bad record would hide all sessions.
pub(crate) fn session_row(row: &Row<'_>) -> rusqlite::Result<Loaded> {
    let damaged = |problem: String| {
        let [id, name] = [0, 1].map(|column| readable(row, column).unwrap_or_default());
        Loaded::Damaged(DamagedSession { id, name, problem })
    };
    Ok(match checked(row, &SESSIONS, whole_session)? {
        Ok(stored) => Loaded::Whole(Box::new(stored)),
        Err(problem) => damaged(problem),
    })
}

/// Returns a row as it was written, or what is wrong with it. Fails only if SQLite itself cannot read it.
fn checked<T>(
    row: &Row<'_>,
    table: &SummedTable,
    whole: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Result<T, String>> {
    match whole(row) {
        Err(error) if error.sqlite_error_code().is_some() => Err(error),
        Err(error) => Ok(Err(problem(&error, table))),
        Ok(_) if !table.holds(row)? => Ok(Err(SUM.to_owned())),
        Ok(whole) => Ok(Ok(whole)),
    }
}

fn whole_session(row: &Row<'_>) -> rusqlite::Result<StoredSession> {
    Ok(StoredSession {
        damaged: 0,
        id: parsed(row, 0)?,
        name: row.get(1)?,
        definition: json(row, 2)?,
        session: json(row, 3)?,
        created_at: Wall(row.get(4)?),
        archived_at: wall(row, 5)?,
        position: row.get(6)?,
        parent: parsed_if_any(row, 8)?,
    })
}

/// Returns as much of a text as can be read.
fn readable(row: &Row<'_>, column: usize) -> Option<String> {
    let bytes = row.get_ref(column).ok()?.as_bytes_or_null().ok()??;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

fn problem(error: &rusqlite::Error, table: &SummedTable) -> String {
    if let rusqlite::Error::FromSqlConversionFailure(column, _, cause) = error {
        let besides = || column.checked_sub(table.columns.len() + 1).and_then(|at| table.besides.get(at));
        let name = match table.columns.get(*column).or_else(besides) {
            Some(&"core") => "state",
            Some(name) => name,
            None => "record",
        };
        return format!("its {name} cannot be read: {cause}");
    }
    error.to_string()
}

pub(crate) fn message_row(row: &Row<'_>) -> rusqlite::Result<Message> {
    Ok(checked(row, &MESSAGES, whole_message)?.unwrap_or_else(|problem| Message {
        id: known(row, 0),
        session: SessionId(known(row, 1)),
        key: None,
        from: None,
        text: String::new(),
        state: MessageState::Failed,
        tries: 0,
        enqueued_at: Wall(0),
        done_at: None,
        answer: None,
        kept: AnswerKept::default(),
        taken: None,
        files: Vec::new(),
        failure: None,
        place: None,
        damage: Some(RowDamage { id: readable(row, 0).unwrap_or_default(), problem }),
    }))
}

/// Returns a cursor, or what is wrong with it.
pub(crate) fn cursor_row(row: &Row<'_>) -> rusqlite::Result<Result<Cursor, RowDamage>> {
    let read = checked(row, &CURSORS, whole_cursor)?;
    Ok(read.map_err(|problem| RowDamage { id: readable(row, 0).unwrap_or_default(), problem }))
}

fn whole_cursor(row: &Row<'_>) -> rusqlite::Result<Cursor> {
    let (session, run) = (parsed(row, 0)?, RunNumber(row.get(1)?));
    Ok(Cursor { session, run, position: row.get(2)?, state: row.get(3)? })
}

/// What is known about an answer besides the row of its message: how it is kept, and the checksum of its file.
pub(crate) type BesideRow = (AnswerKept, Option<i64>);

/// Returns how an answer is kept, or what is wrong with its row.
pub(crate) fn answer_row(row: &Row<'_>) -> rusqlite::Result<Result<BesideRow, RowDamage>> {
    let read = checked(row, &ANSWERS, |row| {
        let (bytes, content, cut) = (row.get(1)?, row.get::<_, Option<i64>>(2)?, row.get(3)?);
        Ok((AnswerKept { beside: content.map(|_| bytes), cut }, content))
    })?;
    Ok(read.map_err(|problem| RowDamage { id: readable(row, 0).unwrap_or_default(), problem }))
}

/// Returns what a turn used, and the name its session had, or what is wrong with the row.
pub(crate) fn usage_row(row: &Row<'_>) -> rusqlite::Result<Result<(Spent, Option<String>), RowDamage>> {
    let read = checked(row, &USAGE, whole_usage)?;
    Ok(read.map_err(|problem| {
        let id = row.get::<_, i64>(0).unwrap_or_default().to_string();
        RowDamage { id, problem }
    }))
}

fn whole_usage(row: &Row<'_>) -> rusqlite::Result<(Spent, Option<String>)> {
    let figures = Figures {
        input: row.get(8)?,
        output: row.get(9)?,
        cached: row.get(10)?,
        cost: row.get::<_, Option<u64>>(11)?.map(Money),
    };
    let spent = Spent {
        at: Wall(row.get(1)?),
        session: parsed(row, 2)?,
        run: RunNumber(row.get(4)?),
        message: parsed_if_any(row, 5)?,
        account: row.get(6)?,
        model: row.get(7)?,
        figures,
    };
    Ok((spent, row.get(3)?))
}

/// Returns an account's name and state, or what is wrong with the row.
pub(crate) fn account_row(row: &Row<'_>) -> rusqlite::Result<Result<(String, String), RowDamage>> {
    let read = checked(row, &ACCOUNTS, |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(read.map_err(|problem| RowDamage { id: readable(row, 0).unwrap_or_default(), problem }))
}

/// Returns the files of a message, or what is wrong with the row.
pub(crate) fn files_row(row: &Row<'_>) -> rusqlite::Result<Result<Vec<String>, RowDamage>> {
    let read = checked(row, &FILES, |row| json(row, 1))?;
    Ok(read.map_err(|problem| RowDamage { id: readable(row, 0).unwrap_or_default(), problem }))
}

/// Returns an id, or zeros if it is not one.
fn known(row: &Row<'_>, column: usize) -> Ulid {
    readable(row, column).and_then(|id| id.parse().ok()).unwrap_or_else(|| Ulid::new(0, 0))
}

fn whole_message(row: &Row<'_>) -> rusqlite::Result<Message> {
    Ok(Message {
        id: parsed(row, 0)?,
        session: parsed(row, 1)?,
        key: row.get(2)?,
        from: row.get(13)?,
        text: row.get(3)?,
        state: parsed(row, 4)?,
        tries: row.get(5)?,
        enqueued_at: Wall(row.get(6)?),
        done_at: wall(row, 7)?,
        answer: row.get(8)?,
        kept: AnswerKept::default(),
        taken: None,
        files: Vec::new(),
        failure: row.get(9)?,
        place: place(row)?,
        damage: None,
    })
}

/// Returns the key of a message that was forgotten, or what is wrong with its row.
pub(crate) fn key_row(row: &Row<'_>) -> rusqlite::Result<Result<SpentKey, RowDamage>> {
    let spent = checked(row, &KEYS, |row| {
        Ok(SpentKey {
            key: row.get(1)?,
            message: parsed(row, 2)?,
            enqueued_at: Wall(row.get(3)?),
            done_at: wall(row, 4)?,
        })
    })?;
    Ok(spent.map_err(|problem| RowDamage { id: readable(row, 1).unwrap_or_default(), problem }))
}

fn place(row: &Row<'_>) -> rusqlite::Result<Option<TurnPlace>> {
    let (run, from, to): (Option<u64>, Option<u64>, Option<u64>) = (row.get(10)?, row.get(11)?, row.get(12)?);
    Ok(run.zip(from).map(|(run, from)| TurnPlace { run: RunNumber(run), from, to }))
}

/// A row that is a waiting message, according to an index.
pub(crate) struct WaitingRow {
    pub(crate) session: SessionId,
    pub(crate) message: WaitingMessage,
}

#[derive(Clone, Copy)]
pub(crate) enum WaitingMessage {
    Whole(Queued),
    /// It was altered since it was written, and must not be delivered.
    Damaged,
    /// It does not wait: the index is wrong.
    Not,
}

pub(crate) fn waiting_row(row: &Row<'_>) -> rusqlite::Result<WaitingRow> {
    let Message { id, session, state, tries, damage, .. } = message_row(row)?;
    let message = match state {
        _ if damage.is_some() => WaitingMessage::Damaged,
        MessageState::Queued | MessageState::Delivered => {
            WaitingMessage::Whole(Queued { message: id.into(), tries })
        }
        MessageState::Done | MessageState::Failed => WaitingMessage::Not,
    };
    Ok(WaitingRow { session, message })
}

pub(crate) fn run_row(row: &Row<'_>) -> rusqlite::Result<StoredRun> {
    Ok(checked(row, &RUNS, whole_run)?.unwrap_or_else(|problem| StoredRun {
        session: SessionId(known(row, 0)),
        number: RunNumber(0),
        id: None,
        purpose: String::new(),
        pid: None,
        fence: None,
        started_at: None,
        ended_at: None,
        code: None,
        signal: None,
        verdict: None,
        lived_ms: None,
        forced: false,
        damage: Some(RowDamage { id: readable(row, 2).unwrap_or_default(), problem }),
    }))
}

fn whole_run(row: &Row<'_>) -> rusqlite::Result<StoredRun> {
    Ok(StoredRun {
        session: parsed(row, 0)?,
        number: RunNumber(row.get(1)?),
        id: parsed_if_any(row, 2)?,
        purpose: row.get(3)?,
        pid: row.get(4)?,
        fence: row.get(5)?,
        started_at: wall(row, 6)?,
        ended_at: wall(row, 7)?,
        code: row.get(8)?,
        signal: row.get(9)?,
        verdict: row.get(10)?,
        lived_ms: row.get(11)?,
        forced: row.get(12)?,
        damage: None,
    })
}

pub(crate) fn event_row(row: &Row<'_>) -> rusqlite::Result<StoredEvent> {
    let seq = row.get::<_, i64>(0)?.cast_unsigned();
    Ok(checked(row, &EVENTS, whole_event)?.unwrap_or_else(|problem| StoredEvent {
        seq,
        at: Wall(0),
        session: None,
        name: None,
        run: None,
        kind: EventKind::Damaged,
        why: format!("event {seq} is damaged: {problem}"),
        data: Map::new(),
        damage: Some(RowDamage { id: seq.to_string(), problem }),
    }))
}

fn whole_event(row: &Row<'_>) -> rusqlite::Result<StoredEvent> {
    Ok(StoredEvent {
        seq: row.get(0)?,
        at: Wall(row.get(1)?),
        session: parsed_if_any(row, 2)?,
        name: row.get(3)?,
        run: row.get(4)?,
        kind: kind(row, 5)?,
        why: row.get(6)?,
        data: json(row, 7)?,
        damage: None,
    })
}

fn kind(row: &Row<'_>, column: usize) -> rusqlite::Result<EventKind> {
    Ok(row.get_ref(column)?.as_str()?.into())
}

fn wall(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Wall>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Wall))
}

fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text)
        .map_err(|cause| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(cause)))
}

fn parsed<T: FromStr<Err: std::error::Error + Send + Sync + 'static>>(
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    text.parse()
        .map_err(|cause| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(cause)))
}

fn parsed_if_any<T: FromStr<Err: std::error::Error + Send + Sync + 'static>>(
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<Option<T>> {
    if row.get_ref(column)? == ValueRef::Null { Ok(None) } else { parsed(row, column).map(Some) }
}
