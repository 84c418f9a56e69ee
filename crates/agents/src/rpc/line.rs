//! Reads a line of JSON-RPC, with or without its `jsonrpc` member.

use super::id::Id;
use crate::json::lenient;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// One line. Its content is read by [`params`] and [`result`], once its type is known.
#[derive(Debug, PartialEq)]
pub(crate) enum RpcLine {
    /// The agent asks, and waits for the answer.
    Request { id: Id, method: String },
    /// The agent reports something.
    Notification { method: String },
    /// The agent answers.
    Answer { id: Id },
    /// The agent answers with an error.
    Failed { id: Id, error: RpcError },
    /// The agent says that it could not read a line of ours.
    Complaint(RpcError),
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RpcError {
    #[serde(deserialize_with = "lenient")]
    pub(crate) code: Option<i64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) message: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) data: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Head {
    #[serde(deserialize_with = "lenient")]
    id: Option<Id>,
    #[serde(deserialize_with = "lenient")]
    method: Option<String>,
    #[serde(deserialize_with = "present")]
    result: bool,
    #[serde(deserialize_with = "error")]
    error: Option<RpcError>,
}

#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned + Default", default)]
struct Carries<T> {
    #[serde(deserialize_with = "lenient")]
    params: Option<T>,
    #[serde(deserialize_with = "lenient")]
    result: Option<T>,
}

impl<T> Default for Carries<T> {
    fn default() -> Carries<T> {
        Carries { params: None, result: None }
    }
}

/// Parses a line; `None` if it is not JSON-RPC.
pub(crate) fn line(line: &[u8]) -> Option<RpcLine> {
    let Head { id, method, result, error } = serde_json::from_slice(line).ok()?;
    match (method, id, error) {
        (Some(method), Some(id), _) => Some(RpcLine::Request { id, method }),
        (Some(method), None, _) => Some(RpcLine::Notification { method }),
        (None, Some(id), Some(error)) => Some(RpcLine::Failed { id, error }),
        (None, None, Some(error)) => Some(RpcLine::Complaint(error)),
        (None, Some(id), None) if result => Some(RpcLine::Answer { id }),
        (None, _, None) => None,
    }
}

/// Reads the parameters of a request or a notification.
pub(crate) fn params<T: DeserializeOwned + Default>(line: &[u8]) -> T {
    crate::json::read::<Carries<T>>(line).params.unwrap_or_default()
}

/// Reads the result of an answer.
pub(crate) fn result<T: DeserializeOwned + Default>(line: &[u8]) -> T {
    crate::json::read::<Carries<T>>(line).result.unwrap_or_default()
}

/// The presence of a result, even `null`, is what makes an answer.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(from).map(|_| true)
}

/// An error of any type except `null` counts.
fn error<'de, D: Deserializer<'de>>(from: D) -> Result<Option<RpcError>, D::Error> {
    let value = Value::deserialize(from)?;
    if value.is_null() {
        return Ok(None);
    }
    let text = value.as_str().map(str::to_owned);
    let error = RpcError::deserialize(value).unwrap_or_default();
    Ok(Some(RpcError { message: error.message.or(text), ..error }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(code: Option<i64>, message: Option<&str>) -> RpcError {
        RpcError { code, message: message.map(str::to_owned), data: None }
    }

    #[test]
    fn a_line_is_what_its_fields_make_it() {
        let (seven, text) = (Id::Number(7), Id::Text("a".into()));
        let asks = |id: &Id| RpcLine::Request { id: id.clone(), method: "m".into() };
        let rows = [
            (r#"{"jsonrpc":"2.0","id":7,"method":"m"}"#, Some(asks(&seven))),
            (r#"{"method":"m","params":{"id":9},"id":"a"}"#, Some(asks(&text))),
            (r#"{"method":"m","id":0}"#, Some(asks(&Id::Number(0)))),
            (r#"{"method":"m"}"#, Some(RpcLine::Notification { method: "m".into() })),
            (r#"{"method":"m","id":null}"#, Some(RpcLine::Notification { method: "m".into() })),
            (r#"{"id":7,"result":{}}"#, Some(RpcLine::Answer { id: seven.clone() })),
            (r#"{"result":null,"id":7}"#, Some(RpcLine::Answer { id: seven.clone() })),
            (r#"{"id":7,"result":{},"error":null}"#, Some(RpcLine::Answer { id: seven.clone() })),
            (
                r#"{"id":7,"error":{"code":-32603,"message":"no"}}"#,
                Some(RpcLine::Failed { id: seven.clone(), error: failed(Some(-32603), Some("no")) }),
            ),
            (
                r#"{"id":7,"error":{"code":"x","message":7}}"#,
                Some(RpcLine::Failed { id: seven.clone(), error: failed(None, None) }),
            ),
            (
                r#"{"id":7,"error":"no"}"#,
                Some(RpcLine::Failed { id: seven, error: failed(None, Some("no")) }),
            ),
            (r#"{"id":null,"error":{"code":-32700}}"#, Some(RpcLine::Complaint(failed(Some(-32700), None)))),
            (r#"{"id":7}"#, None),
            (r#"{"result":{}}"#, None),
            ("{}", None),
            ("[]", None),
            (r#"{"method":"m"} {"method":"m"}"#, None),
            (r#"{"method":"m","method":"m"}"#, None),
            (r#"{"method":"m""#, None),
            ("garbage", None),
        ];
        for (text, expected) in rows {
            assert_eq!(line(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn what_a_line_carries_is_read_by_what_it_should_be() {
        #[derive(Debug, Default, PartialEq, Deserialize)]
        #[serde(default)]
        struct Named {
            name: String,
        }
        let named = |name: &str| Named { name: name.into() };
        assert_eq!(params::<Named>(br#"{"method":"m","params":{"name":"x"}}"#), named("x"));
        assert_eq!(result::<Named>(br#"{"id":1,"result":{"name":"x","more":[]}}"#), named("x"));
        for odd in [r#"{"params":7}"#, r#"{"params":{"name":7}}"#, "{}", "garbage"] {
            assert_eq!(params::<Named>(odd.as_bytes()), named(""), "{odd}");
        }
    }
}
