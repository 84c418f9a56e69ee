//! Ids that sort by age: ULIDs as 26 characters of Crockford's base 32.
//!
//! Time and randomness are arguments; nothing here asks for either.

use pinfold_core::MessageId;
use std::fmt;
use std::str::FromStr;

const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const LENGTH: usize = 26;
const RANDOM_BITS: u32 = 80;
const LARGEST_TIME: u64 = (1 << 48) - 1;

/// 48 bits of milliseconds since the Unix epoch, then 80 random bits.
///
/// ```
/// # use pinfold_store::Ulid;
/// let id = Ulid::new(1_469_918_176_385, 0);
/// assert_eq!(id.to_string(), "01ARYZ6S410000000000000000");
/// assert_eq!("01aryz6s410000000000000000".parse(), Ok(id));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ulid(u128);

impl Ulid {
    /// Creates an id from the time and 80 random bits; more bits are cut off.
    #[must_use]
    pub fn new(milliseconds: u64, random: u128) -> Ulid {
        let time = u128::from(milliseconds.min(LARGEST_TIME)) << RANDOM_BITS;
        Ulid(time | (random & ((1 << RANDOM_BITS) - 1)))
    }

    /// Returns the milliseconds it was made from.
    #[must_use]
    pub fn milliseconds(self) -> u64 {
        u64::try_from(self.0 >> RANDOM_BITS).unwrap_or(LARGEST_TIME)
    }
}

impl fmt::Display for Ulid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(LENGTH);
        for place in (0..LENGTH).rev() {
            let digit = (self.0 >> (5 * place)) & 31;
            text.push(char::from(ALPHABET[usize::try_from(digit).unwrap_or_default()]));
        }
        f.pad(&text)
    }
}

/// Why a text is not an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseUlidError {
    /// It does not have 26 characters.
    #[error("an id has 26 characters, not {found}")]
    Length {
        /// How many characters it has.
        found: usize,
    },
    /// It has a character that does not occur in ids.
    #[error("`{found}` does not occur in an id")]
    Character {
        /// The character.
        found: char,
    },
    /// It has more than 128 bits.
    #[error("an id starts with 0 to 7")]
    TooLarge,
}

impl FromStr for Ulid {
    type Err = ParseUlidError;

    fn from_str(text: &str) -> Result<Ulid, ParseUlidError> {
        let found = text.chars().count();
        if found != LENGTH {
            return Err(ParseUlidError::Length { found });
        }
        let mut bits = 0_u128;
        for (place, letter) in text.chars().enumerate() {
            let digit = digit(letter).ok_or(ParseUlidError::Character { found: letter })?;
            if place == 0 && digit > 7 {
                return Err(ParseUlidError::TooLarge);
            }
            bits = bits << 5 | digit;
        }
        Ok(Ulid(bits))
    }
}

fn digit(letter: char) -> Option<u128> {
    let upper = letter.to_ascii_uppercase();
    ALPHABET.iter().position(|known| char::from(*known) == upper).map(|at| at as u128)
}

/// Brings the beginning of an id into the form in which ids are stored; `None` if no id begins like that.
pub(crate) fn prefix(text: &str) -> Option<String> {
    let fits = !text.is_empty() && text.len() <= LENGTH && text.chars().all(|letter| digit(letter).is_some());
    fits.then(|| text.to_ascii_uppercase())
}

impl From<MessageId> for Ulid {
    fn from(message: MessageId) -> Ulid {
        Ulid(message.0)
    }
}

impl From<Ulid> for MessageId {
    fn from(id: Ulid) -> MessageId {
        MessageId(id.0)
    }
}

macro_rules! ulid_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub Ulid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = ParseUlidError;

            fn from_str(text: &str) -> Result<$name, ParseUlidError> {
                text.parse().map($name)
            }
        }
    };
}

ulid_newtype! {
    /// Identifies a session forever; its name may be given to another once it is archived.
    SessionId
}

ulid_newtype! {
    /// Identifies one run of one session.
    RunId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_comes_back_from_its_text() {
        for id in [0, 1, 31, 32, u128::MAX, u128::MAX / 3, 1 << 127].map(Ulid) {
            let text = id.to_string();
            assert_eq!(text.len(), LENGTH);
            assert_eq!(text.parse(), Ok(id));
            assert_eq!(text.to_ascii_lowercase().parse(), Ok(id));
        }
    }

    #[test]
    fn ids_sort_by_time_as_numbers_and_as_texts() {
        let (older, newer) = (Ulid::new(7, u128::MAX), Ulid::new(8, 0));
        assert!(older < newer && older.to_string() < newer.to_string());
        assert_eq!((older.milliseconds(), newer.milliseconds()), (7, 8));
        assert_eq!(Ulid::new(u64::MAX, 0).milliseconds(), LARGEST_TIME);
    }

    #[test]
    fn what_is_no_id_is_refused_with_the_reason() {
        let parse = |text: &str| text.parse::<Ulid>();
        assert_eq!(parse("01AR"), Err(ParseUlidError::Length { found: 4 }));
        assert_eq!(parse("81ARYZ6S410000000000000000"), Err(ParseUlidError::TooLarge));
        for letter in ['I', 'L', 'O', 'U', '-', 'é'] {
            let text = format!("01ARYZ6S41000000000000000{letter}");
            assert_eq!(parse(&text), Err(ParseUlidError::Character { found: letter }));
        }
    }

    #[test]
    fn a_prefix_is_a_beginning_that_an_id_can_have() {
        assert_eq!(prefix("01ar").as_deref(), Some("01AR"));
        for text in ["", "api", "01ARYZ6S4100000000000000000", "0%", "_"] {
            assert_eq!(prefix(text), None, "{text}");
        }
    }

    #[test]
    fn a_message_id_and_its_text_are_one() {
        let message = MessageId(u128::MAX / 7);
        assert_eq!(MessageId::from(Ulid::from(message)), message);
    }
}
