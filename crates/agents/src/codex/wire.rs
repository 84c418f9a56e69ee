//! The fields of Codex's lines that pinfold reads.

use crate::json::lenient;
use serde::Deserialize;
use serde_json::Value;

/// The answer to `thread/start`, `thread/resume`, `thread/turns/list` and `turn/start`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Opened {
    #[serde(deserialize_with = "lenient")]
    pub(crate) thread: Option<Thread>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) model: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) turn: Option<Turn>,
    /// Only in `thread/turns/list`, newest first.
    #[serde(deserialize_with = "lenient")]
    pub(crate) data: Option<Vec<Turn>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Thread {
    #[serde(deserialize_with = "lenient")]
    pub(crate) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) turns: Option<Vec<Turn>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Turn {
    #[serde(deserialize_with = "lenient")]
    pub(crate) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) status: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) error: Option<TurnError>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct TurnError {
    #[serde(deserialize_with = "lenient")]
    pub(crate) message: Option<String>,
    /// A word, or an object with one key.
    #[serde(deserialize_with = "lenient")]
    pub(crate) codex_error_info: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) additional_details: Option<String>,
}

/// The parameters of notifications and requests.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Told {
    #[serde(deserialize_with = "lenient")]
    pub(crate) thread_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) turn_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) turn: Option<Turn>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) item: Option<Item>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) error: Option<TurnError>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) will_retry: Option<bool>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) token_usage: Option<TokenUsage>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) rate_limits: Option<RateLimits>,
    /// Id of a resolved request.
    #[serde(deserialize_with = "lenient")]
    pub(crate) request_id: Option<crate::rpc::Id>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Item {
    #[serde(deserialize_with = "lenient")]
    pub(crate) id: Option<String>,
    /// The process of a command that runs; a command that waits for permission has none.
    #[serde(rename = "processId", deserialize_with = "lenient")]
    pub(crate) process: Option<String>,
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(crate) kind: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) text: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct TokenUsage {
    #[serde(deserialize_with = "lenient")]
    pub(crate) total: Option<Tokens>,
    /// Tokens of one model call.
    #[serde(deserialize_with = "lenient")]
    pub(crate) last: Option<Tokens>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) model_context_window: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Tokens {
    #[serde(deserialize_with = "lenient")]
    pub(crate) total_tokens: Option<u64>,
    /// Cached tokens included.
    #[serde(deserialize_with = "lenient")]
    pub(crate) input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) output_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) cached_input_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RateLimits {
    #[serde(deserialize_with = "lenient")]
    pub(crate) primary: Option<Window>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) secondary: Option<Window>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Window {
    #[serde(deserialize_with = "lenient")]
    pub(crate) used_percent: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) window_duration_mins: Option<u64>,
    /// Seconds since the Unix epoch.
    #[serde(deserialize_with = "lenient")]
    pub(crate) resets_at: Option<i64>,
}

/// What Codex asks a person.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Asked {
    #[serde(deserialize_with = "lenient")]
    pub(crate) command: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) cwd: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) reason: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) grant_root: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) questions: Option<Vec<Question>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Question {
    #[serde(deserialize_with = "lenient")]
    pub(crate) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) question: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) options: Option<Vec<Choice>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Choice {
    #[serde(deserialize_with = "lenient")]
    pub(crate) label: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) description: Option<String>,
}
