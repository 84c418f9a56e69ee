//! What pinfold wants to say to an agent, and the bytes that say it.

use crate::label::{LONGEST_LABEL, Label};
use crate::request::RequestId;
use pinfold_core::MessageId;

/// Most bytes that may be said at once: a `said` entry has 16 MiB, its label and a zero byte included.
pub const LONGEST_WORD: usize = (16 << 20) - LONGEST_LABEL - 1;

/// One thing to say to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Intent {
    /// A step of the handshake, as asked for by [`Fold::wants`](crate::Fold::wants).
    Handshake {
        /// The step's number, from 1.
        step: u32,
    },
    /// A message.
    Prompt(Prompt),
    /// The answer to a request.
    Answer(RequestReply),
    /// End the current turn, and keep running.
    Interrupt,
    /// Nothing more will come: close the agent's input.
    Close,
}

/// One delivery of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The message's id.
    pub message: MessageId,
    /// The delivery's number, never used for any other delivery.
    pub delivery: u64,
    /// The number of this attempt at the message, from 1.
    pub attempt: u32,
    /// The message's text.
    pub text: String,
    /// Whether the agent may have seen it before.
    pub repetition: bool,
    /// Paths of the message's files.
    pub files: Vec<String>,
    /// The session that sent it, if any.
    pub from: Option<MessageSender>,
}

/// A session that sent a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageSender {
    /// The sending session's name.
    pub session: String,
    /// Whether the session sent the message to itself.
    pub own: bool,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestReply {
    /// The request that is answered.
    pub request: RequestId,
    /// Yes or no.
    pub verdict: Consent,
    /// What the person adds in words.
    pub words: Option<String>,
    /// Answer all requests of this kind the same way, if the agent offers that.
    pub always: bool,
}

/// Whether an agent may do what it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// It may.
    Allow,
    /// It may not.
    Deny,
}

/// What goes to the shim in one `Say`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Utterance {
    /// What the word is for.
    pub label: Label,
    /// The bytes for the agent's input.
    pub bytes: Vec<u8>,
    /// If set, the shim refuses it when the agent has printed anything after this position.
    pub heard: Option<u64>,
    /// Close the agent's input afterwards.
    pub close: bool,
}

/// Why an intent cannot be said now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CannotSay {
    /// The handshake is not over.
    #[error("the agent is not ready yet")]
    NotReady,
    /// The agent has a message; no agent handles a second one well.
    #[error("the agent has a turn under way")]
    TurnUnderWay,
    /// No turn to interrupt: some agents would cancel the next one instead.
    #[error("the agent has no turn under way")]
    NoTurn,
    /// The handshake does not need this step now.
    #[error("the handshake does not expect this step")]
    NotWanted,
    /// The request was answered, withdrawn, or never made.
    #[error("there is no such request")]
    NoSuchRequest,
    /// The protocol has no word for it.
    #[error("the agent's protocol cannot say this")]
    NotOffered,
    /// The agent's input is closed.
    #[error("the agent's input is closed")]
    Closed,
    /// It does not fit on the tape.
    #[error("it is over {LONGEST_WORD} bytes long")]
    TooLong,
    /// The fold's cursor cannot be read, or the protocol is unknown to this version.
    #[error("what is known of the agent cannot be read by this version")]
    Unknown,
    /// The translator failed.
    #[error("the translator failed")]
    Panicked,
}

impl Intent {
    /// Returns the label under which it is said.
    #[must_use]
    pub fn label(&self) -> Label {
        match self {
            Intent::Handshake { step } => Label::Handshake(*step),
            Intent::Prompt(prompt) => Label::Prompt { message: prompt.message, delivery: prompt.delivery },
            Intent::Answer(reply) => Label::Answer(reply.request),
            Intent::Interrupt => Label::Interrupt,
            Intent::Close => Label::Close,
        }
    }
}
