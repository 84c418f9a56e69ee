//! Lists of any length, in parts: a reader never holds more of one in memory than fits into the room it gives.

use super::parse::{event_row, message_row};
use super::reader::{EVENT, MESSAGE, SqliteReader};
use crate::query::{COUNTED, EventQuery, ListPage, MessagePlace, MessageQuery, Query, Read, RowCount, Take};
use crate::rows::{Message, MessageState, StoredEvent};
use crate::size::{MOST, of_event, of_message};
use crate::ulid::{SessionId, Ulid};
use pinfold_core::MessageId;
use rusqlite::{Params, Row, params};

impl SqliteReader {
    /// Returns messages of a session after a place, in order, until there are `most` or the room is used up;
    /// at least one, if there is one.
    pub(super) fn message_part(
        &self,
        query: MessageQuery,
        after: MessagePlace,
        most: u64,
        room: usize,
    ) -> Read<ListPage<Message, MessagePlace>> {
        let most = most.min(MOST);
        let places = self.places(query, after, most)?;
        let (mut rows, mut used, mut last) = (Vec::new(), 0, after);
        let whole = (places.len() as u64) < most;
        for place in places {
            if used >= room {
                return Ok(ListPage { rows, next: Some(last) });
            }
            // A message that has gone meanwhile, or moved to the end of the queue, is no longer here.
            let row = self.one(&format!("{} WHERE rowid = ?1", *MESSAGE), [place], message_row)?;
            let row = row.map(|message| self.with_kept(message)).transpose()?;
            used += row.as_ref().map_or(0, of_message);
            rows.extend(row);
            last = MessagePlace(place);
        }
        Ok(ListPage { rows, next: (!whole).then_some(last) })
    }

    /// Returns the place after which a list begins that takes only some of the messages: after one of them,
    /// or the last ones.
    pub(super) fn message_place(&self, query: MessageQuery, take: Take) -> Read<MessagePlace> {
        let Take::Last(count) = take else { return Ok(MessagePlace::default()) };
        if count == 0 {
            return Ok(MessagePlace(i64::MAX));
        }
        let sql = format!("{} ORDER BY rowid DESC LIMIT 1 OFFSET ?2", places_of(query));
        let first = self.one(&sql, params![query.session.to_string(), count - 1], rowid)?;
        Ok(first.map_or_else(MessagePlace::default, |first| MessagePlace(first - 1)))
    }

    /// Returns the place right after a message of a session.
    pub(super) fn place_behind(&self, session: SessionId, message: MessageId) -> Read<Option<MessagePlace>> {
        let sql = "SELECT rowid FROM messages WHERE session = ?1 AND id = ?2";
        let params = params![session.to_string(), Ulid::from(message).to_string()];
        Ok(self.one(sql, params, rowid)?.map(MessagePlace))
    }

    /// Returns the last message of a list of `most` after a place, if more come after it.
    pub(super) fn message_behind_which_more_come(
        &self,
        query: MessageQuery,
        after: MessagePlace,
        most: u64,
    ) -> Read<Option<Ulid>> {
        let Some(before) = most.checked_sub(1) else { return Ok(None) };
        let sql = format!("{} AND rowid > ?2 ORDER BY rowid LIMIT 2 OFFSET ?3", places_of(query));
        let params = params![query.session.to_string(), after.0, before];
        let places: Vec<i64> = self.all(&sql, params, rowid)?;
        let [last, _] = places[..] else { return Ok(None) };
        let id: Option<String> =
            self.one("SELECT id FROM messages WHERE rowid = ?1", [last], |row| row.get(0))?;
        Ok(id.and_then(|id| id.parse().ok()))
    }

    /// Returns how many messages there are after a place.
    pub(super) fn count_messages(&self, query: MessageQuery, after: MessagePlace) -> Read<u64> {
        let sql = format!("{} AND rowid > ?2", places_of(query)).replacen("rowid", "count(*)", 1);
        self.count(&sql, params![query.session.to_string(), after.0])
    }

    fn places(&self, query: MessageQuery, after: MessagePlace, most: u64) -> Read<Vec<i64>> {
        let sql = format!("{} AND rowid > ?2 ORDER BY rowid LIMIT ?3", places_of(query));
        self.all(&sql, params![query.session.to_string(), after.0, most], rowid)
    }

    /// Returns events after a number, in order, until there are `most` or the room is used up; at least one,
    /// if there is one. Ignores how many the query wants to take: see [`Query::event_place`].
    pub(super) fn event_part(
        &self,
        query: &EventQuery,
        after: u64,
        most: u64,
        room: usize,
    ) -> Read<ListPage<StoredEvent, u64>> {
        let most = usize::try_from(most.min(MOST)).unwrap_or(usize::MAX);
        let sql = format!("{} {} ORDER BY seq", *EVENT, where_events(query));
        let part = self.conn().prepare_cached(&sql).and_then(|mut statement| {
            let mut found = statement.query(event_params(query, after))?;
            let (mut rows, mut used) = (Vec::new(), 0);
            while let Some(row) = found.next()? {
                if rows.len() >= most || used >= room {
                    return Ok(ListPage { next: rows.last().map(|last: &StoredEvent| last.seq), rows });
                }
                let event = event_row(row)?;
                used += of_event(&event);
                rows.push(event);
            }
            Ok(ListPage { rows, next: None })
        });
        part.map_err(|source| self.error(source))
    }

