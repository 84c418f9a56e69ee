//! One entry of a tape, as a fold takes it; the tape's reader has checked it.

use crate::label::Label;
use pinfold_core::{RunNumber, Wall};

/// One entry of a tape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldEntry<'a> {
    /// Where the entry begins on the tape.
    pub position: u64,
    /// Where the entry ends; no other entry begins before that.
    pub end: u64,
    /// The run that the entry belongs to.
    pub run: RunNumber,
    /// When it was written.
    pub at: Wall,
    /// The entry's kind.
    pub what: EntryKind,
    /// The printed bytes; for other kinds they are not read.
    pub bytes: &'a [u8],
}

/// The kind of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// The agent printed this on its standard output.
    Out,
    /// The agent printed this on its standard error.
    Err,
    /// Something was said to the agent.
    Said {
        /// The word's number in the run, from 1.
        number: u64,
        /// What the word was for.
        label: Label,
    },
    /// Output that could not be written to the tape.
    Gap {
        /// Number of lost bytes.
        lost: u64,
    },
    /// The end of the run's output.
    End,
}
