//! How turns end: with a `result` that names them. A turn is done only if the result says so.

use super::spends;
use super::state::StreamJson;
use super::wire::Ending;
use crate::note::{self, LogNote};
use crate::observation::SessionRefused;
use crate::turn::{FailureKind, TurnFailure};
use crate::word::{AgentWord, AnswerText, How, NamedTurn, ReportedEnd};

/// Longest error text that is kept, in bytes.
const LONGEST_ERROR: usize = 4 << 10;

/// Handles a `result`.
pub(crate) fn result(state: &mut StreamJson, ending: Ending) -> Vec<AgentWord> {
    let failure = state.failure.take();
    let complaints = ending.errors.iter().flatten();
    let mut words: Vec<AgentWord> = complaints.filter_map(|error| refusal(state, error)).collect();
    let names = ending.user_message_uuids.clone().unwrap_or_default();
    let numbers: Vec<u64> = names.iter().filter_map(|name| state.number_of(name)).collect();
    let how = how(&ending, failure);
    if is_empty(&ending) && (numbers.is_empty() || how == How::Done) {
        words.push(AgentWord::Note(LogNote::EmptyEnd));
        return words;
    }
    words.extend(ending.session_id.clone().map(AgentWord::Session));
    words.extend(what_it_means(state, &how));
    let usage = spends::usage(&ending, state.model.as_deref(), state.context);
    let text = ending.result.filter(|_| how == How::Done).map(|text| AnswerText { text, whole: true });
    if numbers.is_empty() {
        let end = ReportedEnd { turn: NamedTurn::Own, how, text, usage: Some(usage) };
        words.push(end_of_own(state, names, end));
        return words;
    }
    state.dropped.retain(|dropped| !numbers.contains(&dropped.number));
    let mut usage = Some(usage);
    let ends = numbers.into_iter().map(|number| {
        let (how, text) = (how.clone(), text.clone());
        AgentWord::Ended(ReportedEnd { turn: NamedTurn::Number(number), how, text, usage: usage.take() })
    });
    words.extend(ends);
    words
}

/// Returns whether a result did no work. Such a result ends only a command that Claude Code does by itself.
fn is_empty(ending: &Ending) -> bool {
    ending.num_turns == Some(0) && ending.local_command.is_none()
}

/// Handles a result that names none of ours.
fn end_of_own(state: &mut StreamJson, names: Vec<String>, end: ReportedEnd) -> AgentWord {
    match names.into_iter().next() {
        Some(named) if !state.own => AgentWord::Note(LogNote::LateEnd { named: note::short(&named, 100) }),
        Some(_) | None => {
            state.own = false;
            AgentWord::Ended(end)
        }
    }
}

/// Returns what the end of a turn says of the account.
fn what_it_means(state: &mut StreamJson, how: &How) -> Option<AgentWord> {
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

fn how(ending: &Ending, failure: Option<TurnFailure>) -> How {
    let success = ending.subtype.as_deref() == Some("success");
    if ending.terminal_reason.as_deref().is_some_and(|reason| reason.starts_with("aborted")) {
        How::Cancelled
    } else if success && ending.is_error != Some(true) {
        How::Done
    } else {
        How::Failed(failure.unwrap_or_else(|| unexplained(ending)))
    }
}

/// Returns the failure of a result without a message that explains it.
fn unexplained(ending: &Ending) -> TurnFailure {
    let errors = ending.errors.as_ref().map(|errors| errors.join("; "));
    let text = ending.result.clone().or(errors).or_else(|| ending.subtype.clone()).unwrap_or_default();
    failure(None, ending.api_error_status, &text)
}

/// Translates the error of a turn.
pub(crate) fn failure(error: Option<&str>, status: Option<u64>, text: &str) -> TurnFailure {
    let kind = match (error, status) {
        (Some("rate_limit" | "billing_error"), _) | (None, Some(429)) => FailureKind::Limit,
        (Some("authentication_failed"), _) | (None, Some(401 | 403)) => FailureKind::Login,
        (Some("model_not_found"), _) => FailureKind::Model,
        (Some("overloaded"), _) | (_, Some(503 | 529)) => FailureKind::Overloaded,
        (Some("server_error"), _) | (_, Some(500..)) => FailureKind::Server,
        (Some(_) | None, _) => FailureKind::Other,
    };
    TurnFailure { kind, text: note::short(text, LONGEST_ERROR) }
}

/// Ends the deliveries that were finished without a result, now that Claude Code is idle.
pub(crate) fn idle(state: &mut StreamJson) -> Vec<AgentWord> {
    let mut words = Vec::new();
    if std::mem::take(&mut state.own) {
        words.push(AgentWord::Ended(ReportedEnd {
            turn: NamedTurn::Own,
            how: How::Done,
            text: None,
            usage: None,
        }));
    }
    for dropped in std::mem::take(&mut state.dropped) {
        let text = "Claude Code did not work on this message, and says that it is done with it";
        let failed = TurnFailure { kind: FailureKind::Other, text: text.to_owned() };
        let how = if dropped.cancelled { How::Cancelled } else { How::Failed(failed) };
        let turn = NamedTurn::Number(dropped.number);
        words.push(AgentWord::Ended(ReportedEnd { turn, how, text: None, usage: None }));
    }
    words
}

/// Returns what a complaint says of the vendor session; once, because Claude Code says the same on both
/// streams.
pub(crate) fn refusal(state: &mut StreamJson, text: &str) -> Option<AgentWord> {
    let unknown = text.contains("No conversation found with session ID");
    let busy = ["is already in use", "session is running in the background", "running as a background agent"]
        .iter()
        .any(|words| text.contains(words));
    let why = match (unknown, busy) {
        (true, _) => SessionRefused::Unknown,
        (false, true) => SessionRefused::Busy,
        (false, false) => return None,
    };
    let told = std::mem::replace(&mut state.session_refused, true);
    (!told).then_some(AgentWord::SessionRefused(why))
}
