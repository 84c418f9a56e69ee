//! One entry of a tape, as a fold takes it. Who reads the tape has checked it.

use crate::label::Label;
use pinfold_core::{RunNumber, Wall};

/// One entry of a tape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Where it begins on the tape.
    pub position: u64,
    /// Where it ends: no other entry begins before that.
    pub end: u64,
    /// Which run it belongs to.
    pub run: RunNumber,
    /// When it was written.
    pub at: Wall,
    /// What it is.
    pub what: What,
    /// What was printed; nothing reads the bytes of other entries.
    pub bytes: &'a [u8],
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The agent printed this on its standard output.
    Out,
    /// The agent printed this on its standard error.
    Err,
    /// This was said to the agent.
    Said {
        /// The how manieth word of the run, from 1.
        number: u64,
        /// What it was for.
        label: Label,
    },
    /// Output that could not be written.
    Gap {
        /// How many bytes.
        lost: u64,
    },
    /// The end of the run's output.
    End,
}
