//! What an SQLite reader answers: the trait, statement by statement.

use super::files::files;
use super::parse::{cursor_row, event_row, key_row, message_row, run_row, session_row, waiting_row};
use super::parts::in_state;
use super::reader::{CURSOR, EVENT, KEY, MESSAGE, RUN, SESSION, SqliteReader, WAITING, WaitingMessages};
use crate::copy::{BackupError, Files};
use crate::pace::CheckPace;
use crate::query::{EventQuery, ListPage, MessagePlace, MessageQuery, Query, Read, RowCount, Take};
use crate::rows::{
    CompleteFrom, Cursor, Loaded, Lookup, Message, MessageState, Meta, SpentKey, StoredEvent, StoredRun,
};
use crate::step::Untold;
use crate::ulid::{self, RunId, SessionId, Ulid};
use crate::usage::{UsageQuery, UsageSum};
use pinfold_core::{MessageId, Wall};
use rusqlite::params;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

impl Query for SqliteReader {
    fn sessions(&self) -> Read<Vec<Loaded>> {
        let mut sessions = self.all(&format!("{} ORDER BY position, id", *SESSION), [], session_row)?;
        let mut waiting: BTreeMap<SessionId, WaitingMessages> = BTreeMap::new();
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

    fn session(&self, id: SessionId) -> Read<Option<Loaded>> {
        let loaded = self.one(&format!("{} WHERE id = ?1", *SESSION), [id.to_string()], session_row)?;
        loaded.map(|loaded| self.whole(loaded)).transpose()
    }

    fn find(&self, name_or_prefix: &str) -> Read<Lookup> {
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
        // No letter of an id sorts after `Z`.
        let with_prefix = format!("{} WHERE id >= ?1 AND id < ?1 || '~' ORDER BY id", *SESSION);
        self.lookup(self.all(&with_prefix, [prefix], session_row)?)
    }

    fn messages(&self, session: SessionId, state: Option<MessageState>, take: Take) -> Read<Vec<Message>> {
        let sql = format!("{} WHERE session = ?1 AND {}", *MESSAGE, in_state(state));
        let rows = self.taken(&sql, "rowid", take, params![session.to_string()], message_row)?;
        rows.into_iter().map(|message| self.with_kept(message)).collect()
    }

    fn answered(&self, message: MessageId) -> Read<Option<Message>> {
        self.message(message)?.map(|message| self.with_answer(message)).transpose()
    }

    fn message(&self, message: MessageId) -> Read<Option<Message>> {
        let sql = format!("{} WHERE id = ?1", *MESSAGE);
        self.whole_message(self.one(&sql, [Ulid::from(message).to_string()], message_row)?)
    }

    fn message_by_key(&self, session: SessionId, key: &str) -> Read<Option<Message>> {
        let sql = format!("{} WHERE session = ?1 AND key = ?2", *MESSAGE);
        self.whole_message(self.one(&sql, params![session.to_string(), key], message_row)?)
    }

    fn spent_key(&self, session: SessionId, key: &str) -> Read<Option<SpentKey>> {
        let sql = format!("{} WHERE session = ?1 AND key = ?2", *KEY);
        let found = self.one(&sql, params![session.to_string(), key], key_row)?;
        found.transpose().map_err(|damage| self.damaged("key", damage))
    }

    fn waiting_bytes(&self, session: SessionId) -> Read<u64> {
        // Without reading the texts, which may be long.
        let sql = "SELECT coalesce(sum(octet_length(text)), 0) FROM messages INDEXED BY messages_waiting
                   WHERE session = ?1 AND state IN ('queued', 'delivered')";
        let bytes: Option<i64> = self.one(sql, [session.to_string()], |row| row.get(0))?;
        Ok(bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0))
    }

    fn message_part(
        &self,
        query: MessageQuery,
        after: MessagePlace,
        most: u64,
        room: usize,
    ) -> Read<ListPage<Message, MessagePlace>> {
        self.message_part(query, after, most, room)
    }

    fn message_place(&self, query: MessageQuery, take: Take) -> Read<MessagePlace> {
        self.message_place(query, take)
    }

    fn place_behind(&self, session: SessionId, message: MessageId) -> Read<Option<MessagePlace>> {
        self.place_behind(session, message)
    }

