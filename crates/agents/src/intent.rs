//! What pinfold means to say to an agent, and the bytes that say it.

use crate::label::{LONGEST_LABEL, Label};
use crate::request::RequestId;
use pinfold_core::MessageId;

/// So many bytes may be said at once: a `said` entry has 16 MiB, its label and a zero byte included.
pub const LONGEST_WORD: usize = (16 << 20) - LONGEST_LABEL - 1;

/// One thing to say to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Intent {
    /// A step of the handshake, as [`Fold::wants`](crate::Fold::wants) says.
    Handshake {
        /// Which, from 1.
        step: u32,
    },
    /// A message.
    Prompt(Prompt),
    /// The answer to a request.
    Answer(Reply),
    /// End the turn under way, and live on.
    Interrupt,
    /// There is nothing more to come: its input is closed.
    Close,
}

/// One delivery of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Which message.
    pub message: MessageId,
    /// The number of this delivery: never used for another one, of this message or any.
    pub delivery: u64,
    /// The how manieth try of the message, from 1.
    pub attempt: u32,
    /// What it says.
    pub text: String,
    /// Whether the agent may have seen it before.
    pub repetition: bool,
    /// Paths of files that belong to it.
    pub files: Vec<String>,
    /// The session that sent it, if one did.
    pub from: Option<Sender>,
}

/// A session that sent a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sender {
    /// Its name.
    pub session: String,
    /// Whether it is the session that reads it.
    pub own: bool,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// To which.
    pub request: RequestId,
    /// Yes or no.
    pub verdict: Verdict,
    /// What a person says besides.
    pub words: Option<String>,
    /// The same for all requests of this kind, where the agent offers that.
    pub always: bool,
}

/// Whether an agent may do what it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Allow,
    /// It may not.
    Deny,
}

/// What goes to the shim in one `Say`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Utterance {
    /// What it is for.
    pub label: Label,
    /// What is written to the agent's input.
    pub bytes: Vec<u8>,
    /// Refuse it if the agent printed anything after this position.
    pub heard: Option<u64>,
    /// Close the agent's input after it.
    pub close: bool,
}

/// Why an intent cannot be said now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CannotSay {
    /// The handshake is not over.
    #[error("the agent is not ready yet")]
    NotReady,
    /// It has a message; no agent treats a second one well.
    #[error("the agent has a turn under way")]
    TurnUnderWay,
    /// There is no turn to interrupt: some agents would cancel the next one instead.
    #[error("the agent has no turn under way")]
    NoTurn,
    /// Nothing wants this step of the handshake now.
    #[error("the handshake does not expect this step")]
    NotWanted,
    /// The request was answered, withdrawn, or never made.
    #[error("there is no such request")]
    NoSuchRequest,
    /// The protocol has no word for it.
    #[error("the agent's protocol cannot say this")]
    NotOffered,
    /// Its input is closed.
    #[error("the agent's input is closed")]
    Closed,
    /// It does not fit on the tape.
    #[error("it is over {LONGEST_WORD} bytes long")]
    TooLong,
    /// What the fold knew cannot be read, or its protocol is not known.
    #[error("what is known of the agent cannot be read by this version")]
    Unknown,
    /// The translator failed.
    #[error("the translator failed")]
    Panicked,
}

impl Intent {
    /// The label under which it is said.
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
