//! Why a session cannot be what its definition says: facts; `show/bad_definition.rs` has the wording.

use crate::define::preset::{NotFilled, Protocol, VendorIdForm};
use pinfold_api::units::NotAQuantity;

/// What is wrong with a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BadDefinition {
    /// No preset has this name.
    UnknownAgent { agent: String },
    /// Agent `command` runs the session's command, and the session names none.
    NoCommand { agent: String },
    /// The agent has its own command, and the session names one too.
    CommandTwice { agent: String },
    /// An agent with a protocol cannot have a terminal.
    ProtocolOnTerminal { agent: String },
    /// This version does not support the agent's protocol.
    NotSpoken { agent: String, protocol: Protocol },
    /// The agent's command needs something that is not known.
    NotFilled { agent: String, why: NotFilled },
    /// The agent runs once for each message, and its command has no place for the message.
    NoPlaceForPrompt { agent: String },
    /// There is no such mode.
    UnknownMode { word: String },
    /// There is no such way of writing messages.
    UnknownInput { word: String },
    /// There is no such way for turns to end.
    UnknownTurns { word: String },
    /// A text for `contended_if` that no line can have.
    NotPartOfALine { most: usize },
    /// A duration or a size that cannot be read.
    Unit(NotAQuantity),
    /// More tags than a session may have.
    TooManyTags { tags: usize, most: usize },
    /// A tag that is too long.
    LongTag { bytes: usize, most: usize },
    /// A tag with a control character.
    OddTag { tag: String },
    /// More variables than a session may have.
    LargeEnvironment { bytes: usize, most: usize },
    /// Not a valid variable.
    NotAVariable { name: String },
    /// A variable that only pinfold sets.
    OwnVariable { name: String },
    /// Not an id that the agent's vendor makes.
    NotAVendorSession { id: String, form: VendorIdForm },
    /// A record of a worktree that is not as `new --worktree` writes it.
    NotAWorktree { path: String },
    /// The record of a worktree is kept as it was made.
    OtherWorktree,
    /// Running beside a foreign agent, which this version cannot.
    NoBeside,
    /// The beginning of a new conversation and an existing one.
    TwoConversations,
}
