//! Formats requests, notifications and answers: one object per line.

use super::id::Id;
use crate::translate::Spoken;
use serde_json::{Value, json};

/// JSON-RPC's code for a method that is not offered.
const NOT_OFFERED: i64 = -32601;

/// Whether lines name the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Each line has `"jsonrpc":"2.0"`.
    Named,
    /// The member is left out.
    Bare,
}

impl Framing {
    /// Formats a request, with the number of its word as its id.
    pub(crate) fn request(self, number: u64, method: &str, params: &Value) -> Spoken {
        self.line(json!({ "id": number, "method": method, "params": params }))
    }

    /// Formats a notification, which is not answered.
    pub(crate) fn notification(self, method: &str, params: Option<&Value>) -> Spoken {
        let mut line = json!({ "method": method });
        if let Some(params) = params {
            line["params"] = params.clone();
        }
        self.line(line)
    }

    /// Formats the answer to a request of the agent's.
    pub(crate) fn answer(self, id: &Id, result: &Value) -> Spoken {
        self.line(json!({ "id": id, "result": result }))
    }

    /// Formats the refusal of a request that pinfold does not offer.
    pub(crate) fn refusal(self, id: &Id) -> Spoken {
        let error = json!({ "code": NOT_OFFERED, "message": "not offered" });
        self.line(json!({ "id": id, "error": error }))
    }

    fn line(self, mut line: Value) -> Spoken {
        if self == Framing::Named {
            line["jsonrpc"] = Value::from("2.0");
        }
        Spoken::line(&line.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(spoken: &Spoken) -> Value {
        assert!(!spoken.close && spoken.bytes.ends_with(b"\n"));
        assert_eq!(spoken.bytes.iter().filter(|byte| **byte == b'\n').count(), 1, "one line");
        serde_json::from_slice(&spoken.bytes).unwrap()
    }

    #[test]
    fn what_is_said_is_one_line_that_names_its_protocol_where_that_is_asked_for() {
        let text = Id::Text("a".into());
        for (framing, named) in [(Framing::Named, true), (Framing::Bare, false)] {
            let rows = [
                (
                    framing.request(3, "m", &json!({ "x": "a\nb" })),
                    json!({ "id": 3, "method": "m", "params": { "x": "a\nb" } }),
                ),
                (framing.notification("m", None), json!({ "method": "m" })),
                (framing.notification("m", Some(&json!({}))), json!({ "method": "m", "params": {} })),
                (framing.answer(&text, &json!(null)), json!({ "id": "a", "result": null })),
                (
                    framing.refusal(&Id::Number(0)),
                    json!({ "id": 0, "error": { "code": -32601, "message": "not offered" } }),
                ),
            ];
            for (spoken, mut expected) in rows {
                if named {
                    expected["jsonrpc"] = json!("2.0");
                }
                assert_eq!(said(&spoken), expected);
            }
        }
    }
}
