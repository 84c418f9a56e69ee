//! Request ids: numbers or texts.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest key of an id in bytes, as in the ledger; those seen have at most 40.
const LONGEST: usize = 1 << 10;

/// A request's id, as its sender chose it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Id {
    Number(i64),
    Text(String),
}

impl Id {
    /// Returns the number of our word, if the id can be one. Some agents return numbers as texts.
    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Id::Number(number) => u64::try_from(*number).ok(),
            // `03` and `+3` are not what we wrote.
            Id::Text(text) => text.parse().ok().filter(|number: &u64| number.to_string() == *text),
        }
    }

    /// Returns the text by which the ledger knows the agent's request; `7` and `"7"` differ.
    pub(crate) fn key(&self) -> String {
        self.to_string()
    }

    /// Returns the id of a key.
    pub(crate) fn of_key(key: &str) -> Option<Id> {
        serde_json::from_str(key).ok()
    }

    /// Returns whether the id is short enough to be kept.
    pub(crate) fn fits(&self) -> bool {
        self.key().len() <= LONGEST
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Number(number) => write!(f, "{number}"),
            Id::Text(text) => write!(f, "{}", serde_json::Value::from(text.as_str())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_has_a_key_of_its_own_and_is_read_back_from_it() {
        let rows = [
            (Id::Number(7), "7"),
            (Id::Text("7".into()), "\"7\""),
            (Id::Number(-1), "-1"),
            (Id::Text("a\"b\n".into()), r#""a\"b\n""#),
            (Id::Text(String::new()), "\"\""),
        ];
        for (id, key) in rows {
            assert_eq!((id.key().as_str(), Id::of_key(key)), (key, Some(id)));
        }
        for odd in ["", "null", "{}", "7.5", "[1]"] {
            assert_eq!(Id::of_key(odd), None, "{odd}");
        }
    }

    #[test]
    fn an_answer_names_a_word_of_ours_by_number_or_by_text() {
        let text = |text: &str| Id::Text(text.into());
        let rows = [
            (Id::Number(3), Some(3)),
            (text("3"), Some(3)),
            (Id::Number(-3), None),
            (text("x"), None),
            (text("03"), None),
            (text("+3"), None),
            (text(""), None),
        ];
        for (id, number) in rows {
            assert_eq!(id.number(), number, "{id}");
        }
    }
}
