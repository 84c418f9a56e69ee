//! The guest of a run: the vendor's own terminal program beside the agent, on the same conversation.
//!
//! It is no run: it has no verdict, no fence and no need of its own. Its end ends nothing, and the end of its run ends it.

use crate::exit::Exit;
use crate::ids::RunNumber;
use serde::{Deserialize, Serialize};

/// The last guest of a session's runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guest {
    /// Of which run.
    pub run: RunNumber,
    /// Its number in that run: one is started once.
    pub number: u64,
    /// How far it has come.
    pub stage: GuestStage,
}

/// How far a guest has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestStage {
    /// It was decided and is durable, and not yet seen to run.
    Asked,
    /// It runs.
    Here {
        /// Its pid.
        pid: u32,
    },
    /// It has ended, or never came about.
    Gone {
        /// How it ended, if it came about.
        exit: Option<Exit>,
    },
}

/// What was found of the guest of a living run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestSeen {
    /// The number of the last one.
    pub number: u64,
    /// Whether it lives.
    pub presence: Presence,
}

/// Whether a guest lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// It does.
    Here {
        /// Its pid.
        pid: u32,
    },
    /// It has ended.
    Gone(Exit),
}

/// When a guest may come to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Welcomes {
    /// As soon as the agent runs.
    AtOnce,
    /// When the agent has said what it does: then it can be spoken to.
    WhenReady,
    /// When it has also said which conversation of its vendor it is in.
    WhenNamed,
}

/// What `attach` does with the agent's own terminal program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attaching {
    /// It takes the place of the headless run.
    #[default]
    Takeover,
    /// It comes beside it.
    Join(Welcomes),
}

impl Attaching {
    /// Whether it is what there was before there were guests, and so need not be stored.
    #[must_use]
    pub fn is_takeover(&self) -> bool {
        *self == Attaching::Takeover
    }
}
