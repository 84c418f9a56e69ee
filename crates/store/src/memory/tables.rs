//! Rows in memory, and what is needed to undo a change.

use crate::rows::{Cursor, Message, SpentKey, StoredEvent, StoredRun};
use crate::step::Untold;
use crate::ulid::{RunId, SessionId, Ulid};
use crate::usage::Spent;
use pinfold_core::{RunNumber, Wall};
use serde_json::Value;
use std::collections::BTreeMap;

/// A session as it is stored.
#[derive(Debug, Clone)]
pub(super) struct SessionRow {
    pub(super) name: String,
    pub(super) definition: Value,
    /// The core's state as JSON, read in the same way as from a file.
    pub(super) core: String,
    pub(super) created_at: Wall,
    pub(super) archived_at: Option<Wall>,
    pub(super) parent: Option<SessionId>,
    pub(super) position: i64,
}

/// The place of a message: its session, and its position in the order of turns.
pub(super) type Stand = (SessionId, i64);
/// A run by its session and number.
pub(super) type RunKey = (SessionId, RunNumber);

/// What is known about what was forgotten.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Past {
    /// The number from which on all events exist; `None` if none was forgotten.
    pub(super) kept_from: Option<u64>,
    pub(super) untold: Untold,
}

/// All rows. They change only through the methods below, which remember what was there.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) sessions: BTreeMap<SessionId, SessionRow>,
    pub(super) messages: BTreeMap<Stand, Message>,
    pub(super) stands: BTreeMap<Ulid, Stand>,
    pub(super) keys: BTreeMap<(SessionId, String), Ulid>,
    pub(super) runs: BTreeMap<RunKey, StoredRun>,
    pub(super) run_ids: BTreeMap<RunId, RunKey>,
    /// Keys of messages that were forgotten.
    pub(super) spent: BTreeMap<(SessionId, String), SpentKey>,
    pub(super) events: BTreeMap<u64, StoredEvent>,
    /// What is known about what was forgotten.
    pub(super) past: Past,
    pub(super) cursors: BTreeMap<SessionId, Cursor>,
    /// What turns used, with the name the session had.
    pub(super) usage: Vec<(Spent, Option<String>)>,
    pub(super) accounts: BTreeMap<String, String>,
    /// Answers that are too long for their rows, and the parts delivered so far of those whose turns have not
    /// ended. As with files, they exist before the rows that name them, and are not undone.
    pub(super) answers: BTreeMap<Ulid, String>,
    pub(super) drafts: BTreeMap<Ulid, String>,
    /// The number of the newest event.
    pub(super) newest: u64,
    /// The last position given to a message.
    pub(super) last_place: i64,
    pub(super) generation: Option<u64>,
    pub(super) boot_id: Option<String>,
    /// How many batches without an event there were.
    pub(super) steps: u64,
    undo: Vec<Undo>,
}

/// What was there before a change.
#[derive(Debug)]
enum Undo {
    Session(SessionId, Option<SessionRow>),
    Message(Stand, Option<Message>),
    Run(RunKey, Option<StoredRun>),
    Cursor(SessionId, Option<Cursor>),
    Usage,
    Account(String, Option<String>),
    Event(u64),
    Pruned(Box<StoredEvent>),
    Past(Past),
    Spent((SessionId, String), Option<SpentKey>),
    Generation(Option<u64>, Option<String>),
}

impl Tables {
    pub(super) fn put_session(&mut self, id: SessionId, row: Option<SessionRow>) {
        let before = self.set_session(id, row);
        self.undo.push(Undo::Session(id, before));
    }

    pub(super) fn put_message(&mut self, at: Stand, row: Option<Message>) {
        let before = self.set_message(at, row);
        self.undo.push(Undo::Message(at, before));
    }

    pub(super) fn put_run(&mut self, key: RunKey, row: Option<StoredRun>) {
        let before = self.set_run(key, row);
        self.undo.push(Undo::Run(key, before));
    }

    pub(super) fn put_cursor(&mut self, id: SessionId, row: Option<Cursor>) {
        let before = self.set_cursor(id, row);
        self.undo.push(Undo::Cursor(id, before));
    }

    pub(super) fn add_usage(&mut self, spent: Spent, name: Option<String>) {
        self.usage.push((spent, name));
        self.undo.push(Undo::Usage);
    }

    pub(super) fn put_account(&mut self, name: &str, state: &str) {
        let before = self.accounts.insert(name.to_owned(), state.to_owned());
        self.undo.push(Undo::Account(name.to_owned(), before));
    }

    pub(super) fn add_event(&mut self, event: StoredEvent) {
        self.newest = event.seq;
        self.undo.push(Undo::Event(event.seq));
        self.events.insert(event.seq, event);
    }

    /// Removes an event.
    pub(super) fn drop_event(&mut self, seq: u64) {
        self.undo.extend(self.events.remove(&seq).map(|event| Undo::Pruned(Box::new(event))));
    }

