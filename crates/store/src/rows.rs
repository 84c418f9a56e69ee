//! What readers return: rows as they are stored, with their times and ids parsed.

use crate::answer::{AnswerKept, BEGINNING};
use crate::ulid::{RunId, SessionId, Ulid};
use crate::usage::Taken;
use pinfold_core::{EventKind, RunNumber, Session, Wall};
use serde_json::{Map, Value};
use std::str::FromStr;

/// A session as it was loaded.
#[derive(Debug, Clone, PartialEq)]
pub enum Loaded {
    /// The complete session.
    Whole(Box<StoredSession>),
    /// A record that cannot be read. It does not affect the others; it must be shown, never skipped.
    Damaged(DamagedSession),
}

/// Everything stored about one session itself.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSession {
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: String,
    /// What the caller knows about it.
    pub definition: Value,
    /// What the core knows about it.
    pub session: Session,
    /// When it was created.
    pub created_at: Wall,
    /// When it was archived, if it was.
    pub archived_at: Option<Wall>,
    /// The session that it belongs to.
    pub parent: Option<SessionId>,
    /// Its place in lists.
    pub position: i64,
    /// How many waiting messages were altered since they were written; they are not delivered.
    pub damaged: u64,
}

/// A session whose record cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedSession {
    /// Its id, as it is stored.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What is wrong, in words.
    pub problem: String,
}

/// A row that was altered since it was written. It is named but never shown: all its other fields are empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowDamage {
    /// Its id or number, as it is stored.
    pub id: String,
    /// What is wrong, in words.
    pub problem: String,
}

/// What a name or the beginning of an id stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum Lookup {
    /// Exactly one session.
    One(Loaded),
    /// No session.
    Nobody,
    /// More than one session: id and name of each.
    Several(Vec<(String, String)>),
}

/// How far a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageState {
    /// It waits, or the agent has not taken it yet.
    Queued,
    /// The agent has taken it.
    Delivered,
    /// Its turn has ended, and its answer is stored.
    Done,
    /// It will not be delivered again unless a person asks.
    Failed,
}

impl MessageState {
    /// Returns the word of the contract.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            MessageState::Queued => "queued",
            MessageState::Delivered => "delivered",
            MessageState::Done => "done",
            MessageState::Failed => "failed",
        }
    }
}

/// A word that is not a state of a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not a state of a message")]
pub struct UnknownMessageState {
    found: String,
}

impl FromStr for MessageState {
    type Err = UnknownMessageState;

    fn from_str(word: &str) -> Result<MessageState, UnknownMessageState> {
        use MessageState::{Delivered, Done, Failed, Queued};
        [Queued, Delivered, Done, Failed]
            .into_iter()
            .find(|state| state.word() == word)
            .ok_or_else(|| UnknownMessageState { found: word.to_owned() })
    }
}

/// Where the output of a turn is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnPlace {
    /// The run that has the turn.
    pub run: RunNumber,
    /// The position in the session's log where it begins.
    pub from: u64,
    /// Where it ends, once the turn has ended.
    pub to: Option<u64>,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: Ulid,
    /// The session it was sent to.
    pub session: SessionId,
    /// Its sender's dedupe key.
    pub key: Option<String>,
    /// The session that sent it; `None` if a person did.
    pub from: Option<String>,
    /// Its text.
    pub text: String,
    /// How far it has come.
    pub state: MessageState,
    /// Turns it has begun that counted as a try.
    pub tries: u32,
    /// When it was queued.
    pub enqueued_at: Wall,
    /// When it was done or failed.
    pub done_at: Option<Wall>,
    /// Its answer, or the beginning of it; see [`AnswerKept`].
    pub answer: Option<String>,
    /// How the answer is kept.
    pub kept: AnswerKept,
    /// What its turns used, if that was reported.
    pub taken: Option<Taken>,
    /// The files it was sent with.
    pub files: Vec<String>,
    /// Why it failed: the word of its event and, after `: `, the reason if one is known.
    pub failure: Option<String>,
    /// Where the output of its last turn is.
    pub place: Option<TurnPlace>,
    /// Set if it was altered since it was written; then nothing else in here counts.
    pub damage: Option<RowDamage>,
}

impl Message {
    /// Whether the whole answer is here: only of a long one may the row hold just the beginning.
    #[must_use]
    pub fn has_short_answer(&self) -> bool {
        // The beginning leaves out a character that would not fit.
        self.answer.as_ref().is_none_or(|answer| answer.len() + 4 <= BEGINNING)
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRun {
    /// The session it belongs to.
    pub session: SessionId,
    /// Its number.
    pub number: RunNumber,
    /// Its id; `None` for a run that is known only from its end.
    pub id: Option<RunId>,
    /// `headless` or `interactive`.
    pub purpose: String,
    /// The pid of its agent.
    pub pid: Option<u32>,
    /// The fence of its session lock.
    pub fence: Option<u64>,
    /// When it was known to run; `None` if it was never started.
    pub started_at: Option<Wall>,
    /// When its end was settled.
    pub ended_at: Option<Wall>,
    /// Its exit code.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// The verdict on its end, as the word of the contract.
    pub verdict: Option<String>,
    /// How long it lived, in milliseconds.
    pub lived_ms: Option<u64>,
    /// Whether SIGKILL was needed.
    pub forced: bool,
    /// Set if it was altered since it was written; then nothing else in here counts.
    pub damage: Option<RowDamage>,
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent {
    /// Its number, which grows without gaps. Forgotten events leave gaps below [`CompleteFrom::seq`].
    pub seq: u64,
    /// When it happened.
    pub at: Wall,
    /// The id of its session, which may have been removed since.
    pub session: Option<SessionId>,
    /// The name of its session at the time.
    pub name: Option<String>,
    /// The id of its run.
    pub run: Option<String>,
    /// What happened.
    pub kind: EventKind,
    /// A sentence about it.
    pub why: String,
    /// The fields of its kind.
    pub data: Map<String, Value>,
    /// Set if it was altered since it was written; then nothing else in here counts.
    pub damage: Option<RowDamage>,
}

/// From where on no event was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompleteFrom {
    /// From this number on all events exist; of those before it only some do.
    pub seq: u64,
    /// When that event happened.
    pub at: Wall,
}

/// The dedupe key of a message that was forgotten: it stands for that message as long as its session exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpentKey {
    /// The key.
    pub key: String,
    /// The message that had it and was done.
    pub message: Ulid,
    /// When the message was queued.
    pub enqueued_at: Wall,
    /// When the message was done.
    pub done_at: Option<Wall>,
}

/// How far the tape of a session was folded, and everything known at that point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// The session; it has at most one cursor.
    pub session: SessionId,
    /// The run that it is about.
    pub run: RunNumber,
    /// The highest position of its tape that was ever folded.
    pub position: u64,
    /// What is known about the run, in the format of the code that folds.
    pub state: String,
}

/// What is known about the daemons that used this store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Meta {
    /// The generation of the last daemon; 0 before the first.
    pub generation: u64,
    /// The boot in which that daemon started.
    pub boot_id: Option<String>,
    /// The version of the program that wrote it last.
    pub program: Option<String>,
}
