//! A message's id as a word: the 26 digits that people see, in labels and cursors.

use pinfold_core::MessageId;
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer, Serializer};

/// Crockford's base 32, as [`MessageId::in_word`] reads it.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// 26 digits of 5 bits hold the 128 bits of an id.
const LENGTH: u32 = 26;

/// Returns the word of an id.
pub(crate) fn of(id: MessageId) -> String {
    let digit = |place: u32| DIGITS[(id.0 >> (5 * place) & 31) as usize] as char;
    (0..LENGTH).rev().map(digit).collect()
}

pub(crate) fn serialize<S: Serializer>(id: &MessageId, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&of(*id))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<MessageId, D::Error> {
    let word = String::deserialize(from)?;
    MessageId::in_word(word.as_bytes()).ok_or_else(|| D::Error::custom("not the id of a message"))
}

/// The same for an optional id.
pub(crate) mod maybe {
    use pinfold_core::MessageId;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Word(#[serde(with = "super")] MessageId);

    #[expect(clippy::ref_option, reason = "serde wants it so")]
    pub(crate) fn serialize<S: Serializer>(id: &Option<MessageId>, to: S) -> Result<S::Ok, S::Error> {
        id.map(Word).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<MessageId>, D::Error> {
        Ok(Option::<Word>::deserialize(from)?.map(|Word(id)| id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_of_an_id_is_read_back_as_that_id() {
        for id in [0, 1, 31, 32, 1_469_918_176_385 << 80, u128::MAX].map(MessageId) {
            assert_eq!(MessageId::in_word(of(id).as_bytes()), Some(id));
        }
        assert_eq!(of(MessageId(1_469_918_176_385 << 80)), "01ARYZ6S410000000000000000");
    }
}
