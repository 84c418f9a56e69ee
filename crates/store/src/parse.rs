//! From rows of the tables to what readers return.

use crate::batch::TurnPlace;
use crate::rows::{DamagedSession, Event, Loaded, Message, Run, StoredSession};
use crate::ulid::{SessionId, Ulid};
use pinfold_core::inbox::Queued;
use pinfold_core::{RunNumber, Wall};
use rusqlite::Row;
use rusqlite::types::{Type, ValueRef};
use serde_json::{Map, Value};
use std::str::FromStr;

/// Never fails for what stands in the record: that would hide all sessions behind one.
pub(crate) fn session_row(row: &Row<'_>) -> rusqlite::Result<Loaded> {
    Ok(match whole_session(row) {
        Ok(stored) => Loaded::Whole(Box::new(stored)),
        Err(error) if error.sqlite_error_code().is_some() => return Err(error),
        Err(error) => Loaded::Damaged(DamagedSession {
            id: readable(row, 0).unwrap_or_default(),
            name: readable(row, 1).unwrap_or_default(),
            problem: problem(&error),
        }),
    })
}

fn whole_session(row: &Row<'_>) -> rusqlite::Result<StoredSession> {
    Ok(StoredSession {
        id: parsed(row, 0)?,
        name: row.get(1)?,
        definition: json(row, 2)?,
        session: json(row, 3)?,
        created_at: Wall(row.get(4)?),
        archived_at: wall(row, 5)?,
        parent: parsed_if_any(row, 6)?,
        position: row.get(7)?,
    })
}

/// As much of a text as can be read.
fn readable(row: &Row<'_>, column: usize) -> Option<String> {
    let bytes = row.get_ref(column).ok()?.as_bytes_or_null().ok()??;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

fn problem(error: &rusqlite::Error) -> String {
    if let rusqlite::Error::FromSqlConversionFailure(column, _, cause) = error {
        let names = ["id", "name", "definition", "state", "created_at", "archived_at", "parent", "position"];
        return format!("its {} cannot be read: {cause}", names.get(*column).unwrap_or(&"record"));
    }
    error.to_string()
}

pub(crate) fn message_row(row: &Row<'_>) -> rusqlite::Result<Message> {
    Ok(Message {
        id: parsed(row, 0)?,
        session: parsed(row, 1)?,
        key: row.get(2)?,
        text: row.get(3)?,
        state: parsed(row, 4)?,
        tries: row.get(5)?,
        enqueued_at: Wall(row.get(6)?),
        done_at: wall(row, 7)?,
        answer: row.get(8)?,
        failure: row.get(9)?,
        place: place(row)?,
    })
}

fn place(row: &Row<'_>) -> rusqlite::Result<Option<TurnPlace>> {
    let (run, from, to): (Option<u64>, Option<u64>, Option<u64>) = (row.get(10)?, row.get(11)?, row.get(12)?);
    Ok(run.zip(from).map(|(run, from)| TurnPlace { run: RunNumber(run), from, to }))
}

/// A message that waits, and whose it is.
pub(crate) fn waiting_row(row: &Row<'_>) -> rusqlite::Result<(SessionId, Queued)> {
    let message: Ulid = parsed(row, 1)?;
    Ok((parsed(row, 0)?, Queued { message: message.into(), tries: row.get(2)? }))
}

pub(crate) fn run_row(row: &Row<'_>) -> rusqlite::Result<Run> {
    Ok(Run {
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
    })
}

pub(crate) fn event_row(row: &Row<'_>) -> rusqlite::Result<Event> {
    Ok(Event {
        seq: row.get(0)?,
        at: Wall(row.get(1)?),
        session: readable(row, 2).and_then(|id| id.parse().ok()),
        name: readable(row, 3),
        run: readable(row, 4),
        kind: readable(row, 5).unwrap_or_default(),
        why: readable(row, 6).unwrap_or_default(),
        data: fields(readable(row, 7).unwrap_or_default()),
    })
}

/// One damaged event must not hide the history.
fn fields(text: String) -> Map<String, Value> {
    serde_json::from_str(&text)
        .unwrap_or_else(|_| Map::from_iter([("damaged".to_owned(), Value::from(text))]))
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
