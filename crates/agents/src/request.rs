//! What an agent asks a person.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The id of a request within its run, counted from 1. It is ours, because vendors' ids are long, or start
/// again in every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub u64);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

/// The word is not a request id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of a request is `r` and a number")]
pub struct NotARequest;

impl FromStr for RequestId {
    type Err = NotARequest;

    fn from_str(word: &str) -> Result<RequestId, NotARequest> {
        let number = word.strip_prefix('r').ok_or(NotARequest)?;
        number.parse().map(RequestId).map_err(|_| NotARequest)
    }
}

/// A request as it is shown to the people who may answer it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The request's id in its run.
    pub id: RequestId,
    /// The kind of answer that it wants.
    pub kind: RequestKind,
    /// What it is about, in a line: `Bash: rm -rf build`.
    pub title: String,
    /// More detail, for a closer look.
    pub detail: Option<String>,
    /// The line in which the agent asked.
    pub raw: String,
}

/// The kind of answer that a request wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// Yes or no.
    Permission,
    /// An answer in words.
    Question,
}
