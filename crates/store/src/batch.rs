//! What is to become durable together: built by the caller, applied by the writer as one.

use crate::answer::AnswerPart;
use crate::rows::Cursor;
use crate::step::{EventRun, EventStep, NewSession, Prune, Step, Tally};
use crate::ulid::{RunId, SessionId};
use pinfold_core::{EventKind, Life, Session, Wall};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::time::Duration;

/// Steps that become durable together or not at all, in the order in which they were added.
///
/// It is plain data: a back-end needs nothing else to know what to do. Its methods add steps.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Batch {
    /// What is to be done, in this order.
    pub steps: Vec<Step>,
    /// Sessions that were read again after a batch of them had failed; see [`Batch::reloaded`].
    pub reloaded: BTreeSet<SessionId>,
    /// It does not wait for a disk that cannot take it now.
    pub impatient: bool,
    /// What becomes of what it deletes.
    pub tidy: Tidy,
    /// Parts of answers that are on their way to the disk before it is durable.
    pub parts: Vec<AnswerPart>,
}

/// What is done once a batch is durable, before its caller hears of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Tidy {
    /// Nothing: the log is brought into the file when it is due.
    #[default]
    Later,
    /// Nothing of what was deleted is left in the log.
    Log,
    /// Nothing of it is left in unused parts of the file either.
    File,
}

/// An event that no decision of the core led to: `daemon_started`, `daemon_stopped`, `unlocked`.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEvent {
    /// When.
    pub at: Wall,
    /// About which session.
    pub session: Option<SessionId>,
    /// About which run.
    pub run: Option<RunId>,
    /// What happened.
    pub kind: EventKind,
    /// A sentence.
    pub why: String,
    /// Its own fields; [`EVENT_FIELDS`](crate::EVENT_FIELDS) are taken.
    pub data: Map<String, Value>,
}

impl Batch {
    /// A batch without steps.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Whether it has nothing to make durable.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The generation of the daemon that it announces.
    pub(crate) fn generation(&self) -> Option<u64> {
        self.steps.iter().find_map(|step| match step {
            Step::Generation { generation, .. } => Some(*generation),
            Step::Create { .. }
            | Step::Update { .. }
            | Step::Define { .. }
            | Step::Rename { .. }
            | Step::Remove { .. }
            | Step::Message { .. }
            | Step::Run { .. }
            | Step::Cursor(_)
            | Step::Spent(_)
            | Step::Files { .. }
            | Step::Account { .. }
            | Step::Event(_)
            | Step::OwnedBy { .. }
            | Step::Prune(_)
            | Step::Told { .. }
            | Step::GiveBack { .. } => None,
            #[cfg(test)]
            Step::Panic => None,
        })
    }

    /// Adds all steps of another batch after its own.
    pub fn append(&mut self, mut other: Batch) {
        self.steps.append(&mut other.steps);
        self.reloaded.append(&mut other.reloaded);
        self.impatient |= other.impatient;
        self.tidy = self.tidy.max(other.tidy);
        self.parts.append(&mut other.parts);
    }

    /// Creates a session. Add the decision on [`Event::Created`](pinfold_core::Event::Created) next.
    pub fn create(&mut self, new: NewSession, session: &Session) {
        let (core, archived_at) = (core_json(session), archived_at(session));
        self.steps.push(Step::Create { new: Box::new(new), core, archived_at });
    }

    /// Stores a session as it is now.
    pub fn session(&mut self, id: SessionId, session: &Session) {
        self.steps.push(Step::Update { id, core: core_json(session), archived_at: archived_at(session) });
    }

    /// Lets it fail where others wait for the disk: its caller can take it back.
    pub fn fail_if_held_up(&mut self) {
        self.impatient = true;
    }

    /// Leaves nothing of what it deletes in the log, as far as no reader needs that. Takes as long as a commit more.
    pub fn wipe(&mut self) {
        self.tidy = self.tidy.max(Tidy::Log);
    }

    /// Has the whole file written anew, so that nothing that was ever deleted is left in it. Takes long.
    pub fn rewrite(&mut self) {
        self.tidy = Tidy::File;
    }

    /// Says that a session was read again after a batch of it had failed.
    ///
    /// Until then its batches are refused: they were made by a session that believes in what did not become
    /// durable, and would store its state without the events and messages that belong to it.
    pub fn reloaded(&mut self, id: SessionId) {
        self.reloaded.insert(id);
    }

    /// Replaces what the caller knows of a session.
    pub fn define(&mut self, id: SessionId, definition: &Value) {
        self.steps.push(Step::Define { id, definition: definition.to_string() });
    }

    /// Gives a session another name. Its events of before keep the one that it had.
    pub fn rename(&mut self, id: SessionId, name: &str) {
        self.steps.push(Step::Rename { id, name: name.to_owned() });
    }

    /// Forgets a session with its runs and messages. Its events stay.
    pub fn remove(&mut self, id: SessionId) {
        self.steps.push(Step::Remove { id });
    }

    /// Notes how far the tape of a session was folded.
    pub fn cursor(&mut self, cursor: Cursor) {
        self.steps.push(Step::Cursor(Box::new(cursor)));
    }

    /// Notes what is known of an account.
    pub fn account(&mut self, name: &str, state: String) {
        self.steps.push(Step::Account { name: name.to_owned(), state });
    }

    /// Adds parts of an answer whose turn has not ended; a cursor that counts them as told belongs into the same batch.
    pub fn answer_parts(&mut self, parts: impl IntoIterator<Item = AnswerPart>) {
        self.parts.extend(parts);
    }

    /// Adds an event that no decision led to.
    pub fn event(&mut self, event: AuditEvent) {
        let AuditEvent { at, session, run, kind, why, data } = event;
        let (run, data) = (run.map(EventRun::Id), Value::Object(data).to_string());
        self.steps.push(Step::Event(EventStep { at, session, run, kind, why, data }));
    }

    /// Notes the start of a daemon; its generation must be greater than the one before.
    pub fn daemon_started(&mut self, generation: u64, boot_id: &str) {
        self.steps.push(Step::Generation { generation, boot_id: boot_id.to_owned() });
    }

    /// Forgets some of the past: a part of it in each batch, so that nobody waits long.
    ///
    /// Repeat it while [`Committed::more`](crate::Committed::more) says that there is more. No number is used again.
    pub fn prune(&mut self, prune: Prune) {
        self.steps.push(Step::Prune(prune));
    }

    /// Says that so much of what was forgotten is told with this batch.
    pub fn told(&mut self, at: Wall, tally: Tally) {
        self.steps.push(Step::Told { at, tally });
    }

    /// Gives room that is not used back to the file system, a part of it in each batch, as with [`Batch::prune`].
    pub fn give_back(&mut self, within: Duration) {
        self.steps.push(Step::GiveBack { within });
    }
}

fn core_json(session: &Session) -> String {
    serde_json::to_string(session).expect("a session is plain data with text keys")
}

fn archived_at(session: &Session) -> Option<Wall> {
    if let Life::Archived { at } = session.life() { Some(*at) } else { None }
}
