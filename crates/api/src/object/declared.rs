//! The definition of a session, and how it differs from what is wanted.

use super::{Left, Session, Skipped};
use crate::request::SessionWorktree;
use crate::word::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a session is told to be, in the words of a request: what `export` writes. Values of `--env` are never part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are those of a new session")]
pub struct Declared {
    pub name: String,
    pub agent: String,
    pub vendor_session: Option<String>,
    pub dir: String,
    pub mode: Mode,
    pub memory: Option<String>,
    pub idle: Option<String>,
    pub stop_grace: Option<String>,
    #[serde(default)]
    pub budget: Option<String>,
    #[serde(default)]
    pub turn_time: Option<String>,
    pub pty: bool,
    pub input: String,
    pub turns: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contended_if: Option<String>,
    pub parent: Option<String>,
    pub tags: Vec<String>,
    /// The names of variables that were given; values are never printed.
    pub env: Vec<String>,
    pub dir_lock: bool,
    /// Empty where the agent's preset says it.
    pub command: Vec<String>,
    /// The git worktree that was made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<SessionWorktree>,
}

/// One field in which a session is not what a request wants it to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Which field.
    pub field: String,
    /// What it is, in words; of variables only their names.
    pub from: Option<String>,
    /// What it would be.
    pub to: Option<String>,
}

/// What `apply` did, or would do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Applied {
    /// The names of the new sessions.
    pub created: Vec<String>,
    /// The sessions that were changed.
    pub changed: Vec<ChangedSession>,
    /// The names of sessions that were as declared.
    pub unchanged: Vec<String>,
    /// The names of the archived sessions.
    pub archived: Vec<String>,
    /// Sessions that are not declared and were not archived.
    pub skipped: Vec<Skipped>,
    /// Sessions whose runs do not end; they are archived afterwards. Not there where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Left>,
    /// The created and changed sessions as they are now; not there after a dry run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<Session>,
}

/// A session that was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedSession {
    /// Its name.
    pub name: String,
    /// What was changed of it.
    pub differences: Vec<Difference>,
}
