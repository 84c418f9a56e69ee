//! The locks that are held, and their holders.

use crate::word::{HolderVerdict, LockKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A lock that is held now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Lock {
    pub resource: String,
    pub kind: LockKind,
    pub fence: Option<u64>,
    pub since: Option<String>,
    pub reason: Option<String>,
    pub session: Option<String>,
    pub run: Option<String>,
    pub holder: Holder,
    /// Processes that have it beside the holder.
    pub others: Vec<Process>,
    /// Its file was removed while it was held.
    pub removed: bool,
}

/// Who holds a lock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Holder {
    pub pid: Option<u32>,
    pub start_ticks: Option<u64>,
    pub boot_id: Option<String>,
    pub pid_ns: Option<u64>,
    pub host: String,
    pub command: String,
    /// Whether it lives.
    pub verdict: HolderVerdict,
}

/// A process that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Process {
    pub pid: u32,
    pub command: String,
}

/// A line of a hold: the first is `granted`, and there may be one more, `revoked`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HoldLine {
    /// It is held from now on.
    Granted(Box<Lock>),
    /// It is held no more.
    Revoked(Revoked),
}

/// The end of a hold that lasted too long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revoked {
    /// The fence of the hold: later ones have passed it.
    pub fence: u64,
    /// Why it was revoked.
    pub why: String,
}
