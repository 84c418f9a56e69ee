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
/// It is plain data: a back-end needs nothing else. Its methods add steps.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Batch {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Sessions that were read again after one of their batches had failed; see [`Batch::reloaded`].
    pub reloaded: BTreeSet<SessionId>,
    /// Whether it fails instead of waiting for a disk that cannot take it now.
    pub impatient: bool,
    /// What to do about traces of what it deletes.
    pub tidy: Tidy,
    /// Parts of answers, which are written to the disk before the batch is durable.
    pub parts: Vec<AnswerPart>,
}

/// What is done once a batch is durable, before its caller hears of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Tidy {
    /// Nothing: the log is checkpointed when it is due.
    #[default]
    Later,
    /// Nothing that was deleted stays in the log.
    Log,
    /// Nothing that was deleted stays in unused parts of the file either.
    File,
}

/// An event that did not follow from a decision of the core: `daemon_started`, `daemon_stopped`, `unlocked`.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEvent {
    /// When it happened.
    pub at: Wall,
    /// The session it is about, if any.
    pub session: Option<SessionId>,
    /// The run it is about, if any.
    pub run: Option<RunId>,
    /// What happened.
    pub kind: EventKind,
    /// A sentence about it.
    pub why: String,
    /// The fields of its kind; [`EVENT_FIELDS`](crate::EVENT_FIELDS) are reserved.
    pub data: Map<String, Value>,
}

impl Batch {
    /// Creates a batch without steps.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Whether it has nothing to make durable.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns the generation of the daemon that it announces.
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

    /// Makes it fail where others wait for the disk, for a caller that can take it back.
    pub fn fail_if_held_up(&mut self) {
        self.impatient = true;
    }

    /// Leaves nothing of what it deletes in the log, unless a reader still needs that. Takes as long as another commit.
    pub fn wipe(&mut self) {
        self.tidy = self.tidy.max(Tidy::Log);
    }

    /// Makes the whole file be rewritten, so that nothing that was ever deleted is left in it. Slow.
    pub fn rewrite(&mut self) {
        self.tidy = Tidy::File;
    }

    /// Notes that a session was read again after one of its batches had failed.
    ///
    /// Until then its batches are refused: they come from a session that believes in what did not become
    /// durable, and would store its state without the events and messages that belong to it.
    pub fn reloaded(&mut self, id: SessionId) {
        self.reloaded.insert(id);
    }

    /// Replaces what the caller knows about a session.
    pub fn define(&mut self, id: SessionId, definition: &Value) {
        self.steps.push(Step::Define { id, definition: definition.to_string() });
    }

    /// Renames a session. Its earlier events keep its old name.
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

    /// Notes what is known about an account.
    pub fn account(&mut self, name: &str, state: String) {
        self.steps.push(Step::Account { name: name.to_owned(), state });
    }

    /// Adds parts of an answer whose turn has not ended; the cursor that counts them as delivered belongs
    /// into the same batch.
    pub fn answer_parts(&mut self, parts: impl IntoIterator<Item = AnswerPart>) {
        self.parts.extend(parts);
    }

    /// Adds an event that did not follow from a decision.
    pub fn event(&mut self, event: AuditEvent) {
        let AuditEvent { at, session, run, kind, why, data } = event;
        let (run, data) = (run.map(EventRun::Id), Value::Object(data).to_string());
        self.steps.push(Step::Event(EventStep { at, session, run, kind, why, data }));
    }

    /// Notes the start of a daemon; its generation must be greater than the one before.
    pub fn daemon_started(&mut self, generation: u64, boot_id: &str) {
        self.steps.push(Step::Generation { generation, boot_id: boot_id.to_owned() });
    }

    /// Forgets some of the past: a part of it in each batch, so that no other batch waits long.
    ///
    /// Repeat it while [`Committed::more`](crate::Committed::more) says that there is more. No number is reused.
    pub fn prune(&mut self, prune: Prune) {
        self.steps.push(Step::Prune(prune));
    }

    /// Notes that this batch reports this much of what was forgotten.
    pub fn told(&mut self, at: Wall, tally: Tally) {
        self.steps.push(Step::Told { at, tally });
    }

    /// Gives unused space back to the file system, a part of it in each batch, as with [`Batch::prune`].
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
