//! How turns end, and why they fail.

use super::state::Codex;
use super::wire::{Turn, TurnError};
use crate::note::{self, LogNote};
use crate::turn::{FailureKind, TurnFailure};
use crate::word::{AgentWord, How, NamedTurn, ReportedEnd};
use serde_json::Value;

/// Longest error text that is kept, in bytes.
const LONGEST_ERROR: usize = 4 << 10;

/// Handles `turn/completed`.
pub(crate) fn completed(state: &mut Codex, turn: &Turn) -> Vec<AgentWord> {
    let (Some(id), Some(how)) = (turn.id.as_deref(), how(turn)) else { return Vec::new() };
    let mut words: Vec<AgentWord> = what_it_means(state, &how).into_iter().collect();
    state.commands.turn_ended(how == How::Cancelled);
    // Before the end of the turn, after which it would count as idle.
    words.extend(state.commands.outlive().then_some(AgentWord::Work(true)));
    let numbers = state.numbers_of(id);
    let own = state.own.take_if(|own| own.turn == id);
    let mut usage = None;
    if own.is_some() || !numbers.is_empty() {
        usage = Some(state.spending.end(state.model.as_deref()));
    }
    let known = !numbers.is_empty();
    words.extend(numbers.into_iter().map(|number| {
        let turn = NamedTurn::Number(number);
        AgentWord::Ended(ReportedEnd { turn, how: how.clone(), text: None, usage: usage.take() })
    }));
    match own {
        Some(own) => {
            words.extend((!own.told).then_some(AgentWord::Began(NamedTurn::Own)));
            words.push(AgentWord::Ended(ReportedEnd { turn: NamedTurn::Own, how, text: None, usage }));
            words.push(AgentWord::Work(state.works()));
        }
        None if !known => words.push(AgentWord::Note(LogNote::LateEnd { named: note::short(id, 100) })),
        None => {}
    }
    words
}

/// Returns a note on how the thread's last turn ended before this run. It explains to a reader why the model
/// is told something again.
pub(crate) fn of_before(turn: Option<&Turn>) -> Option<AgentWord> {
    let text = match how(turn?)? {
        How::Done => return None,
        How::Cancelled => "the last turn of its thread was interrupted".to_owned(),
        How::Failed(TurnFailure { text, .. }) => format!("the last turn of its thread failed: {text}"),
    };
    Some(AgentWord::Note(LogNote::Agent { text }))
}

/// Handles a message that Codex did not take.
pub(crate) fn refused(state: &Codex, number: u64, message: Option<String>) -> AgentWord {
    let text = state.no_thread.clone().or(message).unwrap_or_default();
    let how = How::Failed(failure(&TurnError { message: Some(text), ..TurnError::default() }));
    AgentWord::Ended(ReportedEnd { turn: NamedTurn::Number(number), how, text: None, usage: None })
}

/// Returns how a turn ended, `None` while it goes on.
fn how(turn: &Turn) -> Option<How> {
    match turn.status.as_deref()? {
        "completed" if turn.error.is_none() => Some(How::Done),
        "interrupted" => Some(How::Cancelled),
        "inProgress" => None,
        _ => Some(How::Failed(turn.error.as_ref().map_or_else(|| failure(&TurnError::default()), failure))),
    }
}

/// Returns what the end of a turn says of the account.
fn what_it_means(state: &mut Codex, how: &How) -> Option<AgentWord> {
    match how {
        How::Done => {
            state.limits.passed();
            None
        }
        How::Failed(TurnFailure { kind: FailureKind::Limit, .. }) => state.limits.hit().map(AgentWord::Limit),
        How::Failed(TurnFailure { kind: FailureKind::Login, text }) => Some(AgentWord::Login(text.clone())),
        How::Failed(_) | How::Cancelled => None,
    }
}

/// Translates the error of a turn.
fn failure(error: &TurnError) -> TurnFailure {
    let message = error.message.as_deref().unwrap_or_default();
    let details = error.additional_details.as_ref().map(|details| format!("; {details}"));
    let text = note::short(&format!("{message}{}", details.unwrap_or_default()), LONGEST_ERROR);
    let info = error.codex_error_info.as_ref();
    let (word, status) = match info {
        Some(Value::String(word)) => (Some(word.as_str()), None),
        Some(Value::Object(object)) => {
            let (word, more) =
                object.iter().next().map_or((None, None), |(word, more)| (Some(word), Some(more)));
            (
                word.map(String::as_str),
                more.and_then(|more| more.get("httpStatusCode")).and_then(Value::as_u64),
            )
        }
        Some(_) | None => (None, None),
    };
    TurnFailure { kind: kind(word, status, message), text }
}

fn kind(word: Option<&str>, status: Option<u64>, message: &str) -> FailureKind {
    match (word, status) {
        (Some("usageLimitExceeded" | "rateLimitExceeded"), _) | (_, Some(429)) => FailureKind::Limit,
        (Some("unauthorized"), _) | (_, Some(401 | 403)) => FailureKind::Login,
        (Some("modelNotFound"), _) | (_, Some(404)) => FailureKind::Model,
        (Some("serverOverloaded" | "flexUnavailable"), _) | (_, Some(503 | 529)) => FailureKind::Overloaded,
        (Some("internalServerError"), _)
        | (_, Some(500..))
        | (
            Some("httpConnectionFailed" | "responseStreamConnectionFailed" | "responseStreamDisconnected"),
            None,
        ) => FailureKind::Server,
        // Codex has no code for these two.
        _ if message.starts_with("Missing environment variable") => FailureKind::Login,
        _ if message.starts_with("stream disconnected before completion") => FailureKind::Server,
        (Some(_) | None, _) => FailureKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_are_told_apart_by_their_words_and_numbers() {
        let status = |word: &str, status: u64| json!({ word: { "httpStatusCode": status } });
        let rows = [
            (json!("usageLimitExceeded"), FailureKind::Limit),
            (json!("rateLimitExceeded"), FailureKind::Limit),
            (status("responseTooManyFailedAttempts", 429), FailureKind::Limit),
            (json!("unauthorized"), FailureKind::Login),
            (status("httpConnectionFailed", 401), FailureKind::Login),
            (status("httpConnectionFailed", 404), FailureKind::Model),
            (json!("modelNotFound"), FailureKind::Model),
            (status("httpConnectionFailed", 500), FailureKind::Server),
            (status("httpConnectionFailed", 503), FailureKind::Overloaded),
            (json!({ "responseStreamDisconnected": { "httpStatusCode": null } }), FailureKind::Server),
            (json!("serverOverloaded"), FailureKind::Overloaded),
            (json!("contextWindowExceeded"), FailureKind::Other),
            (json!("badRequest"), FailureKind::Other),
            (json!("of a later version"), FailureKind::Other),
            (json!({}), FailureKind::Other),
            (json!(7), FailureKind::Other),
        ];
        for (info, kind) in rows {
            let error = TurnError { codex_error_info: Some(info.clone()), ..TurnError::default() };
            assert_eq!(failure(&error).kind, kind, "{info}");
        }
        let said = |message: &str| {
            let (message, codex_error_info) = (Some(message.to_owned()), Some(json!("other")));
            failure(&TurnError { message, codex_error_info, additional_details: None }).kind
        };
        assert_eq!(said("Missing environment variable: `OPENAI_API_KEY`."), FailureKind::Login);
        assert_eq!(said("stream disconnected before completion: closed"), FailureKind::Server);
        assert_eq!(said("x"), FailureKind::Other);
    }
}
