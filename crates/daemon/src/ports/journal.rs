//! The store as the loop uses it: batches go out and their outcome comes back; single rows are read by key.

use super::Then;
use super::shims::order::Order;
use crate::error_chain::chain;
use crate::output::last_line;
use pinfold_core::exit::Exit;
use pinfold_core::rules::verdict::Asked;
use pinfold_core::{EventKind, LastExit, MessageId, RunNumber, Session, Verdict};
use pinfold_store::{
    Batch, Cursor, EventQuery, Loaded, Message, Outcome, Owner, Owners, Promise, Put, ReadError, Reader,
    RunId, SessionId, Solo, Store, StoredEvent, StoredRun, StoredSession, Take, Trouble,
};
use std::rc::Rc;
use std::time::Duration;

/// The last run that ended is looked for among this many runs, and its end among this many events.
const RECALLED: u32 = 64;

/// Makes decisions durable, and reads what is durable.
///
/// The reads are synchronous: each takes one row by its key, or a few by an index, from a database where a
/// reader never waits (WAL), and most of it is in memory. A hop to a thread and back would cost every message
/// more than that, and the world could change in between.
pub(crate) trait Journal {
    /// Commits. As soon as the batch is durable, the thread that knows it first sends `with`; if the batch
    /// fails, it is not sent. Then `then` gets the outcome.
    fn commit(&self, batch: Batch, with: Option<Order>, then: Then<Outcome>);

    /// Commits the very last batch and waits for it, unless nothing can be written: for after the loop.
    fn commit_last(&self, batch: Batch) -> Outcome;

    /// What keeps the store from being written at the moment.
    fn trouble(&self) -> Trouble;

    /// A message as it is on disk; `None` if it is not there.
    fn message(&self, message: MessageId) -> Result<Option<Message>, ReadError>;

    /// The message with this dedupe key of a session.
    fn message_by_key(&self, session: SessionId, key: &str) -> Result<Option<MessageId>, ReadError>;

    /// How many bytes of text are queued in an inbox.
    fn waiting_bytes(&self, session: SessionId) -> u64;

    /// How far the tape of a session was folded; the error says why that cannot be read.
    fn cursor(&self, session: SessionId) -> Result<Option<Cursor>, String>;

    /// The session of a run.
    fn session_of_run(&self, run: RunId) -> Option<SessionId>;

    /// The latest events of a session.
    fn recent_events(&self, session: SessionId, most: u32) -> Vec<StoredEvent>;

    /// A stored session, for one that begins again; the error says why it cannot be read.
    fn session(&self, id: SessionId) -> Result<Option<Remembered>, String>;
}

/// A session as it is stored.
pub(crate) struct Remembered {
    pub(crate) loaded: Loaded,
    /// Its latest run.
    pub(crate) run: Option<(RunNumber, RunId)>,
}

impl Remembered {
    /// Adds to a loaded session what other rows say of it.
    pub(crate) fn read(mut loaded: Loaded, reader: &Reader) -> Result<Remembered, ReadError> {
        let mut run = None;
        if let Loaded::Whole(stored) = &mut loaded {
            let StoredSession { id, session, .. } = &mut **stored;
            recall_last_exit(*id, session, reader)?;
            let latest = reader.runs(*id, Take::Last(1))?.pop();
            run = latest.and_then(|run| Some((run.number, run.id?)));
        }
        Ok(Remembered { loaded, run })
    }
}

/// The store of this machine's sessions, and one reader for the loop alone.
pub(crate) struct StoreJournal {
    owners: Box<dyn Owners>,
    /// The owner in whose name it writes.
    owner: Owner,
    store: Store,
    reader: Rc<Reader>,
}

impl StoreJournal {
    pub(crate) fn new(owners: Solo, store: Store, reader: Rc<Reader>) -> StoreJournal {
        StoreJournal { owner: owners.here(), owners: Box::new(owners), store, reader }
    }
}

