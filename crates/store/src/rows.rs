//! What readers return: rows as they are stored, with their times and ids parsed.

use crate::answer::{BEGINNING, Kept};
use crate::ulid::{RunId, SessionId, Ulid};
use crate::usage::Taken;
use pinfold_core::{EventKind, RunNumber, Session, Wall};
use serde_json::{Map, Value};
use std::str::FromStr;

/// A session as it was loaded.
#[derive(Debug, Clone, PartialEq)]
pub enum Loaded {
    /// All of it.
    Whole(Box<StoredSession>),
    /// A record that cannot be read. The others are not touched by it; it must be shown, never skipped.
    Damaged(DamagedSession),
}

/// Everything stored of one session itself.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSession {
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: String,
    /// What the caller knows of it.
    pub definition: Value,
    /// What the core knows of it.
    pub session: Session,
    /// When it was created.
    pub created_at: Wall,
    /// When it was archived, if it is.
    pub archived_at: Option<Wall>,
    /// The session that it belongs to.
    pub parent: Option<SessionId>,
    /// Its place in lists.
    pub position: i64,
    /// Messages that wait and are not as they were written: they are not delivered.
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

/// A row that is not as it was written. It is named and never shown: all its other fields are empty.
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
    /// This session.
    One(Loaded),
    /// None.
    Nobody,
    /// More than one: id and name of each.
    Several(Vec<(String, String)>),
}

/// Where a message is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageState {
    /// It waits, or the agent has not taken it yet.
    Queued,
    /// The agent took it.
    Delivered,
    /// Its turn has ended, and its answer is stored.
    Done,
    /// It will not be delivered again by itself.
    Failed,
}

impl MessageState {
    /// The word of the contract.
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

/// A word that is no state of a message.
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

/// Where the output of a turn stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnPlace {
    /// The run that has the turn.
    pub run: RunNumber,
    /// The position in the session's log where it begins.
    pub from: u64,
    /// Where it ends, once it has.
    pub to: Option<u64>,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: Ulid,
    /// Whose it is.
    pub session: SessionId,
    /// Its sender's dedupe key.
    pub key: Option<String>,
    /// The session that sent it; nothing where a person did.
    pub from: Option<String>,
    /// Its text.
    pub text: String,
    /// Where it is on its way.
    pub state: MessageState,
    /// Turns that it has begun and that counted.
    pub tries: u32,
    /// When it was queued.
    pub enqueued_at: Wall,
    /// When it was done or failed.
    pub done_at: Option<Wall>,
    /// Its answer, or the beginning of it; see [`Kept`].
    pub answer: Option<String>,
    /// How the answer is kept.
    pub kept: Kept,
    /// What its turns took, where that was told.
    pub taken: Option<Taken>,
    /// The files that it was sent with.
    pub files: Vec<String>,
    /// Why it failed: the word of its event, and behind `: ` the reason where one is known.
    pub failure: Option<String>,
    /// Where the output of its last turn stands.
    pub place: Option<TurnPlace>,
    /// It is not as it was written; then nothing else in here counts.
    pub damage: Option<RowDamage>,
}

impl Message {
    /// Whether all of its answer is here: only of a long one the row may have the beginning alone.
    #[must_use]
    pub fn has_short_answer(&self) -> bool {
        // A character that would not fit is not in the beginning.
        self.answer.as_ref().is_none_or(|answer| answer.len() + 4 <= BEGINNING)
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Whose it is.
    pub session: SessionId,
    /// Its number.
    pub number: RunNumber,
    /// Its id; none for a run that only its end told of.
    pub id: Option<RunId>,
    /// `headless` or `interactive`.
    pub purpose: String,
    /// The pid of its agent.
    pub pid: Option<u32>,
    /// The fence of its session lock.
    pub fence: Option<u64>,
    /// When it was seen to run; none for one that came to nothing.
    pub started_at: Option<Wall>,
    /// When its end was settled.
    pub ended_at: Option<Wall>,
    /// Its exit code.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// The verdict on its end, in the contract's word.
    pub verdict: Option<String>,
    /// How long it lived, in milliseconds.
    pub lived_ms: Option<u64>,
    /// SIGKILL was needed.
    pub forced: bool,
    /// It is not as it was written; then nothing else in here counts.
    pub damage: Option<RowDamage>,
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its number: grows without gaps. Events that were forgotten leave gaps below [`Complete::seq`].
    pub seq: u64,
    /// When.
    pub at: Wall,
    /// The id of its session, which may have been removed since.
    pub session: Option<SessionId>,
    /// The name of its session, as it was.
    pub name: Option<String>,
    /// The id of its run.
    pub run: Option<String>,
    /// What happened.
    pub kind: EventKind,
    /// A sentence.
    pub why: String,
    /// The fields of its kind.
    pub data: Map<String, Value>,
    /// It is not as it was written; then nothing else in here counts.
    pub damage: Option<RowDamage>,
}

/// From where on no event was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Complete {
    /// From this number on all of them are there; of those before it only some are.
    pub seq: u64,
    /// When that one was.
    pub at: Wall,
}

/// The dedupe key of a message that was forgotten: it stands for that message for as long as its session is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpentKey {
    /// The key.
    pub key: String,
    /// The message that had it, and was done.
    pub message: Ulid,
    /// When that was queued.
    pub enqueued_at: Wall,
    /// When it was done.
    pub done_at: Option<Wall>,
}

/// How far the tape of a session was folded, and all that was known then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// Whose it is; a session has one at most.
    pub session: SessionId,
    /// The run that it is about.
    pub run: RunNumber,
    /// The highest position of its tape that was ever folded.
    pub position: u64,
    /// What is known of the run, in the words of whoever folds.
    pub state: String,
}

/// What is known of the daemons that used this store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Meta {
    /// The generation of the last one; 0 before the first.
    pub generation: u64,
    /// The boot in which it started.
    pub boot_id: Option<String>,
    /// The version of the program that wrote it last.
    pub program: Option<String>,
}
