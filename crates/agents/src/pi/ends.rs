//! How turns of pi end, and what they cost.

use super::state::{LastMessage, Pi};
use super::wire::Message;
use crate::blames;
use crate::note::LogNote;
use crate::turn::{FailureKind, Spent, TurnFailure, Usage};
use crate::word::{AgentWord, How, NamedTurn, ReportedEnd};
use serde_json::Value;

/// Ends the current turn.
pub(crate) fn ended(state: &mut Pi, last: Option<&LastMessage>) -> Vec<AgentWord> {
    let Some(number) = state.turn.take() else {
        return vec![AgentWord::Note(LogNote::StrayEnd { named: None })];
    };
    let how = match last {
        Some(LastMessage::Stopped) => How::Done,
        Some(LastMessage::Aborted) => How::Cancelled,
        Some(LastMessage::Failed(failure)) => How::Failed(failure.clone()),
        None => {
            let text = "it ended the turn, and its model has said nothing".to_owned();
            How::Failed(TurnFailure { kind: FailureKind::Other, text })
        }
    };
    let mut words: Vec<AgentWord> = blames::account(&mut state.limited, &how).into_iter().collect();
    let usage = Some(Usage {
        turn: std::mem::take(&mut state.spent),
        model: state.model.clone(),
        context_used: state.context,
        ..Usage::default()
    });
    words.push(AgentWord::Ended(ReportedEnd { turn: NamedTurn::Number(number), how, text: None, usage }));
    words
}

/// Ends the turn if it has failed, because pi does not retry it.
pub(crate) fn failed(state: &mut Pi) -> Vec<AgentWord> {
    match state.failed.take() {
        Some(failure) => ended(state, Some(&LastMessage::Failed(failure))),
        None => Vec::new(),
    }
}

/// Handles a prompt that pi did not take.
pub(crate) fn refused(state: &mut Pi, number: u64, text: String) -> Vec<AgentWord> {
    let how = How::Failed(TurnFailure { kind: blames::kind(&text), text });
    let mut words: Vec<AgentWord> = blames::account(&mut state.limited, &how).into_iter().collect();
    words.push(AgentWord::Ended(ReportedEnd {
        turn: NamedTurn::Number(number),
        how,
        text: None,
        usage: None,
    }));
    words
}

/// Adds what a message cost.
pub(crate) fn spend(state: &mut Pi, message: &Message) {
    state.model = message.model.clone().filter(|model| model.len() <= 200).or(state.model.take());
    let Some(usage) = &message.usage else { return };
    let read = [usage.input, usage.cache_read, usage.cache_write].into_iter().flatten().sum::<u64>();
    let written = usage.output.unwrap_or(0);
    let cost = usage.cost.as_ref().and_then(|cost| cost.get("total").and_then(Value::as_f64));
    let cached = usage.cache_read.unwrap_or(0);
    let Spent { input_tokens, output_tokens, cached_tokens, cost_usd } = state.spent;
    state.spent = Spent {
        input_tokens: Some(input_tokens.unwrap_or(0).saturating_add(read)),
        output_tokens: Some(output_tokens.unwrap_or(0).saturating_add(written)),
        cached_tokens: Some(cached_tokens.unwrap_or(0).saturating_add(cached)),
        cost_usd: cost.map(|cost| cost + cost_usd.unwrap_or(0.0)).or(cost_usd),
    };
    state.context = Some(read.saturating_add(written)).filter(|used| *used > 0).or(state.context);
}
