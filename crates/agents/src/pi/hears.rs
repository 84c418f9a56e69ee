//! What pi's lines mean.

use super::ends;
use super::state::{CHECK, CallPurpose, LastMessage, Pi};
use super::wire::{ExtensionAsks, Head, Message, MessageEnd, Response, Retry};
use crate::blames;
use crate::json;
use crate::note::{self, LogNote};
use crate::observation::SessionRefused;
use crate::translate::RunView;
use crate::turn::TurnFailure;
use crate::word::{AgentWord, NamedTurn, Want};

/// Longest text of the agent's own that is passed on, in bytes.
pub(crate) const LONGEST_TEXT: usize = 4 << 10;
/// What pi says of a session that it does not have, or that it opens in another directory only.
const REFUSALS: [&str; 2] = ["No session found matching", "Fork this session"];
/// Methods by which an extension waits for an answer.
const QUESTIONS: [&str; 4] = ["select", "confirm", "input", "editor"];

/// Handles a line of pi's output.
pub(crate) fn line(state: &mut Pi, line: &[u8], see: &RunView<'_>) -> Vec<AgentWord> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Vec::new();
    }
    let Some(kind) = json::read::<Head>(line).kind else {
        let refused = complaint(line);
        return std::iter::once(AgentWord::Note(LogNote::garbage(line))).chain(refused).collect();
    };
    match kind.as_str() {
        "response" => answered(state, json::read(line)),
        "agent_start" => began(state, see).into_iter().collect(),
        "message_end" => message(state, &json::read::<MessageEnd>(line).message.unwrap_or_default()),
        "agent_end" => ended(state),
        "auto_retry_start" => {
            state.failed = None;
            vec![AgentWord::Note(retry(&json::read(line)))]
        }
        "auto_retry_end" if json::read::<Retry>(line).success != Some(true) => ends::failed(state),
        "extension_ui_request" => {
            asks(state, json::read(line));
            Vec::new()
        }
        _ => Vec::new(),
    }
}

/// Handles a line on pi's standard error.
pub(crate) fn complaint(line: &[u8]) -> Option<AgentWord> {
    let line = String::from_utf8_lossy(line);
    let unknown = REFUSALS.iter().any(|words| line.contains(words));
    unknown.then_some(AgentWord::SessionRefused(SessionRefused::Unknown))
}

/// Handles an answer to a line of ours.
fn answered(state: &mut Pi, line: Response) -> Vec<AgentWord> {
    let call = line.id.as_ref().and_then(|id| state.calls.answered(id));
    let error = note::short(line.error.as_deref().unwrap_or_default(), LONGEST_TEXT);
    match (call, line.success == Some(true)) {
        (Some((_, CallPurpose::Greet)), true) => {
            state.session = line.data.and_then(|data| data.session_id);
            vec![AgentWord::Ready]
        }
        (Some((_, CallPurpose::Greet)), false) => {
            vec![AgentWord::Note(LogNote::Agent { text: error }), AgentWord::Want(Want::Close)]
        }
        (Some((number, CallPurpose::Prompt)), true) => vec![AgentWord::Taken(number)],
        (Some((number, CallPurpose::Prompt)), false) => ends::refused(state, number, error),
        // If pi were retrying the turn, it would have said so by now.
        (Some((_, CallPurpose::Check)), _) => ends::failed(state),
        (Some((_, CallPurpose::Abort)), true) => Vec::new(),
        (Some((_, CallPurpose::Abort)) | None, false) => {
            vec![AgentWord::Note(LogNote::Agent { text: error })]
        }
        (None, true) => Vec::new(),
    }
}

/// The turn of the oldest open prompt begins, or begins again.
fn began(state: &mut Pi, see: &RunView<'_>) -> Option<AgentWord> {
    let open = see.ledger.open();
    let same = open.iter().find(|open| Some(open.number) == state.turn);
    state.turn = same.or(open.first()).map(|open| open.number);
    state.turn.map(|number| AgentWord::Began(NamedTurn::Number(number)))
}

/// Handles the end of a message. The model's last message is the answer.
fn message(state: &mut Pi, message: &Message) -> Vec<AgentWord> {
    if message.role.as_deref() != Some("assistant") || state.turn.is_none() {
        return Vec::new();
    }
    ends::spend(state, message);
    let texts = message.content.iter().flatten().filter(|part| part["type"] == "text");
    let text: String = texts.filter_map(|part| part["text"].as_str()).collect();
    let reason = message.stop_reason.as_deref();
    let error = note::short(message.error_message.as_deref().unwrap_or_default(), LONGEST_TEXT);
    state.last = Some(match reason {
        Some("aborted") => LastMessage::Aborted,
        Some("stop") => LastMessage::Stopped,
        Some("error") => LastMessage::Failed(TurnFailure { kind: blames::kind(&error), text: error }),
        other => {
            let text = format!("it stopped: {}", note::short(other.unwrap_or("without a reason"), 100));
            LastMessage::Failed(TurnFailure { kind: blames::kind(""), text })
        }
    });
    let mut words: Vec<AgentWord> = state.proven_session().into_iter().collect();
    words.extend((!text.is_empty()).then_some(AgentWord::Anew(text)));
    words
}

/// The model is done, or has failed. After a failure pi may retry, and says so next.
fn ended(state: &mut Pi) -> Vec<AgentWord> {
    match state.last.take() {
        Some(LastMessage::Failed(failure)) if state.turn.is_some() => {
            state.failed = Some(failure);
            vec![AgentWord::Want(Want::Handshake(CHECK))]
        }
        last => ends::ended(state, last.as_ref()),
    }
}

fn retry(line: &Retry) -> LogNote {
    let number = |number: Option<u64>| number.map_or_else(|| "?".to_owned(), |number| number.to_string());
    let (attempt, most, delay) = (number(line.attempt), number(line.max_attempts), number(line.delay_ms));
    let cause = line.error_message.as_deref().unwrap_or("unknown");
    let text = format!("tries again, {attempt} of {most}, in {delay} ms: {cause}");
    LogNote::Agent { text: note::short(&text, LONGEST_TEXT) }
}

/// An extension asks something, and would wait forever.
fn asks(state: &mut Pi, line: ExtensionAsks) {
    let waits = line.method.as_deref().is_some_and(|method| QUESTIONS.contains(&method));
    if let Some(id) = line.id.filter(|_| waits) {
        state.refusals.add(id);
    }
}
