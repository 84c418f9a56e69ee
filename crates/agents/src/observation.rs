//! What a tape says of an agent: the vocabulary into which all protocols are translated.

use crate::intent::Intent;
use crate::note::LogNote;
use crate::request::{Request, RequestId};
use crate::turn::{Delivery, TurnAnswer, TurnOutcome, TurnOwner, Usage};
use pinfold_core::{MessageId, Wall};
use serde::{Deserialize, Serialize};

/// One thing that became known.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// The agent can be given messages.
    Ready,
    /// The agent has a delivery: its protocol proves it or, where it cannot, the delivery was written.
    Taken(Delivery),
    /// A turn began.
    TurnBegan(TurnOwner),
    /// A turn ended. Each delivery ends once; an end that names none of ours is the agent's own turn.
    TurnEnded {
        /// Whose turn it was.
        turn: TurnOwner,
        /// How it ended.
        outcome: TurnOutcome,
        /// The answer, if there is one.
        answer: Option<TurnAnswer>,
        /// What the turn cost, if known.
        usage: Option<Usage>,
    },
    /// The agent says that a turn ended, and names a message that is not in flight. Only the engine knows
    /// whether that message belongs to this session; if not, the id is part of the answer, and the current
    /// turn is over.
    EndInDoubt {
        /// The current turn.
        turn: Delivery,
        /// The id that was named.
        named: MessageId,
        /// The answer, including the id.
        answer: TurnAnswer,
    },
    /// A part of a long answer, so that none has to be kept whole. It replaces the answer from `offset` on.
    AnswerPart {
        /// Offset in the answer of the current turn, in bytes.
        offset: u64,
        /// The part's text.
        text: String,
    },
    /// The agent asks a person.
    RequestOpened(Request),
    /// No answer is needed any more: the request was taken back, or its turn ended.
    RequestWithdrawn(RequestId),
    /// What the agent is doing now.
    Activity(Activity),
    /// The id of the vendor's session.
    VendorSession {
        /// The id now.
        id: String,
        /// The id before, if it has changed.
        before: Option<String>,
    },
    /// The vendor does not open the session that was named at the start.
    VendorSessionRefused(SessionRefused),
    /// Something about a usage limit.
    Limit(LimitStatus),
    /// The agent needs a person to log in.
    LoginNeeded {
        /// The agent's own words.
        text: String,
    },
    /// Whether the agent does work of its own, which outlives turns.
    OwnWork {
        /// Whether such work is under way.
        under_way: bool,
    },
    /// The protocol needs this said next; [`Fold::wants`](crate::Fold::wants) repeats it until it was.
    Wants(Intent),
    /// Something for the log.
    Note(LogNote),
}

/// What an agent is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Working on a turn, or on something of its own.
    Working,
    /// Waiting for a person.
    Waiting,
    /// Nothing to do.
    Idle,
    /// The account has reached a limit, or has no login.
    Limited,
    /// The agent does not say.
    #[default]
    Unknown,
}

/// Why a vendor does not open a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionRefused {
    /// Another process has it.
    Busy,
    /// No session has this id.
    Unknown,
}

/// Why an agent was told to leave before it was ready: the handshake failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GaveUp {
    /// The agent does not know the session that it was to resume.
    UnknownSession,
    /// The agent wants a login first.
    Login,
    /// Any other refusal.
    Refused,
}

/// What is known of a usage limit.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitStatus {
    /// How near it is.
    pub reach: LimitReach,
    /// When it resets.
    pub until: Option<Wall>,
    /// The limit, in the vendor's word: `five_hour`.
    pub window: Option<String>,
    /// The used share, from 0 to 1.
    pub used: Option<f64>,
}

/// How near a limit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitReach {
    /// The vendor refuses work.
    Reached,
    /// The vendor warns that the limit is near.
    Near,
    /// The vendor accepts work.
    Off,
}
