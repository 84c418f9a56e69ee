//! What can go wrong, in the words and numbers that scripts rely on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words are the contract's")]
pub enum ErrorKind {
    Failed,
    NotFound,
    Archived,
    Usage,
    Damaged,
    Unavailable,
    Exists,
    Busy,
    NotPermitted,
    BadConfig,
    Timeout,
}

impl ErrorKind {
    /// All kinds.
    pub const ALL: [ErrorKind; 11] = [
        ErrorKind::Failed,
        ErrorKind::NotFound,
        ErrorKind::Archived,
        ErrorKind::Usage,
        ErrorKind::Damaged,
        ErrorKind::Unavailable,
        ErrorKind::Exists,
        ErrorKind::Busy,
        ErrorKind::NotPermitted,
        ErrorKind::BadConfig,
        ErrorKind::Timeout,
    ];

    /// Returns the word in the error object.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            ErrorKind::Failed => "failed",
            ErrorKind::NotFound => "not_found",
            ErrorKind::Archived => "archived",
            ErrorKind::Usage => "usage",
            ErrorKind::Damaged => "damaged",
            ErrorKind::Unavailable => "unavailable",
            ErrorKind::Exists => "exists",
            ErrorKind::Busy => "busy",
            ErrorKind::NotPermitted => "not_permitted",
            ErrorKind::BadConfig => "bad_config",
            ErrorKind::Timeout => "timeout",
        }
    }

    /// Returns the exit code of the command.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            ErrorKind::Failed | ErrorKind::NotFound | ErrorKind::Archived => 1,
            ErrorKind::Usage => 2,
            ErrorKind::Damaged => 65,
            ErrorKind::Unavailable => 69,
            ErrorKind::Exists => 73,
            ErrorKind::Busy => 75,
            ErrorKind::NotPermitted => 77,
            ErrorKind::BadConfig => 78,
            ErrorKind::Timeout => 124,
        }
    }

    /// Returns the HTTP status.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            ErrorKind::Usage => 400,
            ErrorKind::NotPermitted => 403,
            ErrorKind::NotFound => 404,
            ErrorKind::Timeout => 408,
            ErrorKind::Archived | ErrorKind::Exists | ErrorKind::Busy => 409,
            ErrorKind::BadConfig => 422,
            ErrorKind::Failed | ErrorKind::Damaged => 500,
            ErrorKind::Unavailable => 503,
        }
    }
}

/// The error object, without its envelope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// What kind.
    pub kind: ErrorKind,
    /// One line for people.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
    /// Who holds what was wanted.
    pub holder: Option<Value>,
}

impl ErrorBody {
    /// Creates an error with only a message.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> ErrorBody {
        ErrorBody { kind, message: message.into(), hint: None, holder: None }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> ErrorBody {
        ErrorBody { hint: Some(hint.into()), ..self }
    }
}

/// The error object in its envelope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorEnvelope {
    /// The error.
    pub error: ErrorBody,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_words_and_codes_of_the_contract() {
        let codes: Vec<(&str, u8)> =
            ErrorKind::ALL.iter().map(|kind| (kind.word(), kind.exit_code())).collect();
        let expected = [
            ("failed", 1),
            ("not_found", 1),
            ("archived", 1),
            ("usage", 2),
            ("damaged", 65),
            ("unavailable", 69),
            ("exists", 73),
            ("busy", 75),
            ("not_permitted", 77),
            ("bad_config", 78),
            ("timeout", 124),
        ];
        assert_eq!(codes, expected);
    }

    #[test]
    fn the_word_is_what_stands_in_json() {
        for kind in ErrorKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.word());
        }
    }
}
