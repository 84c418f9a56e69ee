//! What is known of an agent from its tape: the words that all protocols are translated into.

use crate::intent::Intent;
use crate::note::Note;
use crate::request::{Request, RequestId};
use crate::turn::{Answer, Delivery, Outcome, Turn, Usage};
use pinfold_core::{MessageId, Wall};
use serde::{Deserialize, Serialize};

/// One thing that became known.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// The agent can be given messages.
    Ready,
    /// The agent has a delivery: its protocol proves it, or, where none does, it was written.
    Taken(Delivery),
    /// A turn began.
    TurnBegan(Turn),
    /// A turn ended. Each delivery ends once; an end that names none of ours is the agent's own turn.
    TurnEnded {
        /// Whose.
        turn: Turn,
        /// How.
        outcome: Outcome,
        /// What came of it.
        answer: Option<Answer>,
        /// What it cost.
        usage: Option<Usage>,
    },
    /// The agent says that a turn ended, and names a message that is not in flight. Only the engine knows whether it is one
    /// of this session: if not, the id is part of the answer, and the turn under way is over.
    EndInDoubt {
        /// The turn under way.
        turn: Delivery,
        /// The id that was named.
        named: MessageId,
        /// What it said, the id included.
        answer: Answer,
    },
    /// A part of a long answer, so that none has to be kept whole: what was there from `offset` on is replaced by it.
    AnswerPart {
        /// Where in the answer of the turn under way.
        offset: u64,
        /// The text.
        text: String,
    },
    /// The agent asks a person.
    RequestOpened(Request),
    /// Nobody needs to answer any more: it was taken back, or its turn ended.
    RequestWithdrawn(RequestId),
    /// What the agent is doing now.
    Activity(Activity),
    /// The id of the vendor's session.
    VendorSession {
        /// What it is now.
        id: String,
        /// What it was, if it has changed.
        before: Option<String>,
    },
    /// The vendor does not open the session that was named at the start.
    VendorSessionRefused(SessionRefused),
    /// Something about a usage limit.
    Limit(Limit),
    /// The agent needs somebody to log in.
    LoginNeeded {
        /// Its own words.
        text: String,
    },
    /// Whether work of the agent's own is under way, which outlives turns.
    OwnWork {
        /// Whether it is.
        under_way: bool,
    },
    /// The protocol needs this to be said next; [`Fold::wants`](crate::Fold::wants) says so until it was.
    Wants(Intent),
    /// Something for the log.
    Note(Note),
}

/// What an agent is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// It works on a turn, or on something of its own.
    Working,
    /// It waits for a person.
    Waiting,
    /// It has nothing to do.
    Idle,
    /// Its account has met a limit, or has no login.
    Limited,
    /// Nothing tells.
    #[default]
    Unknown,
}

/// Why a vendor does not open a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionRefused {
    /// Another process has it.
    Busy,
    /// There is none of this id.
    Unknown,
}

/// Why an agent was told to leave before it was ready: no handshake could be made with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GaveUp {
    /// It knows no session of the id that it was to go on with.
    UnknownSession,
    /// It wants a login first.
    Login,
    /// Anything else.
    Refused,
}

/// What is known of a usage limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// How near it is.
    pub reach: Reach,
    /// When it resets.
    pub until: Option<Wall>,
    /// Which limit, in the vendor's word: `five_hour`.
    pub window: Option<String>,
    /// How much of it is used, as a part of one.
    pub used: Option<f64>,
}

/// How near a limit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// The vendor refuses work.
    Reached,
    /// The vendor warns.
    Near,
    /// The vendor works.
    Off,
}
