//! What the agent's lines mean.

use super::state::{Acp, CallPurpose, Signs, Stand};
use super::wire::{Cancelled, SessionUpdate, Update};
use super::{asks, ends, opens, spends};
use crate::note::{self, LogNote};
use crate::rpc::{self, Id, RpcError, RpcLine};
use crate::translate::RunView;
use crate::word::{AgentWord, NamedTurn};
use serde_json::Value;

/// Longest text of the agent's own that is passed on, in bytes.
const LONGEST_TEXT: usize = 4 << 10;
/// Longest message id that is kept, in bytes.
const LONGEST_ID: usize = 200;

/// Handles a line of the agent's output.
pub(crate) fn line(state: &mut Acp, line: &[u8], see: &RunView<'_>) -> Vec<AgentWord> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Vec::new();
    }
    match rpc::line(line) {
        None => vec![AgentWord::Note(LogNote::garbage(line))],
        Some(RpcLine::Notification { method }) => told(state, &method, line, see),
        Some(RpcLine::Request { id, method }) => asked(state, id, &method, line, see),
        Some(RpcLine::Answer { id }) => answered(state, &id, line, see),
        Some(RpcLine::Failed { id, error }) => failed(state, &id, &error),
        Some(RpcLine::Complaint(error)) => vec![complaint(&error)],
    }
}

fn told(state: &mut Acp, method: &str, line: &[u8], see: &RunView<'_>) -> Vec<AgentWord> {
    match method {
        "session/update" => update(state, rpc::params(line), see),
        "$/cancel_request" => {
            let taken_back: Cancelled = rpc::params(line);
            taken_back.request_id.map(|id| AgentWord::TakesBack(id.key())).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// The agent asks a person, or asks for something that pinfold does not offer.
fn asked(state: &mut Acp, id: Id, method: &str, line: &[u8], see: &RunView<'_>) -> Vec<AgentWord> {
    if method != "session/request_permission" || !id.fits() {
        state.refusals.add(id);
        return Vec::new();
    }
    let request = rpc::params(line);
    asks::keep(&mut state.kept, &id, &request, |key| see.ledger.asks(key));
    state.turn.worked = true;
    vec![AgentWord::Asks(asks::ask(&id, &request, line))]
}

fn answered(state: &mut Acp, id: &Id, line: &[u8], see: &RunView<'_>) -> Vec<AgentWord> {
    match state.answered(id) {
        Some((_, CallPurpose::Initialize)) => opens::initialized(&rpc::result(line), see),
        Some((_, purpose @ (CallPurpose::New | CallPurpose::Load | CallPurpose::Resume))) => {
            opens::opened(state, purpose, rpc::result(line), see)
        }
        Some((number, CallPurpose::Prompt)) => ends::answered(state, number, &rpc::result(line)),
        None => vec![stray(id)],
    }
}

fn failed(state: &mut Acp, id: &Id, error: &RpcError) -> Vec<AgentWord> {
    match state.answered(id) {
        Some((number, CallPurpose::Prompt)) => ends::failed(state, number, error),
        Some((_, purpose)) => opens::refused(purpose, error),
        None => vec![stray(id)],
    }
}

/// Notes an answer to a request that we did not make, or that was answered already.
fn stray(id: &Id) -> AgentWord {
    AgentWord::Note(LogNote::LateEnd { named: note::short(&id.key(), 100) })
}

fn complaint(error: &RpcError) -> AgentWord {
    let text = error.message.as_deref().unwrap_or("it could not read a line");
    AgentWord::Note(LogNote::Agent { text: note::short(text, LONGEST_TEXT) })
}

/// Handles an update of the session. An update outside a turn is replayed history, or belongs to no turn.
fn update(state: &mut Acp, line: SessionUpdate, see: &RunView<'_>) -> Vec<AgentWord> {
    let of_another = |id: &String| state.opened.as_ref().is_some_and(|opened| opened.id != *id);
    if line.session_id.as_ref().is_some_and(of_another) {
        return Vec::new();
    }
    let Some(update) = line.update else { return Vec::new() };
    spends::update(&mut state.context, &update);
    let number = match state.stand(see) {
        Stand::Idle => return Vec::new(),
        Stand::Running(number) | Stand::RequiresAction(number) => number,
    };
    let Some(kind) = update.kind.as_deref() else { return Vec::new() };
    let words = in_turn(&mut state.turn, kind, &update);
    let mut all: Vec<AgentWord> = Vec::new();
    if state.turn.worked || state.turn.spoke {
        all.extend(state.proven_session());
        all.push(AgentWord::Began(NamedTurn::Number(number)));
    }
    all.extend(words);
    all
}

fn in_turn(turn: &mut Signs, kind: &str, update: &Update) -> Option<AgentWord> {
    match kind {
        "agent_message_chunk" => chunk(turn, update),
        "tool_call" | "tool_call_update" | "agent_thought_chunk" | "plan" => {
            turn.worked = true;
            // Whatever the agent says next is a new message, with or without an id.
            turn.speaking = None;
            None
        }
        // A message to the agent, now or replayed: the answer begins after it.
        "user_message_chunk" => {
            turn.speaking = None;
            None
        }
        "session_info_update" => info(turn, update.meta.as_ref()?.get("codex")?),
        _ => None,
    }
}

/// Handles a piece of a message. The last message is the answer.
fn chunk(turn: &mut Signs, update: &Update) -> Option<AgentWord> {
    let text = update.content.as_ref()?.get("text")?.as_str()?;
    turn.spoke = true;
    match &update.message_id {
        Some(_) => turn.worked = true,
        None => turn.aside = note::short(text, LONGEST_TEXT),
    }
    let message = note::short(update.message_id.as_deref().unwrap_or_default(), LONGEST_ID);
    let same = turn.speaking.as_ref() == Some(&message);
    if !same && !message.is_empty() && turn.speaking.is_some() {
        turn.again = turn.again.saturating_add(1);
    }
    turn.speaking = Some(message);
    Some(if same { AgentWord::More(text.to_owned()) } else { AgentWord::Anew(text.to_owned()) })
}

/// Reads what codex-acp reports of Codex outside the protocol.
fn info(turn: &mut Signs, codex: &Value) -> Option<AgentWord> {
    if let Some(status) = codex.pointer("/threadStatus/type").and_then(Value::as_str) {
        turn.broken = status == "systemError";
    }
    let error = codex.get("error")?;
    let words = ["/message", "/additionalDetails"].map(|place| error.pointer(place).and_then(Value::as_str));
    let text = words.into_iter().flatten().collect::<Vec<_>>().join(": ");
    Some(AgentWord::Note(LogNote::Agent { text: note::short(&text, LONGEST_TEXT) }))
}
