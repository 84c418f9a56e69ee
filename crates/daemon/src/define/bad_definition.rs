//! Why a session cannot be what it is told to be: facts; `show/bad_definition.rs` has the words.

use crate::define::preset::{NotFilled, Protocol};
use pinfold_api::units::NotAQuantity;

/// What is wrong with a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BadDefinition {
    /// No file says what this agent is.
    UnknownAgent { agent: String },
    /// Agent `command` runs what the session names, and it names nothing.
    NoCommand { agent: String },
    /// The agent brings its own command, and the session names one too.
    CommandTwice { agent: String },
    /// An agent with a protocol of its own has no terminal.
    ProtocolOnTerminal { agent: String },
    /// The agent speaks a protocol that this version does not.
    NotSpoken { agent: String, protocol: Protocol },
    /// The agent's command needs what is not known.
    NotFilled { agent: String, why: NotFilled },
    /// The agent runs once for each message, and never gets it.
    NoPlaceForPrompt { agent: String },
    /// A mode that does not exist.
    UnknownMode { word: String },
    /// A way of writing messages that does not exist.
    UnknownInput { word: String },
    /// An end of turns that does not exist.
    UnknownTurns { word: String },
    /// A duration or a size that cannot be read.
    Unit(NotAQuantity),
    /// More tags than a session has.
    TooManyTags { tags: usize, most: usize },
    /// A tag that is too long.
    LongTag { bytes: usize, most: usize },
    /// More variables than a session keeps.
    LargeEnvironment { bytes: usize, most: usize },
    /// What cannot be a variable.
    NotAVariable { name: String },
    /// A variable that only pinfold sets.
    OwnVariable { name: String },
    /// What cannot be the id of a vendor's session.
    NotAVendorSession { id: String },
}
