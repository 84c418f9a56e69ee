//! The fields of the agent's lines that pinfold reads.

use crate::json::lenient;
use crate::rpc::Id;
use serde::Deserialize;
use serde_json::Value;

/// The answer to `initialize`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Initialized {
    #[serde(deserialize_with = "lenient")]
    pub(crate) protocol_version: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) agent_capabilities: Option<Capabilities>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Capabilities {
    #[serde(deserialize_with = "lenient")]
    pub(crate) load_session: Option<bool>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) session_capabilities: Option<SessionCapabilities>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SessionCapabilities {
    /// An object if the agent can resume.
    #[serde(deserialize_with = "lenient")]
    pub(crate) resume: Option<serde_json::Map<String, Value>>,
}

/// The answer to `session/new`, `session/load` and `session/resume`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SessionOpened {
    #[serde(deserialize_with = "lenient")]
    pub(crate) session_id: Option<String>,
}

/// The answer to `session/prompt`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Prompted {
    #[serde(deserialize_with = "lenient")]
    pub(crate) stop_reason: Option<String>,
    /// `null` and missing mean different things.
    #[serde(deserialize_with = "lenient")]
    pub(crate) usage: Option<Value>,
    #[serde(rename = "_meta", deserialize_with = "lenient")]
    pub(crate) meta: Option<Value>,
}

/// Tokens, in the protocol's field names or in Gemini's.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Tokens {
    #[serde(alias = "input_tokens", deserialize_with = "lenient")]
    pub(crate) input_tokens: Option<u64>,
    #[serde(alias = "output_tokens", deserialize_with = "lenient")]
    pub(crate) output_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) thought_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) cached_read_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) total_tokens: Option<u64>,
}

/// `session/update`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SessionUpdate {
    #[serde(deserialize_with = "lenient")]
    pub(crate) session_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) update: Option<Update>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Update {
    #[serde(rename = "sessionUpdate", deserialize_with = "lenient")]
    pub(crate) kind: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) message_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) content: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) used: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) size: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) cost: Option<Value>,
    #[serde(rename = "_meta", deserialize_with = "lenient")]
    pub(crate) meta: Option<Value>,
}

/// `session/request_permission`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Permission {
    #[serde(deserialize_with = "lenient")]
    pub(crate) tool_call: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) options: Option<Vec<PermissionOption>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PermissionOption {
    #[serde(deserialize_with = "lenient")]
    pub(crate) option_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) kind: Option<String>,
}

/// `$/cancel_request`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Cancelled {
    #[serde(deserialize_with = "lenient")]
    pub(crate) request_id: Option<Id>,
}
