//! What Claude Code's lines mean.

use super::state::{Dropped, StreamJson};
use super::wire::{
    Assistant, ControlRequest, ControlResponse, Ending, Head, Init, Lifecycle, Message, RateLimitEvent,
    System, User,
};
use super::{asks, ends, spends, wire};
use crate::note::{self, LogNote};
use crate::translate::RunView;
use crate::word::{AgentWord, NamedTurn};

/// Longest text of the agent's own that is passed on, in bytes.
const LONGEST_TEXT: usize = 4 << 10;

/// Handles a line of Claude Code's output.
pub(crate) fn line(state: &mut StreamJson, line: &[u8], see: &RunView<'_>) -> Vec<AgentWord> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Vec::new();
    }
    let head = serde_json::from_slice(line).unwrap_or_else(|_| Head::default());
    let Some(kind) = head.kind else { return vec![AgentWord::Note(LogNote::garbage(line))] };
    match (kind.as_str(), head.subtype.as_deref()) {
        ("command_lifecycle", _) => lifecycle(state, &wire::read(line), see),
        ("system", Some("init")) => init(state, wire::read(line), see),
        ("system", Some("session_state_changed")) => state_changed(state, &wire::read(line), see),
        ("system", Some("background_tasks_changed")) => tasks(state, &wire::read(line)),
        ("system", Some("api_retry")) => vec![AgentWord::Note(retry(&wire::read(line)))],
        ("assistant", _) => assistant(state, wire::read(line)).into_iter().collect(),
        ("user", _) => planned(state, &wire::read(line)).into_iter().collect(),
        ("result", _) => ends::result(state, wire::read::<Ending>(line)),
        ("rate_limit_event", _) => limit(state, &wire::read(line)).into_iter().collect(),
        ("control_request", _) => asks_for(state, &wire::read(line), line, see).into_iter().collect(),
        ("control_cancel_request", _) => taken_back(wire::read(line)).into_iter().collect(),
        ("control_response", _) => answered(state, &wire::read(line)).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Handles a line on its standard error.
pub(crate) fn complaint(state: &mut StreamJson, line: &[u8]) -> Vec<AgentWord> {
    ends::refusal(state, &String::from_utf8_lossy(line)).into_iter().collect()
}

/// Handles the progress of a message.
fn lifecycle(state: &mut StreamJson, line: &Lifecycle, see: &RunView<'_>) -> Vec<AgentWord> {
    let number = line.command_uuid.as_deref().and_then(|id| state.number_of(id));
    match (line.state.as_deref(), number) {
        (Some("queued"), Some(number)) => vec![AgentWord::Taken(number)],
        (Some("started"), Some(number)) => vec![AgentWord::Began(NamedTurn::Number(number))],
        (Some("started"), None) if line.wakeup_source.is_some() => {
            state.plans.came_true(see.at);
            vec![AgentWord::Work(state.works())]
        }
        (Some(over @ ("completed" | "cancelled")), Some(number)) => {
            // The result comes first and has ended the delivery. If none did, the next result still may.
            if see.ledger.open().iter().any(|open| open.number == number) {
                state.dropped.retain(|dropped| dropped.number != number);
                state.dropped.push(Dropped { number, cancelled: over == "cancelled" });
            }
            Vec::new()
        }
        _ => Vec::new(),
    }
}

/// A turn begins.
fn init(state: &mut StreamJson, line: Init, see: &RunView<'_>) -> Vec<AgentWord> {
    let mut words: Vec<AgentWord> = line.session_id.map(AgentWord::Session).into_iter().collect();
    state.model = line.model.map(|model| note::short(&model, 200)).or(state.model.take());
    let names = line.user_message_uuids.unwrap_or_default();
    let numbers = names.iter().filter_map(|name| state.number_of(name));
    words.extend(numbers.map(|number| AgentWord::Began(NamedTurn::Number(number))));
    // A turn of ours that has begun is over before another one begins.
    if names.is_empty() && !see.ledger.open().iter().any(|open| open.began) {
        state.own = true;
        words.push(AgentWord::Began(NamedTurn::Own));
    }
    words
}

fn state_changed(state: &mut StreamJson, line: &System, see: &RunView<'_>) -> Vec<AgentWord> {
    if line.state.as_deref() != Some("idle") {
        return Vec::new();
    }
    state.plans.forget(see.at);
    let mut words = ends::idle(state);
    words.push(AgentWord::Work(state.works()));
    words
}

/// Handles the list of background tasks, which is always complete.
fn tasks(state: &mut StreamJson, line: &System) -> Vec<AgentWord> {
    let Some(tasks) = &line.tasks else { return Vec::new() };
    state.tasks = !tasks.is_empty();
    vec![AgentWord::Work(state.works())]
}

fn retry(line: &System) -> LogNote {
    let number = |number: Option<u64>| number.map_or_else(|| "?".to_owned(), |number| number.to_string());
    let cause = line.error.as_deref().unwrap_or("unknown");
    let status = line.error_status.map(|status| format!(" {status}")).unwrap_or_default();
    let (attempt, most) = (number(line.attempt), number(line.max_retries));
    let delay = number(line.retry_delay_ms);
    let text = format!("tries again, {attempt} of {most}, in {delay} ms: {cause}{status}");
    LogNote::Agent { text: note::short(&text, LONGEST_TEXT) }
}

/// Handles a message of the model, or an error in its place. What subagents say is not the answer.
fn assistant(state: &mut StreamJson, line: Assistant) -> Option<AgentWord> {
    if line.parent_tool_use_id.is_some() {
        return None;
    }
    let message = line.message.unwrap_or_default();
    let text = text(&message);
    if let Some(error) = &line.error {
        state.failure = Some(ends::failure(Some(error), line.api_error_status, &text));
        return None;
    }
    state.context = message.usage.as_ref().and_then(spends::context).or(state.context);
    (!text.is_empty()).then_some(AgentWord::Anew(text))
}

fn text(message: &Message) -> String {
    let blocks = message.content.iter().flatten().filter(|block| block.kind.as_deref() == Some("text"));
    blocks.filter_map(|block| block.text.as_deref()).collect()
}

/// Handles a tool's result, if the tool plans ahead.
fn planned(state: &mut StreamJson, line: &User) -> Option<AgentWord> {
    state.plans.heard(line.tool_use_result.as_ref()?);
    Some(AgentWord::Work(state.works()))
}

fn limit(state: &mut StreamJson, line: &RateLimitEvent) -> Option<AgentWord> {
    state.limits.heard(line.rate_limit_info.as_ref()?).map(AgentWord::Limit)
}

/// Claude Code asks a person, or asks for something that pinfold does not offer.
fn asks_for(
    state: &mut StreamJson,
    asked: &ControlRequest,
    line: &[u8],
    see: &RunView<'_>,
) -> Option<AgentWord> {
    let key = asked.request_id.as_deref()?;
    match asked.request.as_ref() {
        Some(request) if request.subtype.as_deref() == Some("can_use_tool") => {
            asks::keep(&mut state.kept, key, request, |key| see.ledger.asks(key));
            Some(AgentWord::Asks(asks::ask(key, request, line)))
        }
        Some(_) | None => {
            state.refuse(key);
            None
        }
    }
}

fn taken_back(line: ControlRequest) -> Option<AgentWord> {
    line.request_id.map(AgentWord::TakesBack)
}

/// Handles an answer to us. Only the one to the handshake matters; an interrupt is followed by the end of the
/// turn.
fn answered(state: &StreamJson, line: &ControlResponse) -> Option<AgentWord> {
    let response = line.response.as_ref()?;
    if response.subtype.as_deref() == Some("error") {
        let error = response.error.as_deref().unwrap_or_default();
        return Some(AgentWord::Note(LogNote::Agent { text: note::short(error, LONGEST_TEXT) }));
    }
    let greets = response.request_id.as_deref().is_some_and(|request| state.greets(request));
    greets.then_some(AgentWord::Ready)
}