    fn message_behind_which_more_come(
        &self,
        query: MessageQuery,
        after: MessagePlace,
        most: u64,
    ) -> Read<Option<Ulid>> {
        self.message_behind_which_more_come(query, after, most)
    }

    fn count_messages(&self, query: MessageQuery, after: MessagePlace) -> Read<u64> {
        self.count_messages(query, after)
    }

    fn runs(&self, session: SessionId, take: Take) -> Read<Vec<StoredRun>> {
        self.taken(
            &format!("{} WHERE session = ?1", *RUN),
            "number",
            take,
            params![session.to_string()],
            run_row,
        )
    }

    fn run(&self, id: RunId) -> Read<Option<StoredRun>> {
        let found = self.one(&format!("{} WHERE id = ?1", *RUN), [id.to_string()], run_row)?;
        let damage = found.as_ref().and_then(|run| run.damage.clone());
        damage.map_or(Ok(found), |damage| Err(self.damaged("run", damage)))
    }

    fn cursor(&self, session: SessionId) -> Read<Option<Cursor>> {
        let sql = format!("{} WHERE session = ?1", *CURSOR);
        let found = self.one(&sql, [session.to_string()], cursor_row)?;
        found.transpose().map_err(|damage| self.damaged("cursor of session", damage))
    }

    fn usage(&self, query: &UsageQuery) -> Read<Vec<UsageSum>> {
        self.usage(query)
    }

    fn accounts(&self) -> Read<Vec<(String, String)>> {
        self.accounts()
    }

    fn events(&self, query: &EventQuery) -> Read<Vec<StoredEvent>> {
        // Only what is asked for is in the statement, and a plus keeps SQLite from choosing an index: without
        // it, it would walk through all numbers to find a time.
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

    fn event_part(
        &self,
        query: &EventQuery,
        after: u64,
        most: u64,
        room: usize,
    ) -> Read<ListPage<StoredEvent, u64>> {
        self.event_part(query, after, most, room)
    }

    fn event_place(&self, query: &EventQuery) -> Read<u64> {
        self.event_place(query)
    }

    fn event_behind_which_more_come(&self, query: &EventQuery, after: u64, most: u64) -> Read<Option<u64>> {
        self.event_behind_which_more_come(query, after, most)
    }

    fn count_events(&self, query: &EventQuery, after: u64) -> Read<RowCount> {
        self.count_events(query, after)
    }

    fn max_seq(&self) -> Read<u64> {
        let seq = self.one("SELECT max(seq) FROM events", [], |row| row.get::<_, Option<u64>>(0))?;
        Ok(seq.flatten().unwrap_or(0))
    }

    fn complete_from(&self) -> Read<Option<CompleteFrom>> {
        self.complete_from()
    }

    fn with_old_runs(&self, before: Wall) -> Read<Vec<SessionId>> {
        self.with_old_runs(before)
    }

    fn with_old_messages(&self, before: Wall) -> Read<Vec<SessionId>> {
        self.with_old_messages(before)
    }

    fn old_messages(
        &self,
        session: SessionId,
        before: Wall,
        after: MessagePlace,
        most: u64,
    ) -> Read<ListPage<Ulid, MessagePlace>> {
        self.old_messages(session, before, after, most)
    }

    fn untold(&self) -> Read<Untold> {
        self.untold()
    }

    fn meta(&self) -> Read<Meta> {
        let generation = self.meta_value("generation")?.unwrap_or(0);
        Ok(Meta { generation, boot_id: self.meta_value("boot_id")?, program: self.meta_value("program")? })
    }

    fn bytes_used(&self) -> Read<u64> {
        self.bytes_used()
    }

    fn bytes_free(&self) -> Read<u64> {
        self.bytes_free()
    }

    fn disk_used(&self) -> u64 {
        let lengths = files(self.path()).map(|file| std::fs::metadata(file).map_or(0, |found| found.len()));
        lengths.into_iter().sum()
    }

    fn check(&mut self, pace: &CheckPace) -> Read<Vec<String>> {
        self.check(pace)
    }

    fn backup(&self, file: &Path, beside: &mut dyn FnMut() -> io::Result<Files>) -> Result<u64, BackupError> {
        self.backup(file, beside)
    }
}