    pub(super) fn put_past(&mut self, past: Past) {
        let before = std::mem::replace(&mut self.past, past);
        self.undo.push(Undo::Past(before));
    }

    /// Sets or clears the key of a message that was forgotten.
    pub(super) fn put_spent(&mut self, key: (SessionId, String), spent: Option<SpentKey>) {
        let before = self.set_spent(key.clone(), spent);
        self.undo.push(Undo::Spent(key, before));
    }

    pub(super) fn put_generation(&mut self, generation: u64, boot_id: &str) {
        let before = (self.generation.replace(generation), self.boot_id.replace(boot_id.to_owned()));
        self.undo.push(Undo::Generation(before.0, before.1));
    }

    /// Undoes everything since the last [`keep`](Tables::keep).
    pub(super) fn take_back(&mut self) {
        while let Some(undo) = self.undo.pop() {
            match undo {
                Undo::Session(id, row) => drop(self.set_session(id, row)),
                Undo::Message(at, row) => drop(self.set_message(at, row)),
                Undo::Run(key, row) => drop(self.set_run(key, row)),
                Undo::Cursor(id, row) => drop(self.set_cursor(id, row)),
                Undo::Usage => drop(self.usage.pop()),
                Undo::Account(name, state) => drop(match state {
                    Some(state) => self.accounts.insert(name, state),
                    None => self.accounts.remove(&name),
                }),
                Undo::Event(seq) => {
                    drop(self.events.remove(&seq));
                    self.newest -= 1;
                }
                Undo::Pruned(event) => drop(self.events.insert(event.seq, *event)),
                Undo::Past(past) => self.past = past,
                Undo::Spent(key, spent) => drop(self.set_spent(key, spent)),
                Undo::Generation(generation, boot_id) => {
                    (self.generation, self.boot_id) = (generation, boot_id);
                }
            }
        }
    }

    /// Keeps everything that was changed.
    pub(super) fn keep(&mut self) {
        self.undo.clear();
        self.answers.retain(|message, _| self.stands.contains_key(message));
        self.drafts.retain(|message, _| self.stands.contains_key(message));
    }

    fn set_session(&mut self, id: SessionId, row: Option<SessionRow>) -> Option<SessionRow> {
        match row {
            Some(row) => self.sessions.insert(id, row),
            None => self.sessions.remove(&id),
        }
    }

    fn set_cursor(&mut self, id: SessionId, row: Option<Cursor>) -> Option<Cursor> {
        match row {
            Some(row) => self.cursors.insert(id, row),
            None => self.cursors.remove(&id),
        }
    }

    fn set_message(&mut self, at: Stand, row: Option<Message>) -> Option<Message> {
        let before = self.messages.remove(&at);
        if let Some(before) = &before {
            self.stands.remove(&before.id);
            before.key.as_ref().map(|key| self.keys.remove(&(at.0, key.clone())));
        }
        if let Some(row) = row {
            self.stands.insert(row.id, at);
            row.key.as_ref().map(|key| self.keys.insert((at.0, key.clone()), row.id));
            self.messages.insert(at, row);
        }
        before
    }

    fn set_spent(&mut self, key: (SessionId, String), spent: Option<SpentKey>) -> Option<SpentKey> {
        match spent {
            Some(spent) => self.spent.insert(key, spent),
            None => self.spent.remove(&key),
        }
    }

    fn set_run(&mut self, key: RunKey, row: Option<StoredRun>) -> Option<StoredRun> {
        let before = self.runs.remove(&key);
        before.as_ref().and_then(|run| run.id).map(|id| self.run_ids.remove(&id));
        if let Some(row) = row {
            row.id.map(|id| self.run_ids.insert(id, key));
            self.runs.insert(key, row);
        }
        before
    }
}

impl Tables {
    /// Returns the messages of a session, in the order of their turns.
    pub(super) fn messages_of(&self, session: SessionId) -> impl DoubleEndedIterator<Item = (i64, &Message)> {
        self.messages.range((session, i64::MIN)..=(session, i64::MAX)).map(|(at, message)| (at.1, message))
    }

    /// Returns the runs of a session, by number.
    pub(super) fn runs_of(&self, session: SessionId) -> impl DoubleEndedIterator<Item = &StoredRun> {
        self.runs.range((session, RunNumber(0))..=(session, RunNumber(u64::MAX))).map(|(_, run)| run)
    }

    /// Whether a session exists and is not archived.
    pub(super) fn is_active(&self, session: SessionId) -> bool {
        self.sessions.get(&session).is_some_and(|row| row.archived_at.is_none())
    }

    /// Returns the number from which on all events exist; `None` before the first.
    pub(super) fn complete_from(&self) -> Option<u64> {
        self.past.kept_from.or_else(|| self.events.keys().next().copied())
    }

    /// Returns the session with a name that is not archived.
    pub(super) fn named(&self, name: &str) -> Option<SessionId> {
        let has = |(_, row): &(&SessionId, &SessionRow)| row.archived_at.is_none() && row.name == name;
        self.sessions.iter().find(has).map(|(id, _)| *id)
    }
}
