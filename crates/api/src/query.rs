//! What a request asks for behind the `?`. What says nothing is left out, so that an older daemon is asked as before.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which sessions a list has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Filter")]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Sessions {
    #[serde(skip_serializing_if = "is_false")]
    pub all: bool,
    pub state: Option<String>,
    pub tag: Option<String>,
    /// Without policies: for whoever prints a table.
    #[serde(skip_serializing_if = "is_false")]
    pub brief: bool,
    /// Only those that can be read: none that are damaged, and none that the database does not know.
    #[serde(skip_serializing_if = "is_false")]
    pub known: bool,
    /// Only the first so many; the field `next` of the answer's head says what `after` has to be for the next ones.
    pub limit: Option<usize>,
    /// Only those behind the session of this id.
    pub after: Option<String>,
}

/// Which states to wait for, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Wait {
    pub r#for: String,
    pub timeout: Option<String>,
}

/// Which audit records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "EventsAsked")]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Events {
    /// After this number.
    #[serde(skip_serializing_if = "is_zero")]
    pub since: u64,
    /// After this moment (milliseconds since 1970).
    pub since_ms: Option<i64>,
    pub session: Option<String>,
    /// Only the last so many.
    pub last: Option<u32>,
    /// Only the first so many, as an array; the field `next` of the answer's head says what `after` has to be for the
    /// next ones.
    pub limit: Option<u64>,
    /// The same as `since`.
    #[serde(skip_serializing_if = "is_zero")]
    pub after: u64,
    /// `false`: what there is, as an array.
    pub follow: Option<bool>,
}

/// Which output of a session's agents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "OutputAsked")]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Logs {
    pub n: Option<usize>,
    pub run: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub follow: bool,
    /// Only what was printed in the last turn of this message.
    pub message: Option<String>,
    /// What was printed on a terminal as it was printed, not as the screen showed it.
    #[serde(skip_serializing_if = "is_false")]
    pub raw: bool,
}

/// Where a session's stream begins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "StreamAsked")]
pub struct Stream {
    /// So many lines of output that are there already.
    pub n: Option<usize>,
}

/// Which messages of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "MessagesAsked")]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Messages {
    pub state: Option<String>,
    /// Only the last so many.
    pub last: Option<u32>,
    /// Only the first so many; the field `next` of the answer's head says what `after` has to be for the next ones.
    pub limit: Option<u64>,
    /// Only those behind this message.
    pub after: Option<String>,
}

/// How long to wait for the answer to a message; not at all where it is left out, for ever where it is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Patience {
    pub wait: Option<String>,
}

/// Which locks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "LocksAsked")]
pub struct Locks {
    /// Only the first so many, in the order of their resources, and those that are of the same resource as the last one;
    /// the field `next` of the answer's head says what `after` has to be for the next ones.
    pub limit: Option<usize>,
    /// Only those behind this resource.
    pub after: Option<String>,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}
