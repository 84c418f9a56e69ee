//! The changes that a store knows, as plain data: what a back-end is told, and all that it is told.

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
    /// Another name for a session; unless it is archived, that must be free.
    Rename {
        /// Which session.
        id: SessionId,
        /// Its name from now on.
        name: String,
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
        /// What else is known of the answer to one that is done.
        told: AnswerTold,
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
    /// The tape of a session was folded so far; it takes the place of an earlier one.
    Cursor(Box<Cursor>),
    /// A turn took this much.
    Spent(Box<Spent>),
    /// The files that a message was sent with; the message is there already.
    Files {
        /// Whose message it is.
        session: SessionId,
        /// The id of the message.
        message: MessageId,
        /// Their paths.
        paths: Vec<String>,
    },
    /// What is known of an account; it takes the place of what was.
    Account {
        /// Its name.
        name: String,
        /// All of it, as JSON.
        state: String,
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
    /// Some of the past goes: at most [`PRUNE_AT_ONCE`] rows, and no more once the time for it is up.
    Prune(Prune),
    /// So much of what was forgotten has been told in an event, at this moment.
    Told {
        /// When.
        at: Wall,
        /// How much.
        tally: Tally,
    },
    /// Unused room at the end of the file goes back to the file system, as much as the time allows.
    GiveBack {
        /// The time after which no more is begun.
        within: Duration,
    },
    /// Has the writer die.
    #[cfg(test)]
    Panic,
}

/// How much one step looks at, at most: more would keep the others waiting.
pub const PRUNE_AT_ONCE: u64 = 500;
/// Of each session that is there so many of the newest events stay, however old they are.
pub const KEPT_EVENTS: u64 = 100;
/// Of each session so many of the newest runs stay.
pub const KEPT_RUNS: u64 = 10;
/// A step that takes longer than this keeps others waiting, who wait for its commit as well: that takes as long again, or twice. What
/// it does not get to is left for the next one.
pub const PRUNE_WITHIN: Duration = Duration::from_millis(1);

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

/// What to forget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prune {
    /// Of what.
    pub old: Old,
    /// Only what was over before this.
    pub before: Wall,
    /// Why it goes.
    pub reason: Reason,
    /// The time after which no more of it is begun,
    pub within: Duration,
    /// unless fewer events than this were passed over.
    pub at_least: u64,
}

/// What there is of the past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Old {
    /// Events, from the number on from which everything is there, up to the first that is not old. The newest
    /// [`KEPT_EVENTS`] of each session that is there stay.
    Events {
        /// Never the newest so many of all: the numbering goes on from them.
        keep: NonZeroU64,
    },
    /// Runs of a session that is not archived, from the oldest on. The newest [`KEPT_RUNS`] stay.
    Runs {
        /// Which session.
        session: SessionId,
    },
    /// Messages of a session that is not archived, those of these that are done. Their keys stay.
    Messages {
        /// Which session.
        session: SessionId,
        /// Which messages.
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
    /// Events.
    pub events: u64,
    /// Runs.
    pub runs: u64,
    /// Messages.
    pub messages: u64,
    /// Some of it because there was too much.
    pub by_size: bool,
}

impl Tally {
    /// How many rows that is.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.events + self.runs + self.messages
    }

    /// With as much more.
    #[must_use]
    pub fn plus(self, more: Tally) -> Tally {
        Tally {
            events: self.events + more.events,
            runs: self.runs + more.runs,
            messages: self.messages + more.messages,
            by_size: self.by_size || more.by_size,
        }
    }

    /// What is left without these. Of what is left nothing is known to be there because of its size.
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

/// What was forgotten and not told yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Untold {
    /// How much.
    pub tally: Tally,
    /// When something was told the last time.
    pub told_at: Option<Wall>,
}

impl Step {
    /// The session whose state it is about.
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
