//! What sessions use, and their accounts.

use crate::word::AccountHold;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a session has used since it was created, as far as its agent tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Usage {
    /// All that was read, from the vendor's cache or not.
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    /// Those of the input that came from the vendor's cache.
    #[serde(default)]
    pub cached_tokens: Option<u64>,
    pub cost_usd: Option<f64>,
    /// That of the last turn.
    pub model: Option<String>,
    /// How many tokens of its context were in use after the last turn.
    pub context_used: Option<u64>,
    pub context_size: Option<u64>,
}

/// What some turns took together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct UsageSum {
    /// What they have in common: the name of a session, an account, a model, a local day; null where none of them tells.
    pub of: Option<String>,
    /// The id of the session, where they are told apart by that.
    pub id: Option<String>,
    pub turns: u64,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cached_tokens: Option<u64>,
    pub cost_usd: Option<f64>,
}

/// An account: the credential that sessions use, never by its value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Account {
    pub account: String,
    /// How many sessions use it; archived ones do not count.
    pub sessions: u64,
    /// Why its sessions get no turns now; null where they do.
    pub held: Option<AccountHold>,
    /// The limit that was met, in the vendor's word.
    pub window: Option<String>,
    pub held_since: Option<String>,
    /// When it is tried again.
    pub resets: Option<String>,
    /// The sessions that are kept from their turns.
    pub held_sessions: Vec<String>,
    /// The vendor's limits, as far as its agents told of them.
    pub windows: Vec<Window>,
    /// What it spent today, by the local day.
    pub spent_today_usd: Option<f64>,
    /// What it may spend on a day.
    pub budget_usd: Option<f64>,
}

/// A limit of a vendor's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Window {
    /// In the vendor's word: `five_hour`.
    pub window: String,
    /// How much of it is used, as a part of one.
    pub used: Option<f64>,
    pub resets: Option<String>,
    /// When that was told.
    pub told: String,
}
