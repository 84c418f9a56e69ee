//! What a request asks for after the `?`. Fields that are not set are left out; a daemon ignores what it does not know.

use crate::{units, word};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which sessions a listing shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Filter")]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Sessions {
    pub all: bool,
    /// One state, or several, separated by commas.
    #[schemars(extend("pattern" = word::several_states()))]
    pub state: Option<String>,
    pub tag: Option<String>,
    /// Only those with all of these tags, one a line.
    pub tags: Option<String>,
    /// Without policies, and in a table without the ends of long commands: for a client that prints a table.
    pub brief: bool,
    /// Only those that can be read: none that are damaged, and none that the database does not know.
    pub known: bool,
    /// Only the first so many; the field `next` of the answer's head says what `after` has to be for the next ones.
    pub limit: Option<usize>,
    /// Only those after the session with this id.
    pub after: Option<String>,
}

/// What is deleted along with a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AlsoRemoved {
    /// The transcript that its agent has of the conversation.
    pub with_conversation: bool,
}

/// What `wait` waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Wait {
    #[schemars(extend("pattern" = word::several_states()))]
    pub r#for: String,
    #[schemars(extend("pattern" = units::DURATION))]
    pub timeout: Option<String>,
}

/// From where on the feed is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "FeedAsked")]
pub struct Feed {
    /// After this revision, `GENERATION.NUMBER`; a snapshot comes first where it is left out, or is not known any more.
    #[schemars(extend("pattern" = r"^[0-9]{1,19}\.[0-9]{1,19}$"))]
    pub since: Option<String>,
}

/// Sums of what was used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "UsageAsked")]
pub struct Usage {
    /// By what they are told apart; by session where it is left out.
    #[schemars(with = "Option<word::UsageBy>")]
    pub by: Option<String>,
    /// Only what was used since this moment (milliseconds since 1970).
    pub since_ms: Option<i64>,
}

/// Which events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "EventsAsked")]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Events {
    /// After this number.
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
    pub after: u64,
    /// `false`: what there is, as an array.
    pub follow: Option<bool>,
}

/// Which output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "OutputAsked")]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Logs {
    pub n: Option<usize>,
    pub run: Option<String>,
    /// Only what was printed since this moment (milliseconds since 1970).
    pub since_ms: Option<i64>,
    /// The field `total` of the answer's head says how many lines there are.
    pub count: bool,
    pub follow: bool,
    /// Only what was printed in the last turn of this message.
    pub message: Option<String>,
    /// What was printed on a terminal as it was printed, not as the screen showed it.
    pub raw: bool,
}

/// How much of the past.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "StreamAsked")]
pub struct Stream {
    /// So many lines of output that are there already.
    pub n: Option<usize>,
}

/// Which messages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "MessagesAsked")]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Messages {
    #[schemars(extend("enum" = word::asked_message_states()))]
    pub state: Option<String>,
    /// Only the last so many.
    pub last: Option<u32>,
    /// Only the first so many; the field `next` of the answer's head says what `after` has to be for the next ones.
    pub limit: Option<u64>,
    /// Only those after this message.
    pub after: Option<String>,
}

/// How long to wait for the end of a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Patience {
    // Not at all if it is left out, forever if it is empty.
    pub wait: Option<String>,
}

/// What is sought.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Sought")]
pub struct Search {
    /// Words, or beginnings of words, that must all be there. No sign has a meaning of its own.
    #[schemars(extend("minLength" = 1))]
    pub text: String,
    /// Only what belongs to this session.
    pub session: Option<String>,
    /// At most so many, 20 where it is left out; never more than 1000.
    #[schemars(extend("minimum" = 1, "maximum" = 1000))]
    pub limit: Option<usize>,
}

/// Which locks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "LocksAsked")]
pub struct Locks {
    /// Only the first so many, in the order of their resources, and those that are of the same resource as the last one;
    /// the field `next` of the answer's head says what `after` has to be for the next ones.
    pub limit: Option<usize>,
    /// Only those after this resource.
    pub after: Option<String>,
}
