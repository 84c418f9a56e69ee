//! What is written to Claude Code. It exits on a line that is not JSON.

use super::asks;
use super::state::{INITIALIZE, StreamJson, request_id};
use super::uuid;
use crate::exec::prompt_text;
use crate::intent::{CannotSay, Intent, Prompt, RequestReply};
use crate::preset::ChatCommands;
use crate::translate::{RunView, Spoken};
use crate::turn::Delivery;
use serde_json::{Value, json};

/// Returns the bytes that express an intent.
pub(crate) fn say(
    state: &StreamJson,
    number: u64,
    intent: &Intent,
    see: &RunView<'_>,
) -> Result<Spoken, CannotSay> {
    let line = match intent {
        Intent::Handshake { step: INITIALIZE } => control(number, "initialize"),
        Intent::Handshake { step } => refusal(state.refusal(*step).ok_or(CannotSay::NotWanted)?),
        Intent::Prompt(prompt) => message(prompt, &see.setup.chat),
        Intent::Answer(reply) => answer(state, reply, see).ok_or(CannotSay::NoSuchRequest)?,
        Intent::Interrupt => control(number, "interrupt"),
        Intent::Close => return Ok(Spoken::end()),
    };
    Ok(Spoken::line(&line.to_string()))
}

fn control(number: u64, subtype: &str) -> Value {
    json!({ "type": "control_request", "request_id": request_id(number), "request": { "subtype": subtype } })
}

fn message(prompt: &Prompt, chat: &ChatCommands) -> Value {
    let id = uuid::of(Delivery { message: prompt.message, delivery: prompt.delivery });
    json!({ "type": "user", "message": { "role": "user", "content": prompt_text(prompt, chat) }, "uuid": id })
}

fn answer(state: &StreamJson, reply: &RequestReply, see: &RunView<'_>) -> Option<Value> {
    let key = &see.ledger.request(reply.request)?.key;
    let kept = state.kept.iter().find(|kept| kept.key == *key);
    let response = json!({ "subtype": "success", "request_id": key, "response": asks::answer(reply, kept) });
    Some(json!({ "type": "control_response", "response": response }))
}

/// Refuses a request that pinfold does not offer; Claude Code would wait forever.
fn refusal(key: &str) -> Value {
    let response = json!({ "subtype": "error", "request_id": key, "error": "not offered" });
    json!({ "type": "control_response", "response": response })
}