    /// Returns the number after which a list of events begins.
    pub(super) fn event_place(&self, query: &EventQuery) -> Read<u64> {
        let first = match query.since {
            // The index of times has the numbers too: it finds the first one without reading any event.
            Some(since) => self.one(
                "SELECT min(seq) FROM events INDEXED BY events_by_time WHERE at >= ?1",
                [since.0],
                |row| row.get::<_, Option<u64>>(0),
            )?,
            None => Some(Some(0)),
        };
        let Some(first) = first.flatten() else { return Ok(query.after.max(self.max_seq()?)) };
        let after = query.after.max(first.saturating_sub(1));
        let Take::Last(count) = query.take else { return Ok(after) };
        if count == 0 {
            return Ok(after.max(self.max_seq()?));
        }
        let sql =
            format!("SELECT seq FROM events {} ORDER BY seq DESC LIMIT 1 OFFSET ?5", where_events(query));
        let first = self
            .one(&sql, with(event_params(query, after), u64::from(count - 1)), |row| row.get::<_, u64>(0))?;
        Ok(first.map_or(after, |first| first - 1))
    }

    /// Returns the last event of a list of `most` after a number, if more come after it.
    pub(super) fn event_behind_which_more_come(
        &self,
        query: &EventQuery,
        after: u64,
        most: u64,
    ) -> Read<Option<u64>> {
        let Some(before) = most.checked_sub(1) else { return Ok(None) };
        let sql = format!("SELECT seq FROM events {} ORDER BY seq LIMIT 2 OFFSET ?5", where_events(query));
        let seqs: Vec<u64> = self.all(&sql, with(event_params(query, after), before), |row| row.get(0))?;
        let [last, _] = seqs[..] else { return Ok(None) };
        Ok(Some(last))
    }

    /// Returns how many events there are after a number. A session may have a million of them.
    pub(super) fn count_events(&self, query: &EventQuery, after: u64) -> Read<RowCount> {
        if !query.is_of_some() {
            return self.count_all_events(after).map(RowCount::Exactly);
        }
        let all = EventQuery { after, take: Take::All, ..query.clone() };
        let after = self.event_place(&all)?;
        let some = format!("SELECT 1 FROM events {} LIMIT ?5", where_events(query));
        let sql = format!("SELECT count(*) FROM ({some})");
        Ok(RowCount::of_some(self.count(&sql, with(event_params(query, after), COUNTED + 1))?))
    }

    /// Where nothing was forgotten there are no gaps, so only what stayed from before has to be counted.
    fn count_all_events(&self, after: u64) -> Read<u64> {
        let Some(from) = self.complete_from()? else { return Ok(0) };
        let complete = (self.max_seq()? + 1).saturating_sub(from.seq.max(after.saturating_add(1)));
        let kept = "SELECT count(*) FROM events WHERE seq > ?1 AND seq < ?2";
        Ok(complete + self.count(kept, params![after.min(from.seq), from.seq])?)
    }

    fn count(&self, sql: &str, params: impl Params) -> Read<u64> {
        Ok(self.one(sql, params, |row| row.get(0))?.unwrap_or(0))
    }
}

/// Returns the statement for the places of a session's messages.
fn places_of(query: MessageQuery) -> String {
    format!("SELECT rowid FROM messages WHERE session = ?1 AND {}", in_state(query.state))
}

/// Returns a condition that SQLite can answer from the smallest index: it neither looks into parameters nor
/// draws conclusions.
pub(super) fn in_state(state: Option<MessageState>) -> &'static str {
    match state {
        None => "TRUE",
        Some(MessageState::Queued) => "state IN ('queued', 'delivered') AND state = 'queued'",
        Some(MessageState::Delivered) => "state IN ('queued', 'delivered') AND state = 'delivered'",
        Some(MessageState::Done) => "state = 'done'",
        Some(MessageState::Failed) => "state = 'failed'",
    }
}

fn rowid(row: &Row<'_>) -> rusqlite::Result<i64> {
    row.get(0)
}

/// Only what is asked for is in the statement. A plus keeps SQLite from choosing the index of times: numbers
/// are walked through in order, from where the list begins.
fn where_events(query: &EventQuery) -> String {
    let since = if query.since.is_some() { "+at >= ?3" } else { "?3 IS NULL" };
    let session = if query.session.is_some() { "session = ?4" } else { "?4 IS NULL" };
    format!("WHERE seq > ?1 AND seq <= ?2 AND {since} AND {session}")
}

type EventParams = (u64, u64, Option<i64>, Option<String>);

fn event_params(query: &EventQuery, after: u64) -> EventParams {
    const LARGEST: u64 = i64::MAX as u64;
    let until = query.until.unwrap_or(LARGEST).min(LARGEST);
    let session = query.session.map(|session| session.to_string());
    (after.min(LARGEST), until, query.since.map(|at| at.0), session)
}

fn with((after, until, since, session): EventParams, offset: u64) -> impl Params {
    (after, until, since, session, offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Store, StoreOptions};

    /// A session may have a million finished messages: the others are found without them.
    #[test]
    fn messages_in_a_state_are_found_by_the_smallest_index() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let _store = Store::open(&path, &StoreOptions::default()).unwrap();
        let reader = SqliteReader::open_with(&path, &StoreOptions::default()).unwrap();
        let plan = |state| {
            let session = SessionId(Ulid::new(0, 0));
            let places = places_of(MessageQuery { session, state });
            let sql = format!("EXPLAIN QUERY PLAN {places} AND rowid > ?2 ORDER BY rowid LIMIT ?3");
            reader.conn().query_row(&sql, params!["", 0, 1], |row| row.get::<_, String>("detail")).unwrap()
        };
        for (state, index) in [
            (None, "messages_by_session"),
            (Some(MessageState::Queued), "messages_waiting"),
            (Some(MessageState::Delivered), "messages_waiting"),
            (Some(MessageState::Done), "messages_by_session"),
            (Some(MessageState::Failed), "messages_failed"),
        ] {
            assert!(plan(state).contains(&format!("INDEX {index} ")), "{state:?}: {}", plan(state));
        }
    }
}
