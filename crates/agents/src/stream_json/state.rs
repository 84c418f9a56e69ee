//! What is known of a run of Claude Code beside what the ledger knows. It is stored in cursors: every version reads it.

use super::asks::Kept;
use super::limits::Limits;
use super::plans::Plans;
use super::uuid;
use crate::label::Label;
use crate::translate::View;
use crate::turn::{Delivery, Failure};
use crate::word::Want;
use serde::{Deserialize, Serialize};

/// The step of the handshake that makes it ready. Later ones refuse what it asks for and nobody offers.
pub(crate) const INITIALIZE: u32 = 1;
/// So many deliveries are known by their ids: one is under way at a time, and a late end names one of the last.
const MOST_KNOWN: usize = 16;
/// More requests that nobody offers to answer do not wait.
const MOST_REFUSED: usize = 64;
/// So long may an id of a request be that is kept; those seen have 36 bytes.
const LONGEST_KEY: usize = 1 << 10;

/// What is known of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StreamJson {
    /// The number under which the last handshake was said.
    greeted: Option<u64>,
    /// The last deliveries, under the ids by which it names them.
    known: Vec<Known>,
    /// Deliveries that it is done with, without a result so far.
    pub(crate) dropped: Vec<Dropped>,
    /// Whether a turn of its own is under way.
    pub(crate) own: bool,
    /// Whether it said that it does not open its session.
    pub(crate) session_refused: bool,
    /// Why the turn under way is about to fail.
    pub(crate) failure: Option<Failure>,
    pub(crate) limits: Limits,
    /// Whether it has tasks in the background.
    pub(crate) tasks: bool,
    pub(crate) plans: Plans,
    pub(crate) model: Option<String>,
    /// How many tokens of its context were in use last.
    pub(crate) context: Option<u64>,
    /// What the answers to its requests need of them.
    pub(crate) kept: Vec<Kept>,
    refusals: Vec<Refusal>,
    /// How many there were.
    refused: u32,
}

/// A delivery and its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    number: u64,
    id: String,
}

/// A delivery that it is done with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Dropped {
    pub(crate) number: u64,
    pub(crate) cancelled: bool,
}

/// A request that nobody offers to answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Refusal {
    step: u32,
    key: String,
}

impl StreamJson {
    /// Something was said to it.
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

    /// The number of the delivery that it names.
    pub(crate) fn number_of(&self, id: &str) -> Option<u64> {
        self.known.iter().rev().find(|known| known.id == id).map(|known| known.number)
    }

    /// Whether this answers the last handshake.
    pub(crate) fn greets(&self, request: &str) -> bool {
        self.greeted.is_some_and(|number| request_id(number) == request)
    }

    /// It asked for something that nobody offers.
    pub(crate) fn refuse(&mut self, key: &str) {
        if self.refusals.len() < MOST_REFUSED && key.len() <= LONGEST_KEY {
            self.refused = self.refused.saturating_add(1);
            let step = INITIALIZE.saturating_add(self.refused);
            self.refusals.push(Refusal { step, key: key.to_owned() });
        }
    }

    /// The request that this step refuses.
    pub(crate) fn refusal(&self, step: u32) -> Option<&str> {
        self.refusals.iter().find(|refusal| refusal.step == step).map(|refusal| refusal.key.as_str())
    }

    /// The refusal to be said next, if nothing else is.
    pub(crate) fn next_refusal(&self, see: &View<'_>) -> Option<Want> {
        let first = self.refusals.first().filter(|_| see.ledger.ready() && see.ledger.want().is_none())?;
        Some(Want::Handshake(first.step))
    }

    /// Whether work of its own is under way, or planned.
    pub(crate) fn works(&self) -> bool {
        self.tasks || !self.plans.is_empty()
    }
}

/// The id of a request of ours.
pub(crate) fn request_id(number: u64) -> String {
    format!("pinfold-{number}")
}
