//! What clients ask for.
//!
//! Words are strings here, which the daemon parses on arrival: its error for a wrong one names the right
//! ones. The schema lists them.

use crate::units;
use crate::word::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A new session, or changes to one: the options of `new` as fields.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct NewSession {
    pub name: String,
    pub agent: Option<String>,
    pub vendor_session: Option<String>,
    /// Forget the conversation of the vendor; the next run begins another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_conversation: Option<bool>,
    pub dir: Option<String>,
    #[schemars(with = "Option<Mode>")]
    pub mode: Option<String>,
    #[schemars(extend("pattern" = units::SIZE))]
    pub memory: Option<String>,
    #[schemars(extend("pattern" = units::DURATION))]
    pub idle: Option<String>,
    #[schemars(extend("pattern" = units::DURATION))]
    pub stop_grace: Option<String>,
    #[schemars(extend("pattern" = units::MONEY))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    #[schemars(extend("pattern" = units::DURATION))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_time: Option<String>,
    pub pty: Option<bool>,
    #[schemars(extend("enum" = ["line", "json", null]))]
    pub input: Option<String>,
    #[schemars(extend("enum" = ["line", "done", null]))]
    pub turns: Option<String>,
    /// An exit whose last lines have this text is contended, not a crash; empty for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contended_if: Option<String>,
    pub parent: Option<String>,
    pub tags: Option<Vec<String>>,
    pub env: Option<BTreeMap<String, String>>,
    pub dir_lock: Option<bool>,
    pub beside: Option<bool>,
    pub force: Option<bool>,
    pub command: Option<Vec<String>>,
    /// The caller's directory, used where none is given.
    pub caller_dir: Option<String>,
    /// Harmless variables of the caller, taken where the daemon has none of its own.
    pub caller_env: Option<BTreeMap<String, String>>,
    /// The caller's umask.
    pub caller_umask: Option<u32>,
    /// The git worktree that was made for it; it cannot be changed later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<SessionWorktree>,
}

/// The git worktree of a session, as it was when the session was created. All paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionWorktree {
    /// Where it is: the session's directory.
    pub path: String,
    /// The main worktree of its repository, or the repository itself if it is bare.
    pub repository: String,
    /// Its own git directory, to which its file `.git` points.
    pub gitdir: String,
    /// The git directory of its repository.
    pub commondir: String,
    /// pinfold made it, so pinfold may remove it.
    pub created: bool,
}

/// An account goes on, whatever was told of its limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeAccount {
    /// `AGENT:NAME`.
    pub account: String,
}

/// A stop.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Stop {
    /// Instead of the policy's grace.
    #[schemars(extend("pattern" = units::DURATION))]
    pub timeout: Option<String>,
}

/// Another name for a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rename {
    /// The name that it has from now on.
    pub name: String,
}

/// A purge.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Purge {
    /// Those that are in use too.
    pub include_active: bool,
    /// `on-demand` unless it says so; `all` for all.
    #[schemars(extend("enum" = crate::word::purged_modes()))]
    pub mode: Option<String>,
    /// Only say what would be done.
    pub dry_run: bool,
    /// Who asks: its own session is left alone.
    pub caller: Caller,
}

/// Sessions as a file declares them. All of it is done, or nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Apply {
    /// Sessions to create. One can be the parent of another.
    pub create: Vec<NewSession>,
    /// Sessions to change, by name: missing fields stay as they are.
    pub change: Vec<NewSession>,
    /// Archive all other sessions, except the caller's own.
    pub prune: bool,
    /// Only check it, and return what would be done.
    pub dry_run: bool,
    /// Who asks: its own session is not archived.
    pub caller: Caller,
}

/// Who asks, as far as it can be part of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Caller {
    /// `PINFOLD_SESSION`.
    pub session: Option<String>,
    /// `PINFOLD_RUN`.
    pub run: Option<String>,
    /// `PINFOLD_SOCKET`.
    pub socket: Option<String>,
    /// The processes above it.
    pub ancestors: Vec<u32>,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewMessage {
    /// What to say.
    pub text: String,
    /// The same key twice is one message.
    pub key: Option<String>,
    /// Files that it is about, by absolute paths; they must exist. A daemon of an earlier version does not know the word.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// Somebody attaches: counted as a consumer while the answer is read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Attach {
    /// Lines of their terminal; 0 where there is none.
    pub rows: u16,
    /// Columns of their terminal.
    pub columns: u16,
    /// Do not wait: interrupt the turn under way, start before a wait is over.
    pub now: bool,
    /// Only look on: nothing is taken over.
    pub read_only: bool,
    /// They have the terminal already, and only lost the daemon.
    pub again: bool,
}

/// A hold of a lock for as long as the connection is open.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Hold {
    /// What to hold: `key:ANY`.
    pub resource: String,
    /// How long to wait for it; at once where it is left out.
    #[schemars(extend("pattern" = units::DURATION))]
    pub wait: Option<String>,
    /// What it is held for.
    pub reason: Option<String>,
    /// After so long it is revoked; never where it is left out.
    #[schemars(extend("pattern" = units::DURATION))]
    pub max_hold: Option<String>,
}

/// How to go down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Down {
    /// Leave the agents running under their shims.
    pub keep: bool,
    /// Another daemon starts right after this one, so clients that follow something wait for it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
}

/// Where to put a copy of the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Copy")]
pub struct Backup {
    /// The file; it must not be there yet.
    pub path: PathBuf,
}

/// The answer to a permission request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Permission {
    #[schemars(extend("enum" = ["allow", "deny"]))]
    pub answer: String,
    /// Which request; the oldest where it is left out.
    #[serde(default)]
    pub id: Option<String>,
    /// What is said to the agent with it.
    #[serde(default)]
    pub message: Option<String>,
    /// The same for all requests that are alike, where the agent offers that.
    #[serde(default)]
    pub always: bool,
}
