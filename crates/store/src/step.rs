//! The changes that a store knows, as plain data: what a back-end is told, and all that it is told.

use crate::rows::TurnPlace;
use crate::ulid::{RunId, SessionId};
use pinfold_core::decision::RunExited;
use pinfold_core::inbox::MessageChange;
use pinfold_core::life::{Process, Purpose};
use pinfold_core::{EventKind, MessageId, RunNumber, Wall};
use serde_json::Value;
use std::num::NonZeroU64;

/// One change of what is stored.
#[derive(Debug, Clone)]
pub enum Step {
    /// A session that was not there. Its name must be free, and its parent must be there.
    Create {
        /// What it is.
        new: Box<NewSession>,
        /// What the core knows of it, as JSON.
        core: String,
        /// When it was archived, if it is.
        archived_at: Option<Wall>,
    },
    /// A session as it is now. One that is archived no more needs its name to be free.
    Update {
        /// Which session.
        id: SessionId,
        /// What the core knows of it, as JSON.
        core: String,
        /// When it was archived, if it is.
        archived_at: Option<Wall>,
    },
    /// What the caller knows of a session.
    Define {
        /// Which session.
        id: SessionId,
        /// All of it, as JSON.
        definition: String,
    },
    /// A session goes, with its runs and messages; its children have no parent then.
    Remove {
        /// Which session.
        id: SessionId,
    },
    /// A message takes a step on its way.
    Message {
        /// Whose it is.
        session: SessionId,
        /// When.
        at: Wall,
        /// Which message, and which step.
        change: MessageChange,
        /// The text of one that is queued, the answer to one that is done.
        words: Option<String>,
        /// The session that sent one that is queued.
        from: Option<String>,
        /// Where the output of its turn stands, as far as that is known now.
        place: Option<TurnPlace>,
    },
    /// A run takes a step.
    Run {
        /// Whose it is.
        session: SessionId,
        /// When.
        at: Wall,
        /// Which run, and which step.
        run: RunStep,
    },
    /// An event gets the next number.
    Event(EventStep),
    /// A daemon announces itself; its generation must be greater than the one before.
    Generation {
        /// Its generation.
        generation: u64,
        /// The boot in which it started.
        boot_id: String,
    },
    /// Nothing of the batch is done where a later daemon has announced itself.
    OwnedBy {
        /// The generation of the daemon that writes.
        incarnation: u64,
    },
    /// Old events go: at most [`PRUNE_AT_ONCE`], from the oldest on.
    Prune(Prune),
    /// Old runs of a session that is not archived go: at most [`PRUNE_AT_ONCE`], and never the newest.
    PruneRuns {
        /// Which session.
        session: SessionId,
        /// Only those that had ended before this.
        before: Wall,
    },
    /// Messages of a session that is not archived go: at most [`PRUNE_AT_ONCE`], and only those that are done.
    PruneMessages {
        /// Which session.
        session: SessionId,
        /// Only those that were done before this.
        before: Wall,
    },
    /// Has the writer die.
    #[cfg(test)]
    Panic,
}

/// How much one step forgets at most: more would keep the others waiting.
pub const PRUNE_AT_ONCE: u64 = 500;

/// What happens to a run.
#[derive(Debug, Clone)]
pub enum RunStep {
    /// It was decided. Without an id it must be there already, which is a later stage of the same start.
    Decided {
        /// Its number.
        run: RunNumber,
        /// What it is for.
        purpose: Purpose,
        /// Its id.
        id: Option<RunId>,
    },
    /// Its agent runs. One that is not there yet is made.
    Started {
        /// Its number.
        run: RunNumber,
        /// What it is for.
        purpose: Purpose,
        /// Its agent.
        process: Process,
    },
    /// It ended. One that is not there yet is made, and taken for headless.
    Exited(Box<RunExited>),
    /// All up to this one are over, also those that came to nothing.
    Settled {
        /// The last of them.
        run: RunNumber,
    },
}

/// An event without its number, and without the name that its session has when it is stored.
#[derive(Debug, Clone)]
pub struct EventStep {
    /// When.
    pub at: Wall,
    /// About which session.
    pub session: Option<SessionId>,
    /// About which run.
    pub run: Option<EventRun>,
    /// What happened.
    pub kind: EventKind,
    /// A sentence.
    pub why: String,
    /// The fields of its kind, as a JSON object.
    pub data: String,
}

/// How an event names its run.
#[derive(Debug, Clone, Copy)]
pub enum EventRun {
    /// By its number in the session of the event; the store knows the id.
    Number(RunNumber),
    /// By its id.
    Id(RunId),
}

/// What a session is before anything has happened to it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSession {
    /// Its id, for ever.
    pub id: SessionId,
    /// Its name; must be free among sessions that are not archived.
    pub name: String,
    /// What the caller knows of it and the core does not: argv, directory, environment, tags.
    pub definition: Value,
    /// The session that it belongs to.
    pub parent: Option<SessionId>,
    /// When it was created.
    pub created_at: Wall,
}

/// Which events to forget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prune {
    /// Only those before the first event that is not older than this.
    pub before: Wall,
    /// Never the newest so many: the numbering goes on from them.
    pub keep: NonZeroU64,
}

impl Step {
    /// The session whose state it is about.
    pub(crate) fn session(&self) -> Option<SessionId> {
        match self {
            Step::Create { new, .. } => Some(new.id),
            Step::Update { id, .. } | Step::Define { id, .. } | Step::Remove { id } => Some(*id),
            Step::Message { session, .. } | Step::Run { session, .. } => Some(*session),
            // Forgetting the past changes no state.
            Step::Event(_)
            | Step::Generation { .. }
            | Step::OwnedBy { .. }
            | Step::Prune(_)
            | Step::PruneRuns { .. }
            | Step::PruneMessages { .. } => None,
            #[cfg(test)]
            Step::Panic => None,
        }
    }
}

/// The message that a change is about.
pub(crate) fn message_of(change: &MessageChange) -> MessageId {
    match change {
        MessageChange::Queued { message, .. }
        | MessageChange::Delivering { message }
        | MessageChange::Taken { message }
        | MessageChange::Requeued { message, .. }
        | MessageChange::Done { message }
        | MessageChange::Failed { message, .. }
        | MessageChange::Retried { message } => *message,
    }
}
