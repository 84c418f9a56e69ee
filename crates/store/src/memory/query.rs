//! Reading from memory: each call sees the tables between two batches.

use super::lists;
use super::tables::{SessionRow, Tables};
use crate::copy::{BackupError, Files};
use crate::pace::CheckPace;
use crate::query::{EventQuery, ListPage, MessagePlace, MessageQuery, Query, Read, RowCount, Take};
use crate::rows::{
    CompleteFrom, Cursor, DamagedSession, Loaded, Lookup, Message, MessageState, Meta, SpentKey, StoredEvent,
    StoredRun, StoredSession,
};
use crate::size;
use crate::step::{KEPT_RUNS, Untold};
use crate::ulid::{self, RunId, SessionId, Ulid};
use crate::usage::{Spent, Sums, UsageQuery, UsageSum};
use pinfold_core::inbox::Queued;
use pinfold_core::{MessageId, Session, Wall};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Reads the tables of a store in memory, even after that is closed.
#[derive(Debug)]
pub(super) struct MemoryReader(Arc<Mutex<Tables>>);

impl MemoryReader {
    pub(super) fn new(tables: Arc<Mutex<Tables>>) -> MemoryReader {
        MemoryReader(tables)
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Query for MemoryReader {
    fn sessions(&self) -> Read<Vec<Loaded>> {
        let tables = self.tables();
        let mut rows: Vec<_> = tables.sessions.iter().collect();
        rows.sort_by_key(|(id, row)| (row.position, **id));
        Ok(rows.into_iter().map(|(id, row)| loaded(&tables, *id, row)).collect())
    }

    fn session(&self, id: SessionId) -> Read<Option<Loaded>> {
        let tables = self.tables();
        Ok(tables.sessions.get(&id).map(|row| loaded(&tables, id, row)))
    }

    fn find(&self, name_or_prefix: &str) -> Read<Lookup> {
        Ok(find(&self.tables(), name_or_prefix))
    }

    fn messages(&self, session: SessionId, state: Option<MessageState>, take: Take) -> Read<Vec<Message>> {
        let tables = self.tables();
        let all = lists::messages(&tables, MessageQuery { session, state });
        Ok(lists::taken(all.map(|(_, message)| message), take))
    }

    fn message(&self, message: MessageId) -> Read<Option<Message>> {
        let tables = self.tables();
        let stand = tables.stands.get(&message.into());
        Ok(stand.and_then(|stand| tables.messages.get(stand)).cloned())
    }

    fn answered(&self, message: MessageId) -> Read<Option<Message>> {
        let answer = self.tables().answers.get(&message.into()).cloned();
        let found = self.message(message)?;
        Ok(found.map(|found| Message { answer: answer.or(found.answer.clone()), ..found }))
    }

    fn message_by_key(&self, session: SessionId, key: &str) -> Read<Option<Message>> {
        let id = self.tables().keys.get(&(session, key.to_owned())).copied();
        id.map_or(Ok(None), |id| self.message(id.into()))
    }

    fn spent_key(&self, session: SessionId, key: &str) -> Read<Option<SpentKey>> {
        Ok(self.tables().spent.get(&(session, key.to_owned())).cloned())
    }

    fn waiting_bytes(&self, session: SessionId) -> Read<u64> {
        let tables = self.tables();
        let waiting = tables.messages_of(session).filter(|(_, message)| waits(message));
        Ok(waiting.map(|(_, message)| message.text.len() as u64).sum())
    }

    fn message_part(
        &self,
        query: MessageQuery,
        after: MessagePlace,
        most: u64,
        room: usize,
    ) -> Read<ListPage<Message, MessagePlace>> {
        Ok(lists::message_part(&self.tables(), query, after, most, room))
    }

    fn message_place(&self, query: MessageQuery, take: Take) -> Read<MessagePlace> {
        Ok(lists::message_place(&self.tables(), query, take))
    }

    fn place_behind(&self, session: SessionId, message: MessageId) -> Read<Option<MessagePlace>> {
        let stand = self.tables().stands.get(&message.into()).copied();
        Ok(stand.filter(|(of, _)| *of == session).map(|(_, place)| MessagePlace(place)))
    }

    fn message_behind_which_more_come(
        &self,
        query: MessageQuery,
        after: MessagePlace,
        most: u64,
    ) -> Read<Option<Ulid>> {
        let tables = self.tables();
        let ids = lists::messages_after(&tables, query, after).map(|(_, message)| message.id);
        Ok(lists::last_of_more(ids, most))
    }

    fn count_messages(&self, query: MessageQuery, after: MessagePlace) -> Read<u64> {
        Ok(lists::messages_after(&self.tables(), query, after).count() as u64)
    }

    fn runs(&self, session: SessionId, take: Take) -> Read<Vec<StoredRun>> {
        Ok(lists::taken(self.tables().runs_of(session), take))
    }

    fn run(&self, id: RunId) -> Read<Option<StoredRun>> {
        let tables = self.tables();
        Ok(tables.run_ids.get(&id).and_then(|key| tables.runs.get(key)).cloned())
    }

    fn cursor(&self, session: SessionId) -> Read<Option<Cursor>> {
        Ok(self.tables().cursors.get(&session).cloned())
    }

    fn usage(&self, query: &UsageQuery) -> Read<Vec<UsageSum>> {
        let (tables, mut sums) = (self.tables(), Sums::new(query.by));
        let young = |spent: &Spent| query.since.is_none_or(|since| spent.at >= since);
        let mut rows: Vec<_> = tables.usage.iter().filter(|(spent, _)| young(spent)).collect();
        rows.sort_by_key(|(spent, _)| spent.at);
        rows.into_iter().for_each(|(spent, name)| sums.add(spent, name.as_deref()));
        Ok(sums.done())
    }

    fn accounts(&self) -> Read<Vec<(String, String)>> {
        Ok(self.tables().accounts.clone().into_iter().collect())
    }

    fn events(&self, query: &EventQuery) -> Read<Vec<StoredEvent>> {
        Ok(lists::taken(lists::events_after(&self.tables(), query, query.after), query.take))
    }

    fn event_part(
        &self,
        query: &EventQuery,
        after: u64,
        most: u64,
        room: usize,
    ) -> Read<ListPage<StoredEvent, u64>> {
        Ok(lists::event_part(&self.tables(), query, after, most, room))
    }

    fn event_place(&self, query: &EventQuery) -> Read<u64> {
        Ok(lists::event_place(&self.tables(), query))
    }

    fn event_behind_which_more_come(&self, query: &EventQuery, after: u64, most: u64) -> Read<Option<u64>> {
        let tables = self.tables();
        Ok(lists::last_of_more(lists::events_after(&tables, query, after).map(|event| event.seq), most))
    }

    fn count_events(&self, query: &EventQuery, after: u64) -> Read<RowCount> {
        let count = lists::events_after(&self.tables(), query, after).count() as u64;
        Ok(if query.is_of_some() { RowCount::of_some(count) } else { RowCount::Exactly(count) })
    }

    fn max_seq(&self) -> Read<u64> {
        Ok(self.tables().newest)
    }

    fn complete_from(&self) -> Read<Option<CompleteFrom>> {
        let tables = self.tables();
        let first = tables.complete_from().and_then(|seq| tables.events.range(seq..).next());
        Ok(first.map(|(seq, event)| CompleteFrom { seq: *seq, at: event.at }))
    }

    fn with_old_runs(&self, before: Wall) -> Read<Vec<SessionId>> {
        let tables = self.tables();
        let first = |id: SessionId| {
            let many = tables.runs_of(id).nth(KEPT_RUNS as usize).is_some();
            tables.runs_of(id).next().and_then(|run| run.ended_at).filter(|_| many)
        };
        Ok(old(&tables, before, first))
    }

    fn with_old_messages(&self, before: Wall) -> Read<Vec<SessionId>> {
        let tables = self.tables();
        let done = |message: &&Message| message.state == MessageState::Done;
        let first = |id: SessionId| tables.messages_of(id).map(|(_, message)| message).find(done)?.done_at;
        Ok(old(&tables, before, first))
    }

    fn old_messages(
        &self,
        session: SessionId,
        before: Wall,
        after: MessagePlace,
        most: u64,
    ) -> Read<ListPage<Ulid, MessagePlace>> {
        let (tables, most) = (self.tables(), usize::try_from(most).unwrap_or(usize::MAX));
        let query = MessageQuery { session, state: Some(MessageState::Done) };
        let old = lists::messages_after(&tables, query, after)
            .filter(|(_, message)| message.done_at.is_some_and(|at| at < before));
        let old: Vec<(i64, Ulid)> = old.take(most).map(|(place, message)| (place, message.id)).collect();
        let next = old.last().filter(|_| old.len() >= most).map(|(place, _)| MessagePlace(*place));
        Ok(ListPage { rows: old.into_iter().map(|(_, id)| id).collect(), next })
    }

    fn untold(&self) -> Read<Untold> {
        Ok(self.tables().past.untold)
    }

    fn meta(&self) -> Read<Meta> {
        let tables = self.tables();
        let program = tables.generation.map(|_| env!("CARGO_PKG_VERSION").to_owned());
        Ok(Meta { generation: tables.generation.unwrap_or(0), boot_id: tables.boot_id.clone(), program })
    }

    fn bytes_used(&self) -> Read<u64> {
        let tables = self.tables();
        let sessions: usize = tables.sessions.values().map(|row| row.name.len() + row.core.len()).sum();
        let messages: usize = tables.messages.values().map(size::of_message).sum();
        let events: usize = tables.events.values().map(size::of_event).sum();
        let runs = tables.runs.len() * size_of::<StoredRun>();
        Ok((sessions + messages + events + runs) as u64)
    }

    fn bytes_free(&self) -> Read<u64> {
        Ok(0)
    }

    fn disk_used(&self) -> u64 {
        0
    }

    fn check(&mut self, _pace: &CheckPace) -> Read<Vec<String>> {
        Ok(Vec::new())
    }

    /// Refuses: a store that is only in memory could not be put back.
    fn backup(
        &self,
        file: &Path,
        _beside: &mut dyn FnMut() -> io::Result<Files>,
    ) -> Result<u64, BackupError> {
        Err(BackupError::Io { path: file.to_owned(), source: io::ErrorKind::Unsupported.into() })
    }
}

fn waits(message: &Message) -> bool {
    match message.state {
        MessageState::Queued | MessageState::Delivered => true,
        MessageState::Done | MessageState::Failed => false,
    }
}

/// Returns a session with its waiting messages, which have their own rows.
fn loaded(tables: &Tables, id: SessionId, row: &SessionRow) -> Loaded {
    let mut session: Session = match serde_json::from_str(&row.core) {
        Ok(session) => session,
        Err(error) => {
            let problem = format!("its state cannot be read: {error}");
            return Loaded::Damaged(DamagedSession { id: id.to_string(), name: row.name.clone(), problem });
        }
    };
    let waiting = tables.messages_of(id).map(|(_, message)| message).filter(|message| waits(message));
    session.refill(waiting.map(|message| Queued { message: message.id.into(), tries: message.tries }));
    Loaded::Whole(Box::new(StoredSession {
        id,
        name: row.name.clone(),
        definition: row.definition.clone(),
        session,
        created_at: row.created_at,
        archived_at: row.archived_at,
        parent: row.parent,
        position: row.position,
        damaged: 0,
    }))
}

fn find(tables: &Tables, name_or_prefix: &str) -> Lookup {
    if let Some((id, row)) = tables.named(name_or_prefix).and_then(|id| tables.sessions.get_key_value(&id)) {
        return Lookup::One(loaded(tables, *id, row));
    }
    let once = tables.sessions.iter().filter(|(_, row)| row.name == name_or_prefix);
    let mut found: Vec<_> = once.collect();
    found.sort_by_key(|(_, row)| row.position);
    if found.is_empty()
        && let Some(prefix) = ulid::prefix(name_or_prefix)
    {
        found = tables.sessions.iter().filter(|(id, _)| id.to_string().starts_with(&prefix)).collect();
    }
    match found[..] {
        [] => Lookup::Nobody,
        [(id, row)] => Lookup::One(loaded(tables, *id, row)),
        [..] => Lookup::Several(found.iter().map(|(id, row)| (id.to_string(), row.name.clone())).collect()),
    }
}

/// Returns the sessions, not archived, whose `first` is before a moment.
fn old(tables: &Tables, before: Wall, first: impl Fn(SessionId) -> Option<Wall>) -> Vec<SessionId> {
    let active = tables.sessions.keys().copied().filter(|id| tables.is_active(*id));
    active.filter(|id| first(*id).is_some_and(|at| at < before)).collect()
}
