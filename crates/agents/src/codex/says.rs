//! What is written to Codex.

use super::asks;
use super::state::{BEGIN, Codex, INITIALIZE, LAST_TURN, OPEN};
use crate::exec::prompt_text;
use crate::intent::{CannotSay, Intent, Prompt, RequestReply};
use crate::rpc::{Framing, Id};
use crate::translate::{RunView, Spoken};
use serde_json::{Value, json};

const BARE: Framing = Framing::Bare;

/// Returns the bytes that express an intent.
pub(crate) fn say(
    state: &Codex,
    number: u64,
    intent: &Intent,
    see: &RunView<'_>,
) -> Result<Spoken, CannotSay> {
    match intent {
        Intent::Handshake { step: INITIALIZE } => Ok(initialize(number)),
        Intent::Handshake { step: OPEN } => Ok(open(number, see)),
        Intent::Handshake { step: BEGIN } => Ok(begin(number, see)),
        Intent::Handshake { step: LAST_TURN } => Ok(last_turn(number, see)),
        Intent::Handshake { step } => {
            state.refusals.at(*step).map(|id| BARE.refusal(id)).ok_or(CannotSay::NotWanted)
        }
        Intent::Prompt(prompt) => message(state, number, prompt, see),
        Intent::Answer(reply) => answer(state, reply, see).ok_or(CannotSay::NoSuchRequest),
        Intent::Interrupt => interrupt(state, number, see),
        Intent::Close => Ok(Spoken::end()),
    }
}

fn initialize(number: u64) -> Spoken {
    let version = env!("CARGO_PKG_VERSION");
    let client = json!({ "name": "pinfold", "title": "pinfold", "version": version });
    BARE.request(number, "initialize", &json!({ "clientInfo": client }))
}

/// Two lines in one word, because nothing answers the first. The preset says what a thread may do; where it
/// is silent, the user's own configuration does.
fn open(number: u64, see: &RunView<'_>) -> Spoken {
    let mut spoken = BARE.notification("initialized", None);
    let opens = match &see.setup.vendor_session {
        Some(thread) => resume(number, thread, see),
        None => begin(number, see),
    };
    spoken.bytes.extend(opens.bytes);
    spoken
}

fn begin(number: u64, see: &RunView<'_>) -> Spoken {
    BARE.request(number, "thread/start", &thread(see))
}

fn resume(number: u64, id: &str, see: &RunView<'_>) -> Spoken {
    let mut params = thread(see);
    params["threadId"] = json!(id);
    // The whole history would be one line.
    params["excludeTurns"] = json!(true);
    BARE.request(number, "thread/resume", &params)
}

/// Asks only how the turn ended; its content may be long.
fn last_turn(number: u64, see: &RunView<'_>) -> Spoken {
    let thread = see.ledger.session().unwrap_or_default();
    let params = json!({ "threadId": thread, "limit": 1, "sortDirection": "desc", "itemsView": "notLoaded" });
    BARE.request(number, "thread/turns/list", &params)
}

/// Returns the parameters with which a thread is opened.
fn thread(see: &RunView<'_>) -> Value {
    let mut params = json!(see.setup.thread);
    params["cwd"] = json!(see.setup.dir);
    params
}

/// During another client's turn, the message would become part of that turn.
fn message(state: &Codex, number: u64, prompt: &Prompt, see: &RunView<'_>) -> Result<Spoken, CannotSay> {
    if state.own.is_some() {
        return Err(CannotSay::TurnUnderWay);
    }
    let input = json!([{ "type": "text", "text": prompt_text(prompt, &see.setup.chat) }]);
    let thread = see.ledger.session().unwrap_or_default();
    Ok(BARE.request(number, "turn/start", &json!({ "threadId": thread, "input": input })))
}

/// Only a turn whose id is known can be interrupted.
fn interrupt(state: &Codex, number: u64, see: &RunView<'_>) -> Result<Spoken, CannotSay> {
    let ours = see.ledger.open().iter().find_map(|open| state.turn_of(open.number));
    let turn = ours.or(state.own_turn()).ok_or(CannotSay::NoTurn)?;
    let thread = see.ledger.session().unwrap_or_default();
    Ok(BARE.request(number, "turn/interrupt", &json!({ "threadId": thread, "turnId": turn })))
}

fn answer(state: &Codex, reply: &RequestReply, see: &RunView<'_>) -> Option<Spoken> {
    let key = &see.ledger.request(reply.request)?.key;
    let kept = state.kept.iter().find(|kept| kept.key == *key);
    Some(BARE.answer(&Id::of_key(key)?, &asks::answer(reply, kept)))
}
