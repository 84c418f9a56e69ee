//! What is known of a run of pi, beyond the ledger. It is stored in cursors, so every version must read it.

use crate::label::Label;
use crate::rpc::{Calls, Refusals};
use crate::turn::{Spent, TurnFailure};
use crate::word::AgentWord;
use serde::{Deserialize, Serialize};

/// The step of the handshake that makes pi ready.
pub(crate) const GREET: u32 = 1;
/// The step that asks whether a failed turn is over.
pub(crate) const CHECK: u32 = 2;

/// What is known of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Pi {
    pub(crate) calls: Calls<CallPurpose>,
    pub(crate) refusals: Refusals,
    /// The session's id, until it is passed on: a session without a message has no file.
    pub(crate) session: Option<String>,
    /// The number of the prompt whose turn is under way.
    pub(crate) turn: Option<u64>,
    /// How the model's last message ended.
    pub(crate) last: Option<LastMessage>,
    /// Why the turn failed, if pi does not retry it.
    pub(crate) failed: Option<TurnFailure>,
    /// The turn's cost so far.
    pub(crate) spent: Spent,
    pub(crate) model: Option<String>,
    /// Tokens of context in use, as last reported.
    pub(crate) context: Option<u64>,
    /// A limit was reported, and no turn has gone well since.
    pub(crate) limited: bool,
}

/// What a line of ours is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallPurpose {
    Greet,
    Check,
    Prompt,
    Abort,
}

/// How a message of the model ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LastMessage {
    Stopped,
    Aborted,
    Failed(TurnFailure),
}

impl Pi {
    /// Records what was written to pi.
    pub(crate) fn said(&mut self, number: u64, label: &Label) {
        match label {
            Label::Handshake(GREET) => self.calls.said(number, CallPurpose::Greet),
            Label::Handshake(CHECK) => self.calls.said(number, CallPurpose::Check),
            Label::Handshake(step) => self.refusals.said(*step),
            Label::Prompt { .. } => {
                self.calls.said(number, CallPurpose::Prompt);
                (self.last, self.failed, self.spent) = (None, None, Spent::default());
            }
            Label::Interrupt => self.calls.said(number, CallPurpose::Abort),
            Label::Answer(_) | Label::Close | Label::Other(_) => {}
        }
    }

    /// Returns the session's id to be passed on, now that the session has a message.
    pub(crate) fn proven_session(&mut self) -> Option<AgentWord> {
        self.session.take().map(AgentWord::Session)
    }
}
