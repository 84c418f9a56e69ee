//! The changes that a store knows, as plain data: this is all that a back-end is told.

use crate::answer::AnswerTold;
use crate::rows::{Cursor, TurnPlace};
use crate::ulid::{RunId, SessionId, Ulid};
use crate::usage::Spent;
use pinfold_core::decision::RunExited;
use pinfold_core::inbox::MessageChange;
use pinfold_core::life::{Process, Purpose};
use pinfold_core::{EventKind, MessageId, RunNumber, Wall};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::num::NonZeroU64;
use std::time::Duration;

/// One change of what is stored.
#[derive(Debug, Clone)]
pub enum Step {
    /// Adds a session. Its name must be free, and its parent must exist.
    Create {
        /// The new session.
        new: Box<NewSession>,
        /// The core's state of it, as JSON.
        core: String,
        /// When it was archived, if it was.
        archived_at: Option<Wall>,
    },
    /// Stores a session as it is now. One that is no longer archived needs its name to be free.
    Update {
        /// The id of the session.
        id: SessionId,
        /// The core's state of it, as JSON.
        core: String,
        /// When it was archived, if it was.
        archived_at: Option<Wall>,
    },
    /// Replaces what the caller knows about a session.
    Define {
        /// The id of the session.
        id: SessionId,
        /// The whole definition, as JSON.
        definition: String,
    },
    /// Renames a session; unless it is archived, the name must be free.
    Rename {
        /// The id of the session.
        id: SessionId,
        /// Its new name.
        name: String,
    },
    /// Removes a session with its runs and messages; its children then have no parent.
    Remove {
        /// The id of the session.
        id: SessionId,
    },
    /// Takes a step with a message.
    Message {
        /// The session of the message.
        session: SessionId,
        /// When it happened.
        at: Wall,
        /// The message and the step.
        change: MessageChange,
        /// The text of a queued message, or the answer to one that is done.
        words: Option<String>,
        /// What else is known about the answer to one that is done.
        told: AnswerTold,
        /// The session that sent a queued message.
        from: Option<String>,
        /// Where the output of its turn is, as far as that is known now.
        place: Option<TurnPlace>,
    },
    /// Takes a step with a run.
    Run {
        /// The session of the run.
        session: SessionId,
        /// When it happened.
        at: Wall,
        /// The run and the step.
        run: RunStep,
    },
    /// Notes how far the tape of a session was folded; replaces an earlier note.
    Cursor(Box<Cursor>),
    /// Notes what a turn used.
    Spent(Box<Spent>),
    /// Notes the files that a message was sent with; the message already exists.
    Files {
        /// The session of the message.
        session: SessionId,
        /// The id of the message.
        message: MessageId,
        /// Their paths.
        paths: Vec<String>,
    },
    /// Replaces what is known about an account.
    Account {
        /// Its name.
        name: String,
        /// The whole state, as JSON.
        state: String,
    },
    /// Adds an event, which gets the next number.
    Event(EventStep),
    /// Announces a daemon; its generation must be greater than the one before.
    Generation {
        /// Its generation.
        generation: u64,
        /// The boot in which it started.
        boot_id: String,
    },
    /// Refuses the whole batch if a later daemon has announced itself.
    OwnedBy {
        /// The generation of the daemon that writes.
        incarnation: u64,
    },
    /// Forgets some of the past: at most [`PRUNE_AT_ONCE`] rows, and no more once the time is up.
    Prune(Prune),
    /// Notes that this much of what was forgotten has been reported in an event.
    Told {
        /// When it was reported.
        at: Wall,
        /// How much was reported.
        tally: Tally,
    },
    /// Gives unused space at the end of the file back to the file system, as much as the time allows.
    GiveBack {
        /// The time after which no more is begun.
        within: Duration,
    },
    /// Makes the writer panic.
    #[cfg(test)]
    Panic,
}

/// The most rows one step looks at: more would keep others waiting.
pub const PRUNE_AT_ONCE: u64 = 500;
/// This many of the newest events of each existing session stay, however old they are.
pub const KEPT_EVENTS: u64 = 100;
/// This many of the newest runs of each session stay.
pub const KEPT_RUNS: u64 = 10;
/// A step that takes longer keeps others waiting, and its commit takes as long again, or twice. What it does
/// not get to is left for the next one.
pub const PRUNE_WITHIN: Duration = Duration::from_millis(1);

