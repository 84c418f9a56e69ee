//! How turns end: with the answer to their prompt. A turn is done only if the answer says so and there is
//! evidence of work.

use super::fails;
use super::spends;
use super::state::{Acp, Signs};
use super::wire::Prompted;
use crate::blames;
use crate::rpc::RpcError;
use crate::turn::{FailureKind, TurnFailure, Usage};
use crate::word::{AgentWord, How, NamedTurn, ReportedEnd};
use serde_json::Value;

/// Handles the answer to a prompt.
pub(crate) fn answered(state: &mut Acp, number: u64, line: &Prompted) -> Vec<AgentWord> {
    let how = how(line, &state.turn);
    let usage = spends::usage(line, &state.context);
    ended(state, number, how, usage)
}

/// Handles a prompt that was answered with an error.
pub(crate) fn failed(state: &mut Acp, number: u64, error: &RpcError) -> Vec<AgentWord> {
    ended(state, number, How::Failed(fails::failure(error)), None)
}

fn ended(state: &mut Acp, number: u64, how: How, usage: Option<Usage>) -> Vec<AgentWord> {
    // The agent handles one prompt at a time, so older ones will not be answered any more.
    state.calls.forget_before(number);
    let mut words: Vec<AgentWord> = Vec::new();
    if how == How::Done {
        words.extend(state.proven_session());
    }
    words.extend(blames::account(&mut state.limited, &how));
    words.push(AgentWord::Ended(ReportedEnd { turn: NamedTurn::Number(number), how, text: None, usage }));
    state.turn = Signs::default();
    words
}

fn how(line: &Prompted, turn: &Signs) -> How {
    match line.stop_reason.as_deref() {
        Some("cancelled") => How::Cancelled,
        Some("end_turn") if is_proven(line, turn) => How::Done,
        Some("end_turn") => How::Failed(fails::unproven(&turn.aside)),
        Some("max_tokens") => stopped("its answer has as many tokens as it may have"),
        Some("max_turn_requests") => stopped("it asked its model as often as it may in a turn"),
        Some("refusal") => stopped("it refuses to go on"),
        Some(other) => stopped(&format!("it stopped: {other}")),
        None => stopped("it ended the turn, and did not say how"),
    }
}

/// Returns whether the agent worked. Some agents answer a turn that met an error as if it had gone well, with
/// the error in the text; those say `usage: null` if nothing was spent.
fn is_proven(line: &Prompted, turn: &Signs) -> bool {
    let nothing_spent = line.usage.as_ref().is_some_and(Value::is_null);
    !turn.broken && (spends::any(line) || turn.worked || turn.spoke && !nothing_spent)
}

fn stopped(text: &str) -> How {
    How::Failed(TurnFailure {
        kind: FailureKind::Other,
        text: text.chars().take(fails::LONGEST_ERROR / 4).collect(),
    })
}
