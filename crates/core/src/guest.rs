//! The guest of a run: the vendor's own terminal program beside the agent, on the same conversation.
//!
//! A guest is not a run: it has no verdict, no fence and no need of its own. Its end ends nothing else; the
//! end of its run ends it.

use crate::exit::Exit;
use crate::ids::RunNumber;
use serde::{Deserialize, Serialize};

/// The latest guest of a session's runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guest {
    /// The run that it belongs to.
    pub run: RunNumber,
    /// Its number within that run; each number is started once.
    pub number: u64,
    /// How far it has come.
    pub stage: GuestStage,
}

/// How far a guest has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestStage {
    /// It was decided and stored, but is not yet known to run.
    Asked,
    /// It runs.
    Here {
        /// Its pid.
        pid: u32,
    },
    /// It has ended, or was never started.
    Gone {
        /// How it ended, if it was started.
        exit: Option<Exit>,
    },
}

/// What was found of the guest of a living run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestSeen {
    /// The number of the latest guest.
    pub number: u64,
    /// Whether it lives.
    pub presence: Presence,
}

/// Whether a guest lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// It lives.
    Here {
        /// Its pid.
        pid: u32,
    },
    /// It has ended.
    Gone(Exit),
}

/// When a guest may join a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Welcomes {
    /// As soon as the agent runs.
    AtOnce,
    /// Once the agent has reported what it is doing and so can be spoken to.
    WhenReady,
    /// Once the agent has also named its vendor's conversation.
    WhenNamed,
}

/// What `attach` does with the agent's own terminal program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attaching {
    /// It replaces the headless run.
    #[default]
    Takeover,
    /// It joins the run.
    Join(Welcomes),
}

impl Attaching {
    /// Whether this is the original behaviour, which need not be stored.
    #[must_use]
    pub fn is_takeover(&self) -> bool {
        *self == Attaching::Takeover
    }
}
