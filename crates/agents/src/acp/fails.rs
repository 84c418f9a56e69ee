//! What the agent's errors mean.

use crate::blames;
use crate::note;
use crate::rpc::RpcError;
use crate::turn::{FailureKind, TurnFailure};
use serde_json::Value;

/// Longest error text that is kept, in bytes.
pub(crate) const LONGEST_ERROR: usize = 4 << 10;

/// The protocol's code for a missing login.
const NO_LOGIN: i64 = -32000;

/// Translates the error of a request.
pub(crate) fn failure(error: &RpcError) -> TurnFailure {
    let text = text(error);
    TurnFailure { kind: kind(error, &text), text }
}

/// Makes a failure of a turn that did not report one, from what the agent said instead.
pub(crate) fn unproven(said: &str) -> TurnFailure {
    let said = said.trim();
    let nothing = "it ended the turn, and nothing shows that it worked on it";
    let text = if said.is_empty() { nothing } else { said };
    TurnFailure { kind: blames::kind(text), text: note::short(text, LONGEST_ERROR) }
}

fn kind(error: &RpcError, text: &str) -> FailureKind {
    match (of_data(error, "errorKind"), error.code) {
        (Some("rate_limit" | "billing_error"), _) | (_, Some(429)) => FailureKind::Limit,
        (Some("authentication_failed"), _) | (_, Some(NO_LOGIN | 401 | 403)) => FailureKind::Login,
        (Some("model_not_found"), _) => FailureKind::Model,
        (Some("overloaded"), _) | (_, Some(503 | 529)) => FailureKind::Overloaded,
        (Some("server_error"), _) | (_, Some(500..600)) => FailureKind::Server,
        (Some(_) | None, _) if of_data(error, "codexErrorInfo") == Some("usageLimitExceeded") => {
            FailureKind::Limit
        }
        (Some(_) | None, _) => blames::kind(text),
    }
}

/// Returns the error's message, with more detail where the message alone says nothing.
fn text(error: &RpcError) -> String {
    let message = error.message.as_deref().unwrap_or_default();
    let message = message.strip_prefix("Internal error: ").unwrap_or(message);
    let more = of_data(error, "message").or_else(|| of_data(error, "details"));
    let text = match (message, more) {
        ("" | "Internal error", Some(more)) => more.to_owned(),
        ("", None) => format!("error {}", error.code.unwrap_or_default()),
        (message, _) => message.to_owned(),
    };
    note::short(&text, LONGEST_ERROR)
}

fn of_data<'e>(error: &'e RpcError, place: &str) -> Option<&'e str> {
    error.data.as_ref()?.get(place).and_then(Value::as_str)
}
