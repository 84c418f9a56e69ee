//! Why a session runs, the numbers of its runs, and takeovers.

use crate::ids::{ConsumerId, RunNumber};
use crate::rules::parting::PartingWord;
use crate::time::{Boot, Moment};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The numbers of a session's runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Runs {
    /// The latest run that was decided.
    pub last: RunNumber,
    /// The latest run that was known to run.
    pub seen: RunNumber,
    /// The latest run whose end is settled.
    pub settled: RunNumber,
    /// How many runs were known to run.
    pub count: u64,
}

/// A takeover that waits for the headless run to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Takeover {
    /// The client that asked.
    pub consumer: ConsumerId,
    /// Whether to interrupt the turn under way.
    pub urgent: bool,
    /// How long the turn under way may go on.
    pub until: Moment,
}

/// An agent that was asked to leave and has not been sent a signal yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaving {
    /// What it was told.
    pub word: PartingWord,
    /// When the wait for that ends.
    pub until: Boot,
    /// When its grace ends.
    pub by: Boot,
}

/// Why a session must run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// Its mode says so.
    Always,
    /// Its one run has not ended.
    Once,
    /// A turn is under way.
    Turn,
    /// A message is queued.
    Message,
    /// The agent has work of its own under way.
    OwnWork,
    /// Its conversation exists in the memory of its agent only.
    Unsaved,
    /// A client is attached.
    Attach,
    /// A person started it.
    Person,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Need::Always => "mode `always` wants it to run",
            Need::Once => "its one run is due",
            Need::Turn => "a turn is under way",
            Need::Message => "a message is queued",
            Need::OwnWork => "work of its own is under way",
            Need::Unsaved => "its agent has not saved the conversation",
            Need::Attach => "a client is attached",
            Need::Person => "a person started it",
        })
    }
}
