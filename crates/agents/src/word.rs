//! What translators tell the ledger: what a line means, before it is known whether it counts.

use crate::intent::Intent;
use crate::note::LogNote;
use crate::observation::{LimitStatus, SessionRefused};
use crate::request::RequestKind;
use crate::turn::{TurnFailure, Usage};
use pinfold_core::MessageId;
use serde::{Deserialize, Serialize};

/// One thing that an agent said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AgentWord {
    /// The handshake is over.
    Ready,
    /// The protocol needs something said.
    Want(Want),
    /// The agent has the prompt of this number.
    Taken(u64),
    /// A turn began.
    Began(NamedTurn),
    /// A turn ended.
    Ended(ReportedEnd),
    /// The turn of this number ended, unless the named id belongs to this session.
    InDoubt { number: u64, named: MessageId, text: AnswerText },
    /// More of the answer.
    More(String),
    /// The answer so far, replacing the earlier text.
    Anew(String),
    /// The agent asks a person.
    Asks(RawRequest),
    /// The agent withdraws a request.
    TakesBack(String),
    /// The id of the vendor session.
    Session(String),
    /// The vendor does not open its session.
    SessionRefused(SessionRefused),
    /// Something about a usage limit.
    Limit(LimitStatus),
    /// A person has to log in.
    Login(String),
    /// Whether work of its own is under way.
    Work(bool),
    /// Something for the log.
    Note(LogNote),
}

/// What a protocol by itself needs said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Want {
    /// A step of the handshake.
    Handshake(u32),
    /// An interrupt of a turn that already counts as ended.
    Interrupt,
    /// The end of input, for an agent with which the handshake failed.
    Close,
}

impl Want {
    pub(crate) fn intent(self) -> Intent {
        match self {
            Want::Handshake(step) => Intent::Handshake { step },
            Want::Interrupt => Intent::Interrupt,
            Want::Close => Intent::Close,
        }
    }
}

/// The turn that an agent means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedTurn {
    /// The turn of the prompt of this number.
    Number(u64),
    /// A turn that is not one of ours.
    Own,
}

/// The end of a turn, as the agent reports it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReportedEnd {
    pub(crate) turn: NamedTurn,
    pub(crate) how: How,
    /// The answer, if it did not come as [`AgentWord::More`].
    pub(crate) text: Option<AnswerText>,
    pub(crate) usage: Option<Usage>,
}

/// How a turn ended, in the agent's view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum How {
    Done,
    Failed(TurnFailure),
    Cancelled,
}

/// The text of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnswerText {
    pub(crate) text: String,
    pub(crate) whole: bool,
}

/// A request, in the agent's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawRequest {
    /// The request's id in the protocol, by which it is answered and taken back.
    pub(crate) key: String,
    pub(crate) kind: RequestKind,
    pub(crate) title: String,
    pub(crate) detail: Option<String>,
    pub(crate) raw: String,
}
