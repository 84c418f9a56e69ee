//! What `GET /v1/feed` sends: a snapshot in parts, then every change of a session with its revision.
//!
//! A revision is `GENERATION.NUMBER`. Numbers grow within a generation; a daemon that starts begins a new one.

use crate::object::Session;
use crate::word::Activity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One server-sent event of the feed; its kind is the event's name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FeedEvent {
    /// `snapshot`
    Snapshot(Snapshot),
    /// `session`
    Session(Box<Changed>),
    /// `removed`
    Removed(Gone),
    /// `live`
    Live(Live),
}

/// All sessions as they stand, or a part of them. What a client knew before does not count any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// What comes after it is newer than this.
    pub revision: String,
    /// In the order in which they were made, without their policies.
    pub sessions: Vec<Session>,
    /// Whether another part follows.
    pub more: bool,
}

/// A session that changed, as it stands now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// Of the change.
    pub revision: String,
    /// Without its policy.
    pub session: Session,
}

/// A session that was removed for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gone {
    /// Of the change.
    pub revision: String,
    /// The id of the session.
    pub id: String,
    /// What it was called.
    pub name: String,
}

/// What is measured of a run under way, or said by its agent: never sent again, and at most 4 times a second for a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Live {
    /// The id of the session.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// What its agent does, as far as that is known.
    pub activity: Activity,
    /// How that is known.
    #[serde(default)]
    pub activity_from: Option<String>,
    /// Since when it is that.
    #[serde(default)]
    pub activity_since: Option<String>,
    /// What its agent waits for, in words of its own.
    #[serde(default)]
    pub waits_for: Option<String>,
    /// Whether its agent has said that it is ready.
    pub ready: bool,
    /// What its agent says of itself.
    pub status: Option<String>,
    /// The memory of its run.
    pub memory_bytes: Option<u64>,
    /// What of that is on the swap.
    pub swap_bytes: Option<u64>,
}
