//! Why a session runs, which of its runs is which, and who takes one over.

use crate::ids::{ConsumerId, RunNumber};
use crate::rules::parting::Word;
use crate::time::{Boot, Moment};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The numbers of a session's runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Runs {
    /// The latest that was decided.
    pub last: RunNumber,
    /// The latest that was seen to run.
    pub seen: RunNumber,
    /// The latest whose end is settled.
    pub settled: RunNumber,
    /// How many were seen to run.
    pub count: u64,
}

/// A takeover that waits for the headless run to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Takeover {
    /// Who asked.
    pub consumer: ConsumerId,
    /// Whether the turn under way is interrupted.
    pub urgent: bool,
    /// Until when the turn under way may go on.
    pub until: Moment,
}

/// An agent that was asked by word to leave, and is not told to by a signal yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaving {
    /// What was said to it.
    pub word: Word,
    /// Until when that is waited for.
    pub until: Boot,
    /// When its grace is over.
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
    /// Somebody is attached.
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
            Need::Attach => "a client is attached",
            Need::Person => "a person started it",
        })
    }
}
