//! What is known of a run in this protocol, beyond the ledger. It is stored in cursors, so every version must
//! read it.

use super::asks::KeptRequest;
use crate::label::Label;
use crate::rpc::{Calls, Id, Refusals};
use crate::translate::RunView;
use crate::word::AgentWord;
use serde::{Deserialize, Serialize};

/// The steps of the handshake. Steps that refuse requests have much higher numbers.
pub(crate) const INITIALIZE: u32 = 1;
pub(crate) const NEW: u32 = 2;
pub(crate) const LOAD: u32 = 3;
pub(crate) const RESUME: u32 = 4;

/// What is known of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Acp {
    pub(crate) calls: Calls<CallPurpose>,
    pub(crate) refusals: Refusals,
    /// The open session.
    pub(crate) opened: Option<OpenSession>,
    /// What was seen of the current turn.
    pub(crate) turn: Signs,
    /// What answers to open requests will need.
    pub(crate) kept: Vec<KeptRequest>,
    pub(crate) context: ContextUsage,
    /// A limit was reported, and no turn has gone well since.
    pub(crate) limited: bool,
    /// The agent names our requests by their numbers.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) numbers: bool,
}

/// What a request of ours is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallPurpose {
    Initialize,
    New,
    Load,
    Resume,
    Prompt,
}

/// The open session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenSession {
    pub(crate) id: String,
    /// Whether its id was passed on; not before the agent has worked in it.
    pub(crate) told: bool,
}

/// What was seen in a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Signs {
    /// The agent said something.
    pub(crate) spoke: bool,
    /// The agent did something that an error never does: a message with an id, a tool, a thought.
    pub(crate) worked: bool,
    /// The agent itself says that something is wrong.
    pub(crate) broken: bool,
    /// Id of the message being spoken; empty for a message without an id.
    pub(crate) speaking: Option<String>,
    /// The last message without an id, which is where agents put their errors.
    pub(crate) aside: String,
    /// How often a message followed another one with nothing between them: the agent asked its model again.
    #[serde(skip_serializing_if = "crate::json::is_zero")]
    pub(crate) again: u32,
}

/// What the agent says of its model and context.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ContextUsage {
    pub(crate) used: Option<u64>,
    pub(crate) size: Option<u64>,
    /// Cost of the whole session.
    pub(crate) cost_usd: Option<f64>,
    pub(crate) model: Option<String>,
}

/// The agent's status, in the words of the protocol's next version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stand {
    /// No turn: what the agent says belongs to none.
    Idle,
    /// Working on the prompt of this number.
    Running(u64),
    /// Working on the prompt of this number, and waiting for a person.
    RequiresAction(u64),
}

impl Acp {
    /// Records what was written to the agent.
    pub(crate) fn said(&mut self, number: u64, label: &Label, see: &RunView<'_>) -> Vec<AgentWord> {
        match label {
            Label::Handshake(INITIALIZE) => self.calls.said(number, CallPurpose::Initialize),
            Label::Handshake(NEW) => self.calls.said(number, CallPurpose::New),
            Label::Handshake(LOAD) => self.calls.said(number, CallPurpose::Load),
            Label::Handshake(RESUME) => self.calls.said(number, CallPurpose::Resume),
            Label::Handshake(step) => self.refusals.said(*step),
            Label::Prompt { .. } => {
                self.calls.said(number, CallPurpose::Prompt);
                self.turn = Signs::default();
            }
            // All open requests were answered with it.
            Label::Interrupt => return self.open_keys(see).map(AgentWord::TakesBack).collect(),
            Label::Answer(_) | Label::Close | Label::Other(_) => {}
        }
        Vec::new()
    }

    /// Returns the request that a response belongs to, and its purpose. The id is ours only in one spelling:
    /// of an agent that names requests by their numbers, one that is a text ends nothing.
    pub(crate) fn answered(&mut self, id: &Id) -> Option<(u64, CallPurpose)> {
        match id {
            Id::Number(_) => self.numbers = true,
            Id::Text(_) if self.numbers => return None,
            Id::Text(_) => {}
        }
        self.calls.answered(id)
    }

    /// Returns the agent's status. It handles prompts one at a time, so what it says belongs to the oldest
    /// unanswered one.
    pub(crate) fn stand(&self, see: &RunView<'_>) -> Stand {
        let oldest = self.calls.oldest(|purpose| *purpose == CallPurpose::Prompt);
        let open = oldest.filter(|number| see.ledger.open().iter().any(|open| open.number == *number));
        match open {
            None => Stand::Idle,
            Some(number) if self.open_keys(see).next().is_some() => Stand::RequiresAction(number),
            Some(number) => Stand::Running(number),
        }
    }

    /// Returns the ids of the agent's unanswered requests.
    pub(crate) fn open_keys(&self, see: &RunView<'_>) -> impl Iterator<Item = String> {
        let open = self.kept.iter().filter(|kept| see.ledger.asks(&kept.key));
        open.map(|kept| kept.key.clone()).collect::<Vec<_>>().into_iter()
    }

    /// Returns the session's id to be passed on, now that the agent has worked in it.
    pub(crate) fn proven_session(&mut self) -> Option<AgentWord> {
        let opened = self.opened.as_mut().filter(|opened| !opened.told)?;
        opened.told = true;
        Some(AgentWord::Session(opened.id.clone()))
    }
}
