//! The fields of pi's lines that pinfold reads: first the kind of a line, then its own fields.

use crate::json::lenient;
use crate::rpc::Id;
use serde::Deserialize;
use serde_json::Value;

/// The kind of a line.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Head {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(crate) kind: Option<String>,
}

/// `response`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Response {
    #[serde(deserialize_with = "lenient")]
    pub(crate) id: Option<Id>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) success: Option<bool>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) error: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) data: Option<State>,
}

/// The answer to `get_state`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct State {
    #[serde(deserialize_with = "lenient")]
    pub(crate) session_id: Option<String>,
}

/// `message_end`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct MessageEnd {
    #[serde(deserialize_with = "lenient")]
    pub(crate) message: Option<Message>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Message {
    #[serde(deserialize_with = "lenient")]
    pub(crate) role: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) content: Option<Vec<Value>>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) model: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) stop_reason: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) error_message: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) usage: Option<Usage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Usage {
    #[serde(deserialize_with = "lenient")]
    pub(crate) input: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) output: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) cache_read: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) cache_write: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) cost: Option<Value>,
}

/// `auto_retry_start` and `auto_retry_end`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Retry {
    #[serde(deserialize_with = "lenient")]
    pub(crate) attempt: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) max_attempts: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) delay_ms: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) error_message: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) success: Option<bool>,
}

/// `extension_ui_request`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ExtensionAsks {
    #[serde(deserialize_with = "lenient")]
    pub(crate) id: Option<Id>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) method: Option<String>,
}
