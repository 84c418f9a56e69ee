//! A turn: whose it is, how it ended, what came of it and what it cost.

use crate::message_word;
use pinfold_core::MessageId;
use serde::{Deserialize, Serialize};

/// One delivery of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Which message.
    #[serde(with = "message_word")]
    pub message: MessageId,
    /// The number of the delivery.
    pub delivery: u64,
}

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// That of a message.
    Of(Delivery),
    /// One that the agent began by itself.
    Own,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// With an answer.
    Done,
    /// With an error.
    Failed(Failure),
    /// By an interrupt that was said in this turn.
    Interrupted,
    /// As if by an interrupt, and none was said in this turn.
    CancelledUnasked {
        /// An interrupt was said that found no turn to end, so that it may have hit this one: deliver again, at no cost.
        crossed: bool,
    },
}

/// Whose doing the end of a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// The agent's own.
    Itself,
    /// It was asked to end, or interrupted: how it exits says nothing of its turn.
    Us,
}

/// Why a turn failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of reason it is.
    pub kind: FailureKind,
    /// The agent's own words.
    pub text: String,
}

impl Failure {
    /// That of a turn in which a line could not be read.
    pub(crate) fn too_long() -> Failure {
        let most = crate::lines::LONGEST_LINE >> 20;
        let text = format!("a line of its output has more than {most} MiB, and cannot be read");
        Failure { kind: FailureKind::LineTooLong, text }
    }
}

/// What kind of reason a turn failed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// A usage limit.
    Limit,
    /// The login is missing or dead.
    Login,
    /// There is no such model.
    Model,
    /// The vendor's servers, or the way there.
    Server,
    /// The vendor has more to do than it can: later it works.
    Overloaded,
    /// A line of output was too long to be read.
    LineTooLong,
    /// Any other.
    Other,
}

/// What an agent answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// So many bytes of it came before, as [`AnswerPart`](crate::Observation::AnswerPart).
    pub before: u64,
    /// The rest, or all of it.
    pub text: String,
    /// Whether nothing was left out because it was too long.
    pub whole: bool,
}

/// What a turn cost, as far as the agent tells.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Of this turn alone.
    pub turn: Spent,
    /// Of the whole vendor session up to now; what this turn took is the difference.
    pub session: Spent,
    /// The model.
    pub model: Option<String>,
    /// How many tokens of its context are in use.
    pub context_used: Option<u64>,
    /// How many there are.
    pub context_size: Option<u64>,
}

/// Tokens and money.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// Tokens read, from the vendor's cache or not.
    pub input_tokens: Option<u64>,
    /// Tokens written.
    pub output_tokens: Option<u64>,
    /// Those of the tokens read that came from the vendor's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// US dollars.
    pub cost_usd: Option<f64>,
}