impl Journal for StoreJournal {
    fn commit(&self, batch: Batch, with: Option<Order>, then: Then<Outcome>) {
        let promise = Promise::new(move |outcome| {
            if let (Some(order), Ok(_)) = (with, &outcome) {
                order.give();
            }
            then(outcome);
        });
        self.owners.put(Put { seen: self.owner.clone(), batch }, promise);
    }

    fn commit_last(&self, batch: Batch) -> Outcome {
        self.store.give_up();
        self.store.commit(batch).wait()
    }

    fn trouble(&self) -> Trouble {
        self.store.trouble()
    }

    fn message(&self, message: MessageId) -> Result<Option<Message>, ReadError> {
        self.owners.message(message)
    }

    fn message_by_key(&self, session: SessionId, key: &str) -> Result<Option<MessageId>, ReadError> {
        self.owners.known(session, key)
    }

    fn waiting_bytes(&self, session: SessionId) -> u64 {
        // What cannot be read now is counted another time.
        self.owners.waiting_bytes(session).unwrap_or(0)
    }

    fn cursor(&self, session: SessionId) -> Result<Option<Cursor>, String> {
        self.reader.cursor(session).map_err(|error| chain(&error))
    }

    fn session_of_run(&self, run: RunId) -> Option<SessionId> {
        self.reader.run(run).ok().flatten().map(|run| run.session)
    }

    fn recent_events(&self, session: SessionId, most: u32) -> Vec<StoredEvent> {
        let query = EventQuery { session: Some(session), take: Take::Last(most), ..EventQuery::default() };
        self.reader.events(&query).unwrap_or_default()
    }

    fn session(&self, id: SessionId) -> Result<Option<Remembered>, String> {
        let reader = self.store.reader().map_err(|error| chain(&error))?;
        let loaded = reader.session(id).map_err(|error| chain(&error))?;
        let whole = loaded.map(|loaded| Remembered::read(loaded, &reader)).transpose();
        whole.map_err(|error| chain(&error))
    }
}

/// Finds the last exit in runs and events, for a session of a version that did not store it.
fn recall_last_exit(id: SessionId, session: &mut Session, reader: &Reader) -> Result<(), ReadError> {
    if session.last_exit().is_some() || session.runs().settled.0 == 0 {
        return Ok(());
    }
    let ended = |run: &StoredRun| run.verdict.is_some() && (run.started_at.is_some() || run.code.is_some());
    let Some(run) = reader.runs(id, Take::Last(RECALLED))?.into_iter().rev().find(ended) else {
        return Ok(());
    };
    let events = reader.events(&EventQuery {
        session: Some(id),
        take: Take::Last(RECALLED),
        ..EventQuery::default()
    })?;
    let name = run.id.map(|id| id.to_string());
    let told = events.iter().rfind(|event| event.kind == EventKind::RunExited && event.run == name);
    if let Some(exit) = last_exit(&run, told) {
        session.recall(exit);
    }
    Ok(())
}

fn last_exit(run: &StoredRun, told: Option<&StoredEvent>) -> Option<LastExit> {
    let said = |field: &str| told.and_then(|event| event.data.get(field));
    let exit = match (run.code, run.signal, said("end").and_then(|end| end.as_str())) {
        (Some(code), _, _) => Exit::Code(code),
        (None, Some(signal), _) => Exit::Signal(signal),
        (None, None, Some(end)) if end == Exit::MachineLost.word() => Exit::MachineLost,
        (None, None, Some(end)) if end == Exit::AfterBackup.word() => Exit::AfterBackup,
        (None, None, _) => Exit::ShimLost,
    };
    let verdict = serde_json::from_value(run.verdict.as_deref()?.into()).ok()?;
    let output = said("output").and_then(|lines| serde_json::from_value::<Vec<String>>(lines.clone()).ok());
    Some(LastExit {
        exit,
        verdict,
        // What it was asked is not recorded: only a clean end with a code other than 0 shows it.
        asked: if verdict == Verdict::Clean && exit != Exit::Code(0) { Asked::ToEnd } else { Asked::Nothing },
        at: run.ended_at?,
        lived: Duration::from_millis(run.lived_ms.unwrap_or(0)),
        last_line: last_line::of(&output.unwrap_or_default()),
        recognised: None,
    })
}
