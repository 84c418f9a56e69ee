//! What translators say to the ledger: what a line means, before it is known whether it counts.

use crate::intent::Intent;
use crate::note::Note;
use crate::observation::{Limit, SessionRefused};
use crate::request::RequestKind;
use crate::turn::{Failure, Usage};
use pinfold_core::MessageId;
use serde::{Deserialize, Serialize};

/// One thing that an agent said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Word {
    /// The handshake is over.
    Ready,
    /// The protocol needs something said.
    Want(Want),
    /// It has the prompt of this number.
    Taken(u64),
    /// A turn began.
    Began(Named),
    /// A turn ended.
    Ended(End),
    /// The turn of this number ended, unless the id that is named is one of this session.
    InDoubt { number: u64, named: MessageId, text: Text },
    /// More of the answer.
    More(String),
    /// The answer so far, in place of what was there.
    Anew(String),
    /// It asks a person.
    Asks(Ask),
    /// It does not ask any more.
    TakesBack(String),
    /// The id of the vendor session.
    Session(String),
    /// The vendor does not open its session.
    SessionRefused(SessionRefused),
    /// Something about a usage limit.
    Limit(Limit),
    /// Somebody has to log in.
    Login(String),
    /// Whether work of its own is under way.
    Work(bool),
    /// Something for the log.
    Note(Note),
}

/// What a protocol needs to be said, by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Want {
    /// A step of the handshake.
    Handshake(u32),
    /// The end of a turn that counts as ended already.
    Interrupt,
    /// The end of an agent with which no handshake can be made.
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

/// Which turn an agent means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    /// That of the prompt of this number.
    Number(u64),
    /// None of ours.
    Own,
}

/// The end of a turn, as the agent says it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct End {
    pub(crate) turn: Named,
    pub(crate) how: How,
    /// The answer, if it is not what came as [`Word::More`].
    pub(crate) text: Option<Text>,
    pub(crate) usage: Option<Usage>,
}

/// How a turn ended, in the agent's view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum How {
    Done,
    Failed(Failure),
    Cancelled,
}

/// The text of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) whole: bool,
}

/// A request, in the agent's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ask {
    /// Its id in the protocol, by which it is answered and taken back.
    pub(crate) key: String,
    pub(crate) kind: RequestKind,
    pub(crate) title: String,
    pub(crate) detail: Option<String>,
    pub(crate) raw: String,
}
