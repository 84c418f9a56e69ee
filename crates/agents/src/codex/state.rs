//! What is known of a run of Codex beside what the ledger knows. It is stored in cursors: every version reads it.

use super::asks::Kept;
use super::limits::Limits;
use super::spends::Spending;
use crate::label::Label;
use crate::rpc::{Calls, Refusals};
use serde::{Deserialize, Serialize};

/// The steps of the handshake.
pub(crate) const INITIALIZE: u32 = 1;
pub(crate) const OPEN: u32 = 2;
/// Only where the thread that was to be opened does not exist.
pub(crate) const BEGIN: u32 = 3;
/// How the last turn of a thread ended that was resumed: the resume itself is told to leave turns out.
pub(crate) const LAST_TURN: u32 = 4;
/// So many deliveries are known by their turns: one is under way at a time, and a late end names one of the last.
const MOST_KNOWN: usize = 16;

/// What is known of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Codex {
    /// Our requests that are not answered.
    pub(crate) calls: Calls<Purpose>,
    pub(crate) refusals: Refusals,
    /// The last deliveries, by the turns that they are.
    known: Vec<Known>,
    /// A turn of another client.
    pub(crate) own: Option<Own>,
    /// Why there is no thread.
    pub(crate) no_thread: Option<String>,
    pub(crate) limits: Limits,
    pub(crate) spending: Spending,
    pub(crate) model: Option<String>,
    /// What the answers to its questions need of them.
    pub(crate) kept: Vec<Kept>,
}

/// What a request of ours was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Purpose {
    Initialize,
    Open,
    LastTurn,
    Prompt,
    Interrupt,
}

/// A delivery and its turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    number: u64,
    turn: String,
}

/// A turn that is not known to be one of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Own {
    pub(crate) turn: String,
    /// It is certain: no answer to a message of ours can name it any more.
    pub(crate) told: bool,
}

impl Codex {
    /// Something was said to it.
    pub(crate) fn said(&mut self, number: u64, label: &Label) {
        match label {
            Label::Handshake(INITIALIZE) => self.calls.said(number, Purpose::Initialize),
            Label::Handshake(OPEN | BEGIN) => self.calls.said(number, Purpose::Open),
            Label::Handshake(LAST_TURN) => self.calls.said(number, Purpose::LastTurn),
            Label::Handshake(step) => self.refusals.said(*step),
            Label::Prompt { .. } => self.calls.said(number, Purpose::Prompt),
            Label::Interrupt => self.calls.said(number, Purpose::Interrupt),
            Label::Answer(_) | Label::Close | Label::Other(_) => {}
        }
    }

    /// A delivery is this turn.
    pub(crate) fn learn(&mut self, number: u64, turn: &str) {
        let surplus = (self.known.len() + 1).saturating_sub(MOST_KNOWN);
        self.known.drain(..surplus);
        self.known.push(Known { number, turn: turn.to_owned() });
    }

    /// The deliveries that a turn is: two, where one joined it.
    pub(crate) fn numbers_of(&self, turn: &str) -> Vec<u64> {
        self.known.iter().filter(|known| known.turn == turn).map(|known| known.number).collect()
    }

    /// The turn of a delivery.
    pub(crate) fn turn_of(&self, number: u64) -> Option<&str> {
        self.known.iter().rev().find(|known| known.number == number).map(|known| known.turn.as_str())
    }

    /// The turn that is certain to be another client's.
    pub(crate) fn own_turn(&self) -> Option<&str> {
        self.own.as_ref().filter(|own| own.told).map(|own| own.turn.as_str())
    }
}
