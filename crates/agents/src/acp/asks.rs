//! What the agent asks a person, and how that is answered: by one of the options that came with the request.

use super::wire::Permission;
use crate::intent::{CannotSay, Consent, RequestReply};
use crate::request::RequestKind;
use crate::rpc::Id;
use crate::word::RawRequest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// As many requests as can be open.
const MOST_OPEN: usize = 64;
/// Longest option id that is kept, in bytes; those seen have at most 20.
const LONGEST_OPTION: usize = 256;
/// Longest title that is kept, in characters.
const LONGEST_TITLE: usize = 200;

/// The options of an open request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptRequest {
    pub(crate) key: String,
    #[serde(default)]
    allow_once: Option<String>,
    #[serde(default)]
    allow_always: Option<String>,
    #[serde(default)]
    reject_once: Option<String>,
    #[serde(default)]
    reject_always: Option<String>,
}

/// Returns a request to use a tool as a person sees it.
pub(crate) fn ask(id: &Id, request: &Permission, line: &[u8]) -> RawRequest {
    let tool = request.tool_call.as_ref();
    let text = |place: &str| tool.and_then(|tool| tool.get(place)?.as_str()).filter(|text| !text.is_empty());
    let name = text("name").or_else(|| text("kind"));
    let title = match (name, text("title")) {
        (Some(name), Some(title)) => format!("{name}: {title}"),
        (one, other) => one.or(other).unwrap_or("a tool").to_owned(),
    };
    let input = tool.and_then(|tool| tool.get("rawInput")).filter(|input| !input.is_null());
    let detail = input.and_then(|input| serde_json::to_string_pretty(input).ok());
    let raw = String::from_utf8_lossy(line).into_owned();
    RawRequest { key: id.key(), kind: RequestKind::Permission, title: in_a_line(&title), detail, raw }
}

/// Keeps what the answer will need, and forgets requests that are no longer open.
pub(crate) fn keep(kept: &mut Vec<KeptRequest>, id: &Id, request: &Permission, open: impl Fn(&str) -> bool) {
    let key = id.key();
    kept.retain(|kept| open(&kept.key) && kept.key != key);
    let options = || request.options.iter().flatten();
    let option = |kind: &str| {
        let of_kind = options().find(|option| option.kind.as_deref() == Some(kind))?;
        of_kind.option_id.clone().filter(|id| id.len() <= LONGEST_OPTION)
    };
    if kept.len() < MOST_OPEN {
        kept.push(KeptRequest {
            key,
            allow_once: option("allow_once"),
            allow_always: option("allow_always"),
            reject_once: option("reject_once"),
            reject_always: option("reject_always"),
        });
    }
}

/// Returns the answer to a request.
pub(crate) fn answer(reply: &RequestReply, kept: Option<&KeptRequest>) -> Result<Value, CannotSay> {
    let option = kept.and_then(|kept| match (reply.verdict, reply.always) {
        (Consent::Allow, false) => kept.allow_once.as_ref().or(kept.allow_always.as_ref()),
        (Consent::Allow, true) => kept.allow_always.as_ref().or(kept.allow_once.as_ref()),
        (Consent::Deny, false) => kept.reject_once.as_ref().or(kept.reject_always.as_ref()),
        (Consent::Deny, true) => kept.reject_always.as_ref().or(kept.reject_once.as_ref()),
    });
    match (option, reply.verdict) {
        (Some(option), _) => Ok(json!({ "outcome": { "outcome": "selected", "optionId": option } })),
        (None, Consent::Deny) => Ok(cancelled()),
        (None, Consent::Allow) => Err(CannotSay::NotOffered),
    }
}

/// Returns the answer to a request whose turn is being interrupted.
pub(crate) fn cancelled() -> Value {
    json!({ "outcome": { "outcome": "cancelled" } })
}

/// Cuts a text to what fits in a line.
fn in_a_line(text: &str) -> String {
    let line: String = text.chars().take(LONGEST_TITLE).collect();
    line.replace(char::is_control, " ")
}
