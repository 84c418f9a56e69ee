//! How the output of an agent of protocol `exec` is read: rules about JSON lines, as data.
//!
//! A rule applies to a line that has all the values of `when`. Places are JSON pointers (RFC 6901):
//! `/item/text`.

use crate::turn::{Spent, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// One rule: which lines it applies to, and what they say.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReadRule {
    /// The values, by place, that a line must have.
    pub when: BTreeMap<String, Value>,
    /// Place of the vendor session's id.
    pub session: Option<String>,
    /// Place of the answer's text.
    pub answer: Option<String>,
    /// How several texts become one answer.
    pub joined: Joined,
    /// Place of an error's text.
    pub error: Option<String>,
    /// Set if such a line ends the turn.
    pub ends: Option<EndsTurn>,
    /// Places that say what the turn cost.
    pub usage: Option<UsageAt>,
}

/// How several texts become one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Joined {
    /// The last text is the answer.
    #[default]
    Last,
    /// The texts are pieces of one answer.
    Pieces,
    /// They are pieces of one answer, which begins again after a pause if its stream broke off.
    Retried,
}

/// How a line ends the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndsTurn {
    /// With an answer.
    Done,
    /// With an error.
    Failed,
}

/// The places at which a line says what the turn cost.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UsageAt {
    /// Tokens read.
    pub input_tokens: Option<String>,
    /// Tokens written.
    pub output_tokens: Option<String>,
    /// The tokens read that came from the vendor's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<String>,
    /// Cost in US dollars.
    pub cost_usd: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The numbers count the whole vendor session, not the turn.
    pub cumulative: bool,
}

impl ReadRule {
    /// Returns whether this rule applies to a line.
    pub(crate) fn counts_for(&self, line: &Value) -> bool {
        self.when.iter().all(|(place, value)| line.pointer(place) == Some(value))
    }
}

impl UsageAt {
    /// Returns what the turn cost according to a line.
    pub(crate) fn read(&self, line: &Value) -> Usage {
        let number = |place: &Option<String>| line.pointer(place.as_ref()?)?.as_u64();
        let spent = Spent {
            input_tokens: number(&self.input_tokens),
            output_tokens: number(&self.output_tokens),
            cached_tokens: number(&self.cached_tokens),
            cost_usd: text_place(&self.cost_usd, line).and_then(Value::as_f64),
        };
        let model = text_place(&self.model, line).and_then(Value::as_str).map(str::to_owned);
        let both = if self.cumulative { (Spent::default(), spent) } else { (spent, Spent::default()) };
        Usage { turn: both.0, session: both.1, model, ..Usage::default() }
    }
}

fn text_place<'l>(place: &Option<String>, line: &'l Value) -> Option<&'l Value> {
    line.pointer(place.as_ref()?)
}
