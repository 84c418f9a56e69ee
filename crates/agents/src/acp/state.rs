//! What is known of a run of an agent of this protocol, beside what the ledger knows. It is stored in cursors: every version
//! reads it.

use super::asks::Kept;
use crate::label::Label;
use crate::rpc::{Calls, Refusals};
use crate::translate::View;
use crate::word::Word;
use serde::{Deserialize, Serialize};

/// The steps of the handshake. Those that refuse come much later.
pub(crate) const INITIALIZE: u32 = 1;
pub(crate) const NEW: u32 = 2;
pub(crate) const LOAD: u32 = 3;
pub(crate) const RESUME: u32 = 4;

/// What is known of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Acp {
    pub(crate) calls: Calls<Purpose>,
    pub(crate) refusals: Refusals,
    /// The session that is open.
    pub(crate) opened: Option<Opened>,
    /// What is known of the turn under way.
    pub(crate) turn: Signs,
    /// What the answers to its requests need of them.
    pub(crate) kept: Vec<Kept>,
    pub(crate) context: Context,
    /// A limit was told, and no turn has gone well since.
    pub(crate) limited: bool,
}

/// What a request of ours was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Purpose {
    Initialize,
    New,
    Load,
    Resume,
    Prompt,
}

/// The session that is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opened {
    pub(crate) id: String,
    /// Whether its id was told: not before the agent has worked in it.
    pub(crate) told: bool,
}

/// What was seen in a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Signs {
    /// It said something.
    pub(crate) spoke: bool,
    /// It did something that no error does: a message with an id, a tool, a thought.
    pub(crate) worked: bool,
    /// It says itself that something is wrong.
    pub(crate) broken: bool,
    /// The message that it is in the middle of; one without an id is empty.
    pub(crate) speaking: Option<String>,
    /// The last that it said without an id: where it puts its errors.
    pub(crate) aside: String,
}

/// What it says of its model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Context {
    pub(crate) used: Option<u64>,
    pub(crate) size: Option<u64>,
    /// Of the whole session.
    pub(crate) cost_usd: Option<f64>,
    pub(crate) model: Option<String>,
}

/// Where an agent stands, in the words of the protocol's next version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stand {
    /// It has no turn: what it says belongs to none.
    Idle,
    /// It works on the turn of the prompt of this number.
    Running(u64),
    /// The same, and it waits for a person.
    RequiresAction(u64),
}

impl Acp {
    /// Something was said to it.
    pub(crate) fn said(&mut self, number: u64, label: &Label, see: &View<'_>) -> Vec<Word> {
        match label {
            Label::Handshake(INITIALIZE) => self.calls.said(number, Purpose::Initialize),
            Label::Handshake(NEW) => self.calls.said(number, Purpose::New),
            Label::Handshake(LOAD) => self.calls.said(number, Purpose::Load),
            Label::Handshake(RESUME) => self.calls.said(number, Purpose::Resume),
            Label::Handshake(step) => self.refusals.said(*step),
            Label::Prompt { .. } => {
                self.calls.said(number, Purpose::Prompt);
                self.turn = Signs::default();
            }
            // All that it asked was answered with it.
            Label::Interrupt => return self.open_keys(see).map(Word::TakesBack).collect(),
            Label::Answer(_) | Label::Close | Label::Other(_) => {}
        }
        Vec::new()
    }

    /// Where it stands. It works on one prompt after the other: what it says belongs to the oldest that it has not answered.
    pub(crate) fn stand(&self, see: &View<'_>) -> Stand {
        let oldest = self.calls.oldest(|purpose| *purpose == Purpose::Prompt);
        let open = oldest.filter(|number| see.ledger.open().iter().any(|open| open.number == *number));
        match open {
            None => Stand::Idle,
            Some(number) if self.open_keys(see).next().is_some() => Stand::RequiresAction(number),
            Some(number) => Stand::Running(number),
        }
    }

    /// The ids of its requests that nobody has answered.
    pub(crate) fn open_keys(&self, see: &View<'_>) -> impl Iterator<Item = String> {
        let open = self.kept.iter().filter(|kept| see.ledger.asks(&kept.key));
        open.map(|kept| kept.key.clone()).collect::<Vec<_>>().into_iter()
    }

    /// The id of its session, now that it has worked in it.
    pub(crate) fn proven_session(&mut self) -> Option<Word> {
        let opened = self.opened.as_mut().filter(|opened| !opened.told)?;
        opened.told = true;
        Some(Word::Session(opened.id.clone()))
    }
}
