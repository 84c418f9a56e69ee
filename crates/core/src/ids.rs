//! Names of things that the core tells apart but never interprets.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Which run of a session: 1 for its first, growing, never reused. A larger number is a later run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, Serialize, Deserialize)]
pub struct RunNumber(pub u64);

impl RunNumber {
    /// The number after this one.
    #[must_use]
    pub fn next(self) -> RunNumber {
        RunNumber(self.0 + 1)
    }
}

impl fmt::Display for RunNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {}", self.0)
    }
}

/// A queued input; the shell makes the id, and keeps the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MessageId(pub u128);

/// An open connection that follows a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConsumerId(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_numbered_from_one_on() {
        assert_eq!(RunNumber::default().next(), RunNumber(1));
        assert_eq!(RunNumber(7).to_string(), "run 7");
        assert!(RunNumber(7) < RunNumber(7).next());
    }
}
