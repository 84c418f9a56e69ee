//! The answer to a message: how a batch brings it, and how it is kept.

use crate::ulid::{SessionId, Ulid};

/// The folder of a session that has its long answers, below the one that has all sessions.
pub const ANSWERS: &str = "answers";
/// What the name of an answer that is not whole yet ends with.
pub const DRAFT: &str = ".part";
/// Answers up to this length are in their rows: a file costs two syncs more, and a row that is long is written twice.
pub const LONGEST_IN_ROW: u64 = 1 << 20;
/// So much of a long one is in its row, for lists.
pub const BEGINNING: usize = 4 << 10;

/// An answer as it is given with the end of its turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GivenAnswer {
    /// What was not told in parts before.
    pub rest: String,
    /// What is known of the rest of it.
    pub told: AnswerTold,
}

impl<T: Into<String>> From<T> for GivenAnswer {
    fn from(rest: T) -> GivenAnswer {
        GivenAnswer { rest: rest.into(), told: AnswerTold::default() }
    }
}

/// What is known of an answer beside the words that are given with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnswerTold {
    /// So many bytes of it were told in parts.
    pub before: u64,
    /// Some of it was left out because it was too long.
    pub cut: bool,
}

impl AnswerTold {
    /// Whether the row of its message cannot say all there is to say of it.
    pub(crate) fn is_more_than_a_row(self, rest: &str) -> bool {
        self.before > 0 || self.cut || rest.len() as u64 > LONGEST_IN_ROW
    }
}

/// A part of an answer whose turn has not ended. What was there from its place on is replaced by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerPart {
    /// Whose message it answers.
    pub session: SessionId,
    /// Which message.
    pub message: Ulid,
    /// Where it belongs, in bytes.
    pub offset: u64,
    /// Its words.
    pub text: String,
}

/// How an answer is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kept {
    /// It is not in its message, which has the beginning: so long is all of it.
    pub beside: Option<u64>,
    /// Some of it was left out because it was too long, or was lost with the power.
    pub cut: bool,
}
