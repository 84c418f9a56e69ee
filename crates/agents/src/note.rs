//! What a fold reports to the readers of the log.

use crate::message_word;
use pinfold_core::MessageId;
use std::fmt;

/// Something for the log. There are at most 16 of each kind in a run: an agent may print nothing but
/// nonsense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogNote {
    /// A line is not of the protocol.
    Garbage {
        /// The line's beginning.
        begins: String,
    },
    /// An end of a turn that is not under way.
    LateEnd {
        /// What the agent named.
        named: String,
    },
    /// An end of a turn while none was under way.
    StrayEnd {
        /// The message that it names, if any.
        named: Option<MessageId>,
    },
    /// A result without work that names no command of ours; it ends nothing.
    EmptyEnd,
    /// A request that cannot be kept.
    RequestDropped {
        /// Why it cannot be kept.
        why: &'static str,
    },
    /// A vendor session id that cannot be valid.
    OddSession,
    /// A line was over the limit and was skipped.
    LineTooLong,
    /// Output is missing on the tape.
    Gap {
        /// Number of lost bytes, if known.
        lost: Option<u64>,
    },
    /// The translator failed at a line, and goes on with the next one.
    Panicked {
        /// The panic's text.
        text: String,
    },
    /// The fold's cursor cannot be read: nothing is concluded from this run.
    Unknown {
        /// Why it cannot be read.
        why: String,
    },
    /// The agent's own words.
    Agent {
        /// What the agent said.
        text: String,
    },
}

/// Most notes of one kind in a run.
pub(crate) const MOST: u8 = 16;

/// Longest text of the agent's in a note, in bytes.
const LONGEST: usize = 200;

impl LogNote {
    /// Makes the note for a line that is not of the protocol.
    pub(crate) fn garbage(line: &[u8]) -> LogNote {
        let begins = String::from_utf8_lossy(&line[..line.len().min(LONGEST)]);
        LogNote::Garbage { begins: short(&begins, LONGEST) }
    }

    /// Returns the kind by which notes are counted.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            LogNote::Garbage { .. } => "garbage",
            LogNote::LateEnd { .. } => "late_end",
            LogNote::StrayEnd { .. } => "stray_end",
            LogNote::EmptyEnd => "empty_end",
            LogNote::RequestDropped { .. } => "request_dropped",
            LogNote::OddSession => "odd_session",
            LogNote::LineTooLong => "line_too_long",
            LogNote::Gap { .. } => "gap",
            LogNote::Panicked { .. } => "panicked",
            LogNote::Unknown { .. } => "unknown",
            LogNote::Agent { .. } => "agent",
        }
    }
}

/// Cuts a text to at most `most` bytes.
pub(crate) fn short(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}

impl fmt::Display for LogNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogNote::Garbage { begins } => write!(f, "a line is not of the agent's protocol: {begins:?}"),
            LogNote::LateEnd { named } => {
                write!(f, "the agent ended the turn {named:?}, which is not under way: ignored")
            }
            LogNote::StrayEnd { named: None } => {
                f.write_str("the agent ended a turn while none was under way")
            }
            LogNote::StrayEnd { named: Some(id) } => {
                write!(f, "the agent ended message {} while no turn was under way", message_word::of(*id))
            }
            LogNote::EmptyEnd => {
                f.write_str("a result without work names no command of ours: it ends nothing")
            }
            LogNote::RequestDropped { why } => write!(f, "a request of the agent was dropped: {why}"),
            LogNote::OddSession => {
                f.write_str("the agent named a vendor session that cannot be one: ignored")
            }
            LogNote::LineTooLong => f.write_str("a line of output was too long, and passed over"),
            LogNote::Gap { lost: Some(lost) } => write!(f, "{lost} bytes of output are missing"),
            LogNote::Gap { lost: None } => f.write_str("output is missing"),
            LogNote::Panicked { text } => write!(f, "the translator failed at a line: {text}"),
            LogNote::Unknown { why } => write!(f, "nothing is concluded from what this run prints: {why}"),
            LogNote::Agent { text } => write!(f, "the agent says: {text}"),
        }
    }
}
