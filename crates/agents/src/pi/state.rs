//! What is known of a run of pi beside what the ledger knows. It is stored in cursors: every version reads it.

use crate::label::Label;
use crate::rpc::{Calls, Refusals};
use crate::turn::{Failure, Spent};
use crate::word::Word;
use serde::{Deserialize, Serialize};

/// The step of the handshake that makes it ready.
pub(crate) const GREET: u32 = 1;
/// The one that asks whether a turn that failed is over.
pub(crate) const CHECK: u32 = 2;

/// What is known of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Pi {
    pub(crate) calls: Calls<Purpose>,
    pub(crate) refusals: Refusals,
    /// The id of its session, until it is told: a session without a message has no file.
    pub(crate) session: Option<String>,
    /// The prompt whose turn it is in.
    pub(crate) turn: Option<u64>,
    /// How the last message of the model ended.
    pub(crate) last: Option<Last>,
    /// Why the turn failed, if it is not tried again.
    pub(crate) failed: Option<Failure>,
    /// What the turn cost so far.
    pub(crate) spent: Spent,
    pub(crate) model: Option<String>,
    /// How many tokens of its context were in use last.
    pub(crate) context: Option<u64>,
    /// A limit was told, and no turn has gone well since.
    pub(crate) limited: bool,
}

/// What a line of ours was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Purpose {
    Greet,
    Check,
    Prompt,
    Abort,
}

/// How a message of the model ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Last {
    Stopped,
    Aborted,
    Failed(Failure),
}

impl Pi {
    /// Something was said to it.
    pub(crate) fn said(&mut self, number: u64, label: &Label) {
        match label {
            Label::Handshake(GREET) => self.calls.said(number, Purpose::Greet),
            Label::Handshake(CHECK) => self.calls.said(number, Purpose::Check),
            Label::Handshake(step) => self.refusals.said(*step),
            Label::Prompt { .. } => {
                self.calls.said(number, Purpose::Prompt);
                (self.last, self.failed, self.spent) = (None, None, Spent::default());
            }
            Label::Interrupt => self.calls.said(number, Purpose::Abort),
            Label::Answer(_) | Label::Close | Label::Other(_) => {}
        }
    }

    /// The id of its session, now that it has a message.
    pub(crate) fn proven_session(&mut self) -> Option<Word> {
        self.session.take().map(Word::Session)
    }
}
