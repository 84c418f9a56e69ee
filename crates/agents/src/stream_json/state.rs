//! What is known of a run of Claude Code, beyond the ledger. It is stored in cursors, so every version must
//! read it.

use super::asks::KeptRequest;
use super::limits::KnownLimits;
use super::plans::Plans;
use super::uuid;
use crate::label::Label;
use crate::translate::RunView;
use crate::turn::{Delivery, TurnFailure};
use crate::word::Want;
use serde::{Deserialize, Serialize};

/// The handshake step that makes it ready. Later steps refuse requests that pinfold does not offer.
pub(crate) const INITIALIZE: u32 = 1;
/// This many deliveries are remembered by their ids: one is under way at a time, and a late end names a
/// recent one.
const MOST_KNOWN: usize = 16;
/// No more requests are kept waiting to be refused.
const MOST_REFUSED: usize = 64;
/// Longest request id that is kept, in bytes; those seen have 36.
const LONGEST_KEY: usize = 1 << 10;

/// What is known of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StreamJson {
    /// The number of the last handshake.
    greeted: Option<u64>,
    /// The latest deliveries, with the ids by which Claude Code names them.
    known: Vec<Known>,
    /// Deliveries that are over without a result so far.
    pub(crate) dropped: Vec<Dropped>,
    /// Whether a turn of its own is under way.
    pub(crate) own: bool,
    /// Whether it said that it does not open its session.
    pub(crate) session_refused: bool,
    /// Why the current turn is about to fail.
    pub(crate) failure: Option<TurnFailure>,
    pub(crate) limits: KnownLimits,
    /// Whether it has tasks in the background.
    pub(crate) tasks: bool,
    pub(crate) plans: Plans,
    pub(crate) model: Option<String>,
    /// Tokens of context in use, as last reported.
    pub(crate) context: Option<u64>,
    /// What answers to open requests will need.
    pub(crate) kept: Vec<KeptRequest>,
    refusals: Vec<Refusal>,
    /// How many requests have been refused.
    refused: u32,
}

/// A delivery and its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    number: u64,
    id: String,
}

/// A delivery that Claude Code is done with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Dropped {
    pub(crate) number: u64,
    pub(crate) cancelled: bool,
}

/// A request that pinfold does not offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Refusal {
    step: u32,
    key: String,
}

impl StreamJson {
    /// Records what was written to Claude Code.
    pub(crate) fn said(&mut self, number: u64, label: &Label) {
        match label {
            Label::Handshake(INITIALIZE) => self.greeted = Some(number),
            Label::Handshake(step) => self.refusals.retain(|refusal| refusal.step != *step),
            Label::Prompt { message, delivery } => {
                let id = uuid::of(Delivery { message: *message, delivery: *delivery });
                let surplus = (self.known.len() + 1).saturating_sub(MOST_KNOWN);
                self.known.drain(..surplus);
                self.known.push(Known { number, id });
            }
            Label::Answer(_) | Label::Interrupt | Label::Close | Label::Other(_) => {}
        }
    }

    /// Returns the number of the delivery with this id.
    pub(crate) fn number_of(&self, id: &str) -> Option<u64> {
        self.known.iter().rev().find(|known| known.id == id).map(|known| known.number)
    }

    /// Returns whether this answers the last handshake.
    pub(crate) fn greets(&self, request: &str) -> bool {
        self.greeted.is_some_and(|number| request_id(number) == request)
    }

    /// Adds a request that pinfold does not offer.
    pub(crate) fn refuse(&mut self, key: &str) {
        if self.refusals.len() < MOST_REFUSED && key.len() <= LONGEST_KEY {
            self.refused = self.refused.saturating_add(1);
            let step = INITIALIZE.saturating_add(self.refused);
            self.refusals.push(Refusal { step, key: key.to_owned() });
        }
    }

    /// Returns the request that this step refuses.
    pub(crate) fn refusal(&self, step: u32) -> Option<&str> {
        self.refusals.iter().find(|refusal| refusal.step == step).map(|refusal| refusal.key.as_str())
    }

    /// Returns the refusal to be said next, if nothing else needs to be said.
    pub(crate) fn next_refusal(&self, see: &RunView<'_>) -> Option<Want> {
        let first = self.refusals.first().filter(|_| see.ledger.ready() && see.ledger.want().is_none())?;
        Some(Want::Handshake(first.step))
    }

    /// Returns whether work of its own is under way or planned.
    pub(crate) fn works(&self) -> bool {
        self.tasks || !self.plans.is_empty()
    }
}

/// Returns the id of a request of ours.
pub(crate) fn request_id(number: u64) -> String {
    format!("pinfold-{number}")
}
