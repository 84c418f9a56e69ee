//! What its lines mean.

use super::state::{Acp, Purpose, Signs, Stand};
use super::wire::{Cancelled, SessionUpdate, Update};
use super::{asks, ends, opens, spends};
use crate::note::{self, Note};
use crate::rpc::{self, Id, Line, RpcError};
use crate::translate::View;
use crate::word::{Named, Word};
use serde_json::Value;

/// So much of a text of its own is told.
const LONGEST_TEXT: usize = 4 << 10;
/// So long may the id of a message be that is kept.
const LONGEST_ID: usize = 200;

/// A line of its output.
pub(crate) fn line(state: &mut Acp, line: &[u8], see: &View<'_>) -> Vec<Word> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Vec::new();
    }
    match rpc::line(line) {
        None => vec![Word::Note(Note::garbage(line))],
        Some(Line::Notification { method }) => told(state, &method, line, see),
        Some(Line::Request { id, method }) => asked(state, id, &method, line, see),
        Some(Line::Answer { id }) => answered(state, &id, line, see),
        Some(Line::Failed { id, error }) => failed(state, &id, &error),
        Some(Line::Complaint(error)) => vec![complaint(&error)],
    }
}

fn told(state: &mut Acp, method: &str, line: &[u8], see: &View<'_>) -> Vec<Word> {
    match method {
        "session/update" => update(state, rpc::params(line), see),
        "$/cancel_request" => {
            let taken_back: Cancelled = rpc::params(line);
            taken_back.request_id.map(|id| Word::TakesBack(id.key())).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// It asks a person, or for something that nobody offers.
fn asked(state: &mut Acp, id: Id, method: &str, line: &[u8], see: &View<'_>) -> Vec<Word> {
    if method != "session/request_permission" || !id.fits() {
        state.refusals.add(id);
        return Vec::new();
    }
    let request = rpc::params(line);
    asks::keep(&mut state.kept, &id, &request, |key| see.ledger.asks(key));
    state.turn.worked = true;
    vec![Word::Asks(asks::ask(&id, &request, line))]
}

fn answered(state: &mut Acp, id: &Id, line: &[u8], see: &View<'_>) -> Vec<Word> {
    match state.calls.answered(id) {
        Some((_, Purpose::Initialize)) => opens::initialized(&rpc::result(line), see),
        Some((_, purpose @ (Purpose::New | Purpose::Load | Purpose::Resume))) => {
            opens::opened(state, purpose, rpc::result(line), see)
        }
        Some((number, Purpose::Prompt)) => ends::answered(state, number, &rpc::result(line)),
        None => vec![stray(id)],
    }
}

fn failed(state: &mut Acp, id: &Id, error: &RpcError) -> Vec<Word> {
    match state.calls.answered(id) {
        Some((number, Purpose::Prompt)) => ends::failed(state, number, error),
        Some((_, purpose)) => opens::refused(purpose, error),
        None => vec![stray(id)],
    }
}

/// An answer to what was not asked, or was answered already.
fn stray(id: &Id) -> Word {
    Word::Note(Note::LateEnd { named: note::short(&id.key(), 100) })
}

fn complaint(error: &RpcError) -> Word {
    let text = error.message.as_deref().unwrap_or("it could not read a line");
    Word::Note(Note::Agent { text: note::short(text, LONGEST_TEXT) })
}

/// Something about the session. What comes while no turn is under way is history, or belongs to none.
fn update(state: &mut Acp, line: SessionUpdate, see: &View<'_>) -> Vec<Word> {
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
    let mut all: Vec<Word> = Vec::new();
    if state.turn.worked || state.turn.spoke {
        all.extend(state.proven_session());
        all.push(Word::Began(Named::Number(number)));
    }
    all.extend(words);
    all
}

fn in_turn(turn: &mut Signs, kind: &str, update: &Update) -> Option<Word> {
    match kind {
        "agent_message_chunk" => chunk(turn, update),
        "tool_call" | "tool_call_update" | "agent_thought_chunk" | "plan" => {
            turn.worked = true;
            // What it says next is another message, whether that has an id or not.
            turn.speaking = None;
            None
        }
        // What it is told itself, or was: an answer begins after it.
        "user_message_chunk" => {
            turn.speaking = None;
            None
        }
        "session_info_update" => info(turn, update.meta.as_ref()?.get("codex")?),
        _ => None,
    }
}

/// A piece of a message. The answer is the last one.
fn chunk(turn: &mut Signs, update: &Update) -> Option<Word> {
    let text = update.content.as_ref()?.get("text")?.as_str()?;
    turn.spoke = true;
    match &update.message_id {
        Some(_) => turn.worked = true,
        None => turn.aside = note::short(text, LONGEST_TEXT),
    }
    let message = note::short(update.message_id.as_deref().unwrap_or_default(), LONGEST_ID);
    let same = turn.speaking.as_ref() == Some(&message);
    turn.speaking = Some(message);
    Some(if same { Word::More(text.to_owned()) } else { Word::Anew(text.to_owned()) })
}

/// What codex-acp tells of Codex beside the protocol.
fn info(turn: &mut Signs, codex: &Value) -> Option<Word> {
    if let Some(status) = codex.pointer("/threadStatus/type").and_then(Value::as_str) {
        turn.broken = status == "systemError";
    }
    let error = codex.get("error")?;
    let words = ["/message", "/additionalDetails"].map(|place| error.pointer(place).and_then(Value::as_str));
    let text = words.into_iter().flatten().collect::<Vec<_>>().join(": ");
    Some(Word::Note(Note::Agent { text: note::short(&text, LONGEST_TEXT) }))
}
