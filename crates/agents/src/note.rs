//! What a fold has to say to whoever reads the log.

use crate::message_word;
use pinfold_core::MessageId;
use std::fmt;

/// Something for the log. There are at most 16 of each kind in a run: an agent may print nothing but nonsense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A line is not of the protocol.
    Garbage {
        /// Its beginning.
        begins: String,
    },
    /// An end of a turn that is not under way.
    LateEnd {
        /// What the agent named.
        named: String,
    },
    /// An end of a turn while none was under way.
    StrayEnd {
        /// The message that it names.
        named: Option<MessageId>,
    },
    /// A result without work that names no command of ours: it ends nothing.
    EmptyEnd,
    /// A request that cannot be kept.
    RequestDropped {
        /// Why.
        why: &'static str,
    },
    /// An id of a vendor session that cannot be one.
    OddSession,
    /// A line was over the bound, and passed over.
    LineTooLong,
    /// Output is missing on the tape.
    Gap {
        /// How many bytes, where that is known.
        lost: Option<u64>,
    },
    /// The translator failed at a line, and goes on with the next one.
    Panicked {
        /// What it said.
        text: String,
    },
    /// What was known cannot be read: nothing is concluded from this run.
    Unknown {
        /// Why.
        why: String,
    },
    /// The agent's own words.
    Agent {
        /// What it said.
        text: String,
    },
}

/// So many notes of a kind are told in a run.
pub(crate) const MOST: u8 = 16;

/// So much of a text of the agent's is in a note.
const LONGEST: usize = 200;

impl Note {
    /// A line that is not of the protocol.
    pub(crate) fn garbage(line: &[u8]) -> Note {
        let begins = String::from_utf8_lossy(&line[..line.len().min(LONGEST)]);
        Note::Garbage { begins: short(&begins, LONGEST) }
    }

    /// What counts together.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Note::Garbage { .. } => "garbage",
            Note::LateEnd { .. } => "late_end",
            Note::StrayEnd { .. } => "stray_end",
            Note::EmptyEnd => "empty_end",
            Note::RequestDropped { .. } => "request_dropped",
            Note::OddSession => "odd_session",
            Note::LineTooLong => "line_too_long",
            Note::Gap { .. } => "gap",
            Note::Panicked { .. } => "panicked",
            Note::Unknown { .. } => "unknown",
            Note::Agent { .. } => "agent",
        }
    }
}

/// As much of a text as fits.
pub(crate) fn short(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Garbage { begins } => write!(f, "a line is not of the agent's protocol: {begins:?}"),
            Note::LateEnd { named } => {
                write!(f, "the agent ended the turn {named:?}, which is not under way: ignored")
            }
            Note::StrayEnd { named: None } => f.write_str("the agent ended a turn while none was under way"),
            Note::StrayEnd { named: Some(id) } => {
                write!(f, "the agent ended message {} while no turn was under way", message_word::of(*id))
            }
            Note::EmptyEnd => f.write_str("a result without work names no command of ours: it ends nothing"),
            Note::RequestDropped { why } => write!(f, "a request of the agent was dropped: {why}"),
            Note::OddSession => f.write_str("the agent named a vendor session that cannot be one: ignored"),
            Note::LineTooLong => f.write_str("a line of output was too long, and passed over"),
            Note::Gap { lost: Some(lost) } => write!(f, "{lost} bytes of output are missing"),
            Note::Gap { lost: None } => f.write_str("output is missing"),
            Note::Panicked { text } => write!(f, "the translator failed at a line: {text}"),
            Note::Unknown { why } => write!(f, "nothing is concluded from what this run prints: {why}"),
            Note::Agent { text } => write!(f, "the agent says: {text}"),
        }
    }
}
