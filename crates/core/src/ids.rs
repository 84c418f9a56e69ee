//! Ids and numbers that the core compares but never interprets.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The number of a run within its session: 1 for the first, growing, never reused. A larger number is a later run.
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

/// The id of a message; the shell makes it and keeps the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MessageId(pub u128);

/// Crockford's base 32, in which ids are written.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// The number of digits in an id.
const LENGTH: usize = 26;

impl MessageId {
    /// Returns the id written as `word`, in upper or lower case.
    #[must_use]
    pub fn in_word(word: &[u8]) -> Option<MessageId> {
        // 26 digits hold 130 bits, but an id has only 128.
        if word.len() != LENGTH || !(b'0'..=b'7').contains(word.first()?) {
            return None;
        }
        let digit = |letter: &u8| DIGITS.iter().position(|digit| *digit == letter.to_ascii_uppercase());
        word.iter().try_fold(0, |bits, letter| Some(bits << 5 | digit(letter)? as u128)).map(MessageId)
    }
}

/// The number of an agent's request within its session: 1 for the first, growing, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestNumber(pub u64);

impl fmt::Display for RequestNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

/// An open connection that follows a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConsumerId(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_the_right_shape_is_an_id_and_no_other_is() {
        let id = Some(MessageId(1_469_918_176_385 << 80));
        assert_eq!(MessageId::in_word(b"01ARYZ6S410000000000000000"), id);
        assert_eq!(MessageId::in_word(b"01aryz6s410000000000000000"), id);
        assert_eq!(MessageId::in_word(b"7ZZZZZZZZZZZZZZZZZZZZZZZZZ"), Some(MessageId(u128::MAX)));
        for word in
            ["", "01ARYZ6S41000000000000000", "01ARYZ6S4100000000000000000", "81ARYZ6S410000000000000000"]
        {
            assert_eq!(MessageId::in_word(word.as_bytes()), None, "{word}");
        }
        for letter in *b"ILOU-\"" {
            let mut word = *b"01ARYZ6S410000000000000000";
            word[25] = letter;
            assert_eq!(MessageId::in_word(&word), None);
        }
    }

    #[test]
    fn runs_are_numbered_from_one_on() {
        assert_eq!(RunNumber::default().next(), RunNumber(1));
        assert_eq!(RunNumber(7).to_string(), "run 7");
        assert!(RunNumber(7) < RunNumber(7).next());
    }
}
