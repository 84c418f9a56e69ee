//! How the output of an agent of protocol `exec` is read: rules about lines of JSON, as data.
//!
//! A rule counts for a line that has all the values of `when`. Places are JSON pointers (RFC 6901): `/item/text`.

use crate::turn::{Spent, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What some lines say.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reads {
    /// Counts for lines that have these values at these places.
    pub when: BTreeMap<String, Value>,
    /// Where the id of the vendor session is.
    pub session: Option<String>,
    /// Where the text of the answer is.
    pub answer: Option<String>,
    /// How several texts become one answer.
    pub joined: Joined,
    /// Where the text of an error is.
    pub error: Option<String>,
    /// Such a line ends the turn.
    pub ends: Option<Ends>,
    /// Where it says what the turn cost.
    pub usage: Option<UsageAt>,
}

/// How several texts become one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Joined {
    /// The last one is the answer.
    #[default]
    Last,
    /// They are pieces of one text.
    Pieces,
}

/// How a line ends the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ends {
    /// With an answer.
    Done,
    /// With an error.
    Failed,
}

/// Where a line says what the turn cost.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UsageAt {
    /// Tokens read.
    pub input_tokens: Option<String>,
    /// Tokens written.
    pub output_tokens: Option<String>,
    /// Those of the tokens read that came from the vendor's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<String>,
    /// US dollars.
    pub cost_usd: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The numbers are those of the whole vendor session, not of the turn.
    pub cumulative: bool,
}

/// What the words of an error mean: each is a part of the text, as the agent writes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recognises {
    /// Another process has the vendor session.
    pub busy: Vec<String>,
    /// There is no vendor session of this id.
    pub unknown_session: Vec<String>,
    /// Somebody has to log in.
    pub login: Vec<String>,
    /// A usage limit.
    pub limit: Vec<String>,
}

impl Reads {
    /// Whether this rule is about this line.
    pub(crate) fn counts_for(&self, line: &Value) -> bool {
        self.when.iter().all(|(place, value)| line.pointer(place) == Some(value))
    }
}

impl UsageAt {
    /// What a line says that the turn cost.
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
