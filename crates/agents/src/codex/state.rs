//! What is known of a run of Codex, beyond the ledger. It is stored in cursors, so every version must read
//! it.

use super::asks::KeptRequest;
use super::commands::Commands;
use super::limits::KnownLimits;
use super::spends::ThreadSpending;
use crate::label::Label;
use crate::rpc::{Calls, Refusals};
use serde::{Deserialize, Serialize};

/// The steps of the handshake.
pub(crate) const INITIALIZE: u32 = 1;
pub(crate) const OPEN: u32 = 2;
/// Only if the thread to be opened does not exist.
pub(crate) const BEGIN: u32 = 3;
/// Asks how the last turn of a resumed thread ended: the resume itself leaves turns out.
pub(crate) const LAST_TURN: u32 = 4;
/// This many deliveries are remembered with their turns: one is under way at a time, and a late end names a
/// recent one.
const MOST_KNOWN: usize = 16;

/// What is known of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Codex {
    /// Our unanswered requests.
    pub(crate) calls: Calls<CallPurpose>,
    pub(crate) refusals: Refusals,
    /// The latest deliveries and their turns.
    known: Vec<Known>,
    /// Another client's turn.
    pub(crate) own: Option<Own>,
    /// The commands whose end was not reported yet.
    #[serde(skip_serializing_if = "Commands::is_empty")]
    pub(crate) commands: Commands,
    /// Why no thread is open.
    pub(crate) no_thread: Option<String>,
    pub(crate) limits: KnownLimits,
    pub(crate) spending: ThreadSpending,
    pub(crate) model: Option<String>,
    /// What answers to open questions will need.
    pub(crate) kept: Vec<KeptRequest>,
}

/// What a request of ours is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallPurpose {
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
    /// Certain: no answer to a message of ours can still name it.
    pub(crate) told: bool,
}

impl Codex {
    /// Records what was written to Codex.
    pub(crate) fn said(&mut self, number: u64, label: &Label) {
        match label {
            Label::Handshake(INITIALIZE) => self.calls.said(number, CallPurpose::Initialize),
            Label::Handshake(OPEN | BEGIN) => self.calls.said(number, CallPurpose::Open),
            Label::Handshake(LAST_TURN) => self.calls.said(number, CallPurpose::LastTurn),
            Label::Handshake(step) => self.refusals.said(*step),
            Label::Prompt { .. } => self.calls.said(number, CallPurpose::Prompt),
            Label::Interrupt => self.calls.said(number, CallPurpose::Interrupt),
            Label::Answer(_) | Label::Close | Label::Other(_) => {}
        }
    }

    /// Records the turn of a delivery.
    pub(crate) fn learn(&mut self, number: u64, turn: &str) {
        let surplus = (self.known.len() + 1).saturating_sub(MOST_KNOWN);
        self.known.drain(..surplus);
        self.known.push(Known { number, turn: turn.to_owned() });
    }

    /// Returns the deliveries of a turn; two if one joined it.
    pub(crate) fn numbers_of(&self, turn: &str) -> Vec<u64> {
        self.known.iter().filter(|known| known.turn == turn).map(|known| known.number).collect()
    }

    /// Returns the turn of a delivery.
    pub(crate) fn turn_of(&self, number: u64) -> Option<&str> {
        self.known.iter().rev().find(|known| known.number == number).map(|known| known.turn.as_str())
    }

    /// Returns whether it works on something that is not a turn of ours.
    pub(crate) fn works(&self) -> bool {
        self.own_turn().is_some() || self.commands.outlive()
    }

    /// Returns the turn that is certainly another client's.
    pub(crate) fn own_turn(&self) -> Option<&str> {
        self.own.as_ref().filter(|own| own.told).map(|own| own.turn.as_str())
    }
}
