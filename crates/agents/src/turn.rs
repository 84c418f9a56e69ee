//! A turn: whose it is, how it ended, its answer and its cost.

use crate::message_word;
use pinfold_core::MessageId;
use serde::{Deserialize, Serialize};

/// One delivery of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The message's id.
    #[serde(with = "message_word")]
    pub message: MessageId,
    /// The delivery's number.
    pub delivery: u64,
}

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnOwner {
    /// The turn of a message.
    Of(Delivery),
    /// A turn that the agent began by itself.
    Own,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnOutcome {
    /// Done, with or without an answer.
    Done,
    /// With an error.
    Failed(TurnFailure),
    /// By an interrupt that was said during this turn.
    Interrupted,
    /// As if by an interrupt, though none was said during this turn.
    CancelledUnasked {
        /// An earlier interrupt found no turn to end and may have hit this one: deliver again, at no cost.
        crossed: bool,
    },
}

/// Who ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// The agent ended by itself.
    Itself,
    /// The agent was asked to end, or interrupted; its exit says nothing of its turn.
    Us,
}

/// Why a turn failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnFailure {
    /// The kind of reason.
    pub kind: FailureKind,
    /// The agent's own words.
    pub text: String,
}

impl TurnFailure {
    /// Returns the failure of a turn in which a line could not be read.
    pub(crate) fn too_long() -> TurnFailure {
        let most = crate::lines::LONGEST_LINE >> 20;
        let text = format!("a line of its output has more than {most} MiB, and cannot be read");
        TurnFailure { kind: FailureKind::LineTooLong, text }
    }
}

/// The kind of reason for a failed turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// A usage limit.
    Limit,
    /// The login is missing or has expired.
    Login,
    /// No such model.
    Model,
    /// The vendor's servers failed, or could not be reached.
    Server,
    /// The vendor is overloaded; a later try may work.
    Overloaded,
    /// A line of output was too long to read.
    LineTooLong,
    /// Any other reason.
    Other,
}

/// An agent's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnAnswer {
    /// How many bytes of it came before, as [`AnswerPart`](crate::Observation::AnswerPart).
    pub before: u64,
    /// The rest, or the whole answer.
    pub text: String,
    /// False if something was left out because it was too long.
    pub whole: bool,
}

/// What a turn cost, as far as the agent says.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Cost of this turn alone.
    pub turn: Spent,
    /// Cost of the whole vendor session so far; this turn's cost is the difference.
    pub session: Spent,
    /// The model.
    pub model: Option<String>,
    /// Tokens of context in use.
    pub context_used: Option<u64>,
    /// Size of the context in tokens.
    pub context_size: Option<u64>,
}

/// Tokens and money.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// Tokens read, cached or not.
    pub input_tokens: Option<u64>,
    /// Tokens written.
    pub output_tokens: Option<u64>,
    /// The tokens read that came from the vendor's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Cost in US dollars.
    pub cost_usd: Option<f64>,
}
