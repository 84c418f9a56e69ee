//! Names of sessions: parsed at the door, trusted inside.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A session's name: 1 to 64 of `a-z A-Z 0-9 . _ -`, not starting with `.` or `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// A text that is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a name: use 1 to 64 of a-z A-Z 0-9 . _ -, not starting with . or -")]
pub struct NotAName(String);

impl Name {
    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Name, NotAName> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b".-_".contains(&b);
        let length = (1..=64).contains(&text.len());
        if length && text.bytes().all(fits) && !text.starts_with(['.', '-']) {
            Ok(Name(text.to_owned()))
        } else {
            Err(NotAName(text.to_owned()))
        }
    }
}

impl TryFrom<String> for Name {
    type Error = NotAName;

    fn try_from(text: String) -> Result<Name, NotAName> {
        text.parse()
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_the_name_syntax() {
        let long = "a".repeat(64);
        for good in ["a", "api", "A.b_c-9", "_x", "0", long.as_str()] {
            assert!(good.parse::<Name>().is_ok(), "{good}");
        }
        let longer = "a".repeat(65);
        for bad in ["", ".a", "-a", "a b", "a/b", "ä", "a\n", "../x", longer.as_str()] {
            assert!(bad.parse::<Name>().is_err(), "{bad:?}");
        }
    }
}
