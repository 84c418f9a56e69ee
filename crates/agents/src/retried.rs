//! An answer whose stream broke off and was begun again by the agent, which prints both and says nothing of it.
//!
//! The only signs are a pause, for the agent waits before it tries again, and that everything said so far is
//! said once more. If the model says something else the second time, both stay: no text is ever dropped that
//! was not repeated.

use pinfold_core::Wall;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Gemini CLI waits a second before it tries again, and longer each further time.
const PAUSE: Duration = Duration::from_millis(900);
/// Longest text that is compared, in bytes.
const LONGEST: usize = 64 << 10;

/// The text of one stream, and what may be its repetition.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Retried {
    /// What the stream has said.
    text: String,
    /// What came after a pause, as long as it is how the text begins.
    again: String,
    last: Option<Wall>,
    /// The text is too long to be compared.
    long: bool,
}

impl Retried {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Retried::default()
    }

    /// Takes a piece of an answer; returns what is new in it.
    pub(crate) fn piece(&mut self, piece: &str, at: Wall) -> String {
        let paused = self.last.replace(at).is_some_and(|last| last.until(at) >= PAUSE);
        let begins = self.text.starts_with(piece) || piece.starts_with(self.text.as_str());
        if self.long || (self.again.is_empty() && !(paused && begins && !self.text.is_empty())) {
            self.keep(piece);
            return piece.to_owned();
        }
        if paused && begins {
            // This try broke off earlier than the one before.
            self.again.clear();
        }
        self.again.push_str(piece);
        if let Some(new) = self.again.strip_prefix(self.text.as_str()) {
            let new = new.to_owned();
            self.text = std::mem::take(&mut self.again);
            return new;
        }
        if self.text.starts_with(self.again.as_str()) {
            return String::new();
        }
        let other = std::mem::take(&mut self.again);
        self.keep(&other);
        other
    }

    /// Something else was printed: the stream is over. Returns what was held back.
    pub(crate) fn over(&mut self) -> Option<String> {
        let held = std::mem::take(self).again;
        (!held.is_empty()).then_some(held)
    }

    fn keep(&mut self, piece: &str) {
        if self.text.len() + piece.len() > LONGEST {
            (self.text, self.long) = (String::new(), true);
        } else if !self.long {
            self.text.push_str(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces, each with the time before it in milliseconds.
    fn answer(pieces: &[(i64, &str)]) -> String {
        let (mut retried, mut at, mut answer) = (Retried::default(), 0, String::new());
        for (pause, piece) in pieces {
            at += pause;
            answer.push_str(&retried.piece(piece, Wall(at)));
        }
        answer.push_str(&retried.over().unwrap_or_default());
        assert!(retried.is_empty());
        answer
    }

    #[test]
    fn a_stream_that_was_begun_again_is_one_answer_and_nothing_else_is_left_out() {
        let rows: &[(&[(i64, &str)], &str)] = &[
            (&[(0, "The bu"), (1100, "The build")], "The build"),
            (&[(0, "The "), (5, "bu"), (1100, "The"), (5, " build")], "The build"),
            (&[(0, "The "), (1100, "The "), (2000, "The "), (4000, "The build")], "The build"),
            (&[(0, "The build"), (1100, "The"), (2000, "The build"), (5, " fails")], "The build fails"),
            (&[(0, "ha"), (5, "ha")], "haha"),
            (&[(0, "The build"), (2000, " fails")], "The build fails"),
            (&[(0, "I see. "), (2000, "I"), (5, " fix it")], "I see. I fix it"),
            (&[(0, "I see. "), (2000, "I"), (2000, " fix it")], "I see. I fix it"),
            (&[(0, "The build"), (1100, "A test")], "The buildA test"),
            (&[(0, "The build"), (1100, "The")], "The buildThe"),
            (&[(1500, "The")], "The"),
        ];
        for (pieces, expected) in rows {
            assert_eq!(answer(pieces), *expected, "{pieces:?}");
        }
    }

    #[test]
    fn a_long_answer_is_not_compared_and_not_kept() {
        let long = "x".repeat(LONGEST);
        let all = answer(&[(0, long.as_str()), (5, "y"), (2000, long.as_str())]);
        assert_eq!(all.len(), 2 * LONGEST + 1);
        let mut retried = Retried::default();
        retried.piece(&long, Wall(0));
        retried.piece("y", Wall(0));
        assert!(retried.long && retried.text.is_empty());
    }
}
