//! What is written to the agent.

use super::asks;
use super::opens::VERSION;
use super::state::{Acp, INITIALIZE, LOAD, NEW, RESUME};
use crate::exec::prompt_text;
use crate::intent::{CannotSay, Intent, Prompt, RequestReply};
use crate::preset::ChatCommands;
use crate::rpc::{Framing, Id};
use crate::translate::{RunView, Spoken};
use serde_json::{Value, json};

const LINES: Framing = Framing::Named;

/// Returns the bytes that express an intent.
pub(crate) fn say(state: &Acp, number: u64, intent: &Intent, see: &RunView<'_>) -> Result<Spoken, CannotSay> {
    match intent {
        Intent::Handshake { step } => handshake(state, number, *step, see),
        Intent::Prompt(prompt) => {
            let meta = json!({ "traceparent": traceparent(prompt) });
            let params = json!({ "sessionId": session(state)?, "prompt": content(prompt, &see.setup.chat), "_meta": meta });
            Ok(LINES.request(number, "session/prompt", &params))
        }
        Intent::Answer(reply) => answer(state, reply, see),
        Intent::Interrupt => interrupt(state, see),
        Intent::Close => Ok(Spoken::end()),
    }
}

/// Returns a message's text, and its files as the protocol names them.
fn content(prompt: &Prompt, chat: &ChatCommands) -> Value {
    let words = Prompt { files: Vec::new(), ..prompt.clone() };
    let mut parts = vec![json!({ "type": "text", "text": prompt_text(&words, chat) })];
    parts.extend(prompt.files.iter().map(|file| {
        let name = file.rsplit('/').next().unwrap_or(file);
        json!({ "type": "resource_link", "uri": format!("file://{}", escaped(file)), "name": name })
    }));
    Value::from(parts)
}

/// Returns a `traceparent`: the message is the trace, this delivery of it a span.
fn traceparent(prompt: &Prompt) -> String {
    format!("00-{:032x}-{:016x}-01", prompt.message.0, prompt.delivery.max(1))
}

/// Percent-encodes a path for use in a URI.
fn escaped(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    path.bytes().map(one).collect()
}

fn handshake(state: &Acp, number: u64, step: u32, see: &RunView<'_>) -> Result<Spoken, CannotSay> {
    let known = || see.ledger.session().ok_or(CannotSay::NotWanted);
    let dir = &see.setup.dir;
    let servers: [Value; 0] = [];
    let with_session = |method| {
        let params = json!({ "sessionId": known()?, "cwd": dir, "mcpServers": servers });
        Ok(LINES.request(number, method, &params))
    };
    match step {
        INITIALIZE => Ok(LINES.request(number, "initialize", &introduction())),
        NEW => Ok(LINES.request(number, "session/new", &json!({ "cwd": dir, "mcpServers": servers }))),
        LOAD => with_session("session/load"),
        RESUME => with_session("session/resume"),
        other => Ok(LINES.refusal(state.refusals.at(other).ok_or(CannotSay::NotWanted)?)),
    }
}

/// Introduces pinfold; neither files nor terminals are offered, because the agent has its own.
fn introduction() -> Value {
    json!({
        "protocolVersion": VERSION,
        "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false },
        "clientInfo": { "name": "pinfold", "version": env!("CARGO_PKG_VERSION") },
    })
}

fn answer(state: &Acp, reply: &RequestReply, see: &RunView<'_>) -> Result<Spoken, CannotSay> {
    let request = see.ledger.request(reply.request).ok_or(CannotSay::NoSuchRequest)?;
    let id = Id::of_key(&request.key).ok_or(CannotSay::NoSuchRequest)?;
    let kept = state.kept.iter().find(|kept| kept.key == request.key);
    Ok(LINES.answer(&id, &asks::answer(reply, kept)?))
}

/// Interrupts the turn. All open requests of the turn must be answered too, or the agent waits for them.
fn interrupt(state: &Acp, see: &RunView<'_>) -> Result<Spoken, CannotSay> {
    let params = json!({ "sessionId": session(state)? });
    let mut spoken = LINES.notification("session/cancel", Some(&params));
    for id in state.open_keys(see).filter_map(|key| Id::of_key(&key)) {
        spoken.bytes.extend(LINES.answer(&id, &asks::cancelled()).bytes);
    }
    Ok(spoken)
}

fn session(state: &Acp) -> Result<&str, CannotSay> {
    state.opened.as_ref().map(|opened| opened.id.as_str()).ok_or(CannotSay::NotReady)
}