/// What happens to a run.
#[derive(Debug, Clone)]
pub enum RunStep {
    /// It was decided. Without an id it must already exist: then this is a later stage of the same start.
    Decided {
        /// Its number.
        run: RunNumber,
        /// What it is for.
        purpose: Purpose,
        /// Its id.
        id: Option<RunId>,
    },
    /// Its agent runs. If the run does not exist yet, it is created.
    Started {
        /// Its number.
        run: RunNumber,
        /// What it is for.
        purpose: Purpose,
        /// The agent's process.
        process: Process,
    },
    /// It ended. If the run does not exist yet, it is created and taken for headless.
    Exited(Box<RunExited>),
    /// All runs up to this one are over, including those that were never started.
    Settled {
        /// The last of them.
        run: RunNumber,
    },
}

/// An event without its number, and without the name that its session has when it is stored.
#[derive(Debug, Clone)]
pub struct EventStep {
    /// When it happened.
    pub at: Wall,
    /// The session it is about, if any.
    pub session: Option<SessionId>,
    /// The run it is about, if any.
    pub run: Option<EventRun>,
    /// What happened.
    pub kind: EventKind,
    /// A sentence about it.
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
    /// Its id, which never changes.
    pub id: SessionId,
    /// Its name, which must be free among sessions that are not archived.
    pub name: String,
    /// What the caller knows about it and the core does not: argv, directory, environment, tags.
    pub definition: Value,
    /// The session that it belongs to.
    pub parent: Option<SessionId>,
    /// When it was created.
    pub created_at: Wall,
}

/// What to forget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prune {
    /// What part of the past.
    pub old: Old,
    /// Only what was over before this.
    pub before: Wall,
    /// Why it is forgotten.
    pub reason: Reason,
    /// The time after which no more is begun,
    pub within: Duration,
    /// unless fewer events than this were passed over.
    pub at_least: u64,
}

/// A part of the past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Old {
    /// Events, from the number from which on all exist up to the first that is not old. The newest
    /// [`KEPT_EVENTS`] of each existing session stay.
    Events {
        /// This many of the newest events are never forgotten: the numbering continues from them.
        keep: NonZeroU64,
    },
    /// Runs of a session that is not archived, from the oldest on. The newest [`KEPT_RUNS`] stay.
    Runs {
        /// The id of the session.
        session: SessionId,
    },
    /// Those of these messages that are done, of a session that is not archived. Their keys stay.
    Messages {
        /// The id of the session.
        session: SessionId,
        /// The ids of the messages.
        ids: Vec<Ulid>,
    },
}

/// Why something is forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It is old.
    Age,
    /// There is too much of it.
    Size,
}

/// How much was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// The number of events.
    pub events: u64,
    /// The number of runs.
    pub runs: u64,
    /// The number of messages.
    pub messages: u64,
    /// Whether some of it went because there was too much.
    pub by_size: bool,
}

impl Tally {
    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.events + self.runs + self.messages
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, more: Tally) -> Tally {
        Tally {
            events: self.events + more.events,
            runs: self.runs + more.runs,
            messages: self.messages + more.messages,
            by_size: self.by_size || more.by_size,
        }
    }

    /// Returns what is left after taking `told` off. The reason of size is not carried over.
    #[must_use]
    pub fn minus(self, told: Tally) -> Tally {
        Tally {
            events: self.events.saturating_sub(told.events),
            runs: self.runs.saturating_sub(told.runs),
            messages: self.messages.saturating_sub(told.messages),
            by_size: self.by_size && !told.by_size,
        }
    }
}

/// What was forgotten and not yet reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Untold {
    /// How much was forgotten.
    pub tally: Tally,
    /// When something was last reported.
    pub told_at: Option<Wall>,
}

impl Step {
    /// Returns the session whose state it is about.
    pub(crate) fn session(&self) -> Option<SessionId> {
        match self {
            Step::Create { new, .. } => Some(new.id),
            Step::Update { id, .. }
            | Step::Define { id, .. }
            | Step::Rename { id, .. }
            | Step::Remove { id } => Some(*id),
            Step::Message { session, .. } | Step::Run { session, .. } => Some(*session),
            Step::Cursor(cursor) => Some(cursor.session),
            Step::Spent(spent) => Some(spent.session),
            Step::Files { session, .. } => Some(*session),
            // Forgetting the past changes no state.
            Step::Event(_)
            | Step::Account { .. }
            | Step::Generation { .. }
            | Step::OwnedBy { .. }
            | Step::Prune(_)
            | Step::Told { .. }
            | Step::GiveBack { .. } => None,
            #[cfg(test)]
            Step::Panic => None,
        }
    }
}

/// Returns the message that a change is about.
pub(crate) fn message_of(change: &MessageChange) -> MessageId {
    match change {
        MessageChange::Queued { message, .. }
        | MessageChange::Delivering { message }
        | MessageChange::Taken { message }
        | MessageChange::Requeued { message, .. }
        | MessageChange::Done { message }
        | MessageChange::Failed { message, .. }
        | MessageChange::Retried { message, .. } => *message,
    }
}
