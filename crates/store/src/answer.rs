//! The answer to a message: how a batch delivers it and how it is kept.

use crate::ulid::{SessionId, Ulid};

/// The folder for a session's long answers, inside the session's own folder.
pub const ANSWERS: &str = "answers";
/// The suffix of an answer that is not complete yet.
pub const DRAFT: &str = ".part";
/// Answers up to this length are kept in their rows: a file costs two more syncs, but a long row is written twice.
pub const LONGEST_IN_ROW: u64 = 1 << 20;
/// How many bytes of a long answer its row holds, for lists.
pub const BEGINNING: usize = 4 << 10;

/// An answer as it is given at the end of its turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GivenAnswer {
    /// The text that was not delivered in parts before.
    pub rest: String,
    /// What is known about the rest of it.
    pub told: AnswerTold,
}

impl<T: Into<String>> From<T> for GivenAnswer {
    fn from(rest: T) -> GivenAnswer {
        GivenAnswer { rest: rest.into(), told: AnswerTold::default() }
    }
}

/// What is known about an answer besides the text that comes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnswerTold {
    /// How many bytes of it were delivered in parts.
    pub before: u64,
    /// Whether some of it was left out because it was too long.
    pub cut: bool,
}

impl AnswerTold {
    /// Whether the row of its message cannot hold everything there is to say about it.
    pub(crate) fn is_more_than_a_row(self, rest: &str) -> bool {
        self.before > 0 || self.cut || rest.len() as u64 > LONGEST_IN_ROW
    }
}

/// A part of an answer whose turn has not ended. It replaces everything from its offset on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerPart {
    /// The session whose message it answers.
    pub session: SessionId,
    /// Which message.
    pub message: Ulid,
    /// Where it begins in the answer, in bytes.
    pub offset: u64,
    /// The text of the part.
    pub text: String,
}

/// How an answer is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnswerKept {
    /// The length of the whole answer, if it is in a file and the row holds only the beginning.
    pub beside: Option<u64>,
    /// Whether some of it was left out because it was too long, or was lost in a power failure.
    pub cut: bool,
}
