//! The fields of Claude Code's lines that pinfold reads: first the kind of a line, then its own fields. Each
//! is read separately: a field of another type counts as missing, and fields that are not named here cost
//! nothing.

use crate::json::lenient;
pub(crate) use crate::json::read;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The kind of a line.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Head {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(crate) kind: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) subtype: Option<String>,
}

/// `command_lifecycle`: the progress of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Lifecycle {
    #[serde(deserialize_with = "lenient")]
    pub(crate) command_uuid: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) state: Option<String>,
    /// Present if Claude Code planned the message itself.
    #[serde(deserialize_with = "lenient")]
    pub(crate) wakeup_source: Option<String>,
}

/// `system/init`, with which a turn begins.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Init {
    #[serde(deserialize_with = "lenient")]
    pub(crate) session_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) model: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) user_message_uuids: Option<Vec<String>>,
}

/// The fields of the smaller `system` lines.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct System {
    #[serde(deserialize_with = "lenient")]
    pub(crate) state: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) tasks: Option<Vec<Value>>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) attempt: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) max_retries: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) retry_delay_ms: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) error_status: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) error: Option<String>,
}

/// `assistant`: a message of the model, or of Claude Code in its place.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Assistant {
    /// Present if a subagent speaks.
    #[serde(deserialize_with = "lenient")]
    pub(crate) parent_tool_use_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) message: Option<Message>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) error: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) api_error_status: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Message {
    #[serde(deserialize_with = "lenient")]
    pub(crate) content: Option<Vec<Block>>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) usage: Option<Tokens>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Block {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(crate) kind: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) text: Option<String>,
}

/// Tokens, as the vendor's API counts them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Tokens {
    #[serde(deserialize_with = "lenient")]
    pub(crate) input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) cache_creation_input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) cache_read_input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) output_tokens: Option<u64>,
}

/// `user`: a tool's result, as far as it plans ahead.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct User {
    #[serde(deserialize_with = "lenient")]
    pub(crate) tool_use_result: Option<ToolResult>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ToolResult {
    /// Id of the plan, if there is a time, or if the plan is cancelled.
    #[serde(deserialize_with = "lenient")]
    pub(crate) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) recurring: Option<bool>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) next_fire_at: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) scheduled_for: Option<f64>,
}

/// `result`: the end of a turn.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ending {
    #[serde(deserialize_with = "lenient")]
    pub(crate) subtype: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) session_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) user_message_uuids: Option<Vec<String>>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) is_error: Option<bool>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) terminal_reason: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) num_turns: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) local_command: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) result: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) errors: Option<Vec<String>>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) api_error_status: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) usage: Option<Tokens>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) total_cost_usd: Option<f64>,
    #[serde(rename = "modelUsage", deserialize_with = "lenient")]
    pub(crate) of_session: Option<BTreeMap<String, ModelUsage>>,
    #[serde(rename = "model_usage_since_last_result", deserialize_with = "lenient")]
    pub(crate) of_turn: Option<BTreeMap<String, ModelUsage>>,
}

/// What one model cost.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ModelUsage {
    #[serde(deserialize_with = "lenient")]
    pub(crate) input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) cache_read_input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) cache_creation_input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) output_tokens: Option<u64>,
    #[serde(rename = "costUSD", deserialize_with = "lenient")]
    pub(crate) cost_usd: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) context_window: Option<u64>,
}

/// `rate_limit_event`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RateLimitEvent {
    #[serde(deserialize_with = "lenient")]
    pub(crate) rate_limit_info: Option<RateLimit>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct RateLimit {
    #[serde(deserialize_with = "lenient")]
    pub(crate) status: Option<String>,
    /// Seconds since the Unix epoch.
    #[serde(deserialize_with = "lenient")]
    pub(crate) resets_at: Option<i64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) rate_limit_type: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) utilization: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) is_using_overage: Option<bool>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) unified_windows: Option<BTreeMap<String, Window>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Window {
    #[serde(deserialize_with = "lenient")]
    pub(crate) utilization: Option<f64>,
}

/// `control_request` and `control_cancel_request`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ControlRequest {
    #[serde(deserialize_with = "lenient")]
    pub(crate) request_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) request: Option<Asked>,
}

/// What Claude Code asks.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    #[serde(deserialize_with = "lenient")]
    pub(crate) subtype: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) tool_name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) input: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) permission_suggestions: Option<Vec<Value>>,
}

/// `control_response`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ControlResponse {
    #[serde(deserialize_with = "lenient")]
    pub(crate) response: Option<Response>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Response {
    #[serde(deserialize_with = "lenient")]
    pub(crate) subtype: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) request_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) error: Option<String>,
}
