//! Messages as the objects of the API.

use super::{usage, word};
use crate::clock::time;
use pinfold_api::object::{Message, Turn};
use pinfold_api::word::MessageState;
use pinfold_core::Wall;

/// Lists contain this many bytes of an answer; the message itself has all of it.
const LISTED_ANSWER: usize = 4 << 10;

/// One message of the session with this name, as lists show it: with the beginning of its answer.
pub(crate) fn listed(row: pinfold_store::Message, session: &str) -> Message {
    let mut message = message(row, session);
    if let Some(answer) = &mut message.answer {
        answer.truncate(answer.floor_char_boundary(LISTED_ANSWER));
        answer.shrink_to_fit();
    }
    message
}

/// One message of the session with this name.
pub(crate) fn message(row: pinfold_store::Message, session: &str) -> Message {
    if let Some(damage) = row.damage {
        return damaged_message(damage, session);
    }
    let (failure, reason) = failure(row.failure);
    Message {
        answer_bytes: row.kept.beside.or(row.answer.as_ref().map(|answer| answer.len() as u64)),
        answer_cut: row.kept.cut,
        id: row.id.to_string(),
        session: session.to_owned(),
        from: row.from,
        text: row.text,
        key: row.key,
        state: word::message_state(row.state),
        tries: row.tries,
        enqueued_at: time(row.enqueued_at),
        done_at: row.done_at.map(time),
        answer: row.answer,
        failure,
        reason,
        usage: row.taken.map(usage::of_message),
        files: row.files,
        waits_for: None,
        turn: row.place.map(|place| Turn { run: place.run.0, from: place.from, to: place.to }),
        damaged: None,
        pruned: false,
    }
}

/// Adds what a queued message waits for, besides its turn.
pub(crate) fn waiting(message: Message, waits_for: Option<&str>) -> Message {
    let queued = message.state == MessageState::Queued;
    Message { waits_for: waits_for.filter(|_| queued).map(str::to_owned), ..message }
}

/// The word and the reason of a failure.
fn failure(stored: Option<String>) -> (Option<String>, Option<String>) {
    let Some(stored) = stored else { return (None, None) };
    match stored.split_once(": ") {
        Some((word, reason)) => (Some(word.to_owned()), Some(reason.to_owned())),
        None => (Some(stored), None),
    }
}

/// A pruned message, as far as its key still tells.
pub(crate) fn pruned(spent: pinfold_store::SpentKey, session: &str) -> Message {
    Message {
        id: spent.message.to_string(),
        session: session.to_owned(),
        from: None,
        text: String::new(),
        key: Some(spent.key),
        state: MessageState::Done,
        tries: 0,
        enqueued_at: time(spent.enqueued_at),
        done_at: spent.done_at.map(time),
        answer: None,
        answer_bytes: None,
        answer_cut: false,
        failure: None,
        reason: None,
        usage: None,
        files: Vec::new(),
        waits_for: None,
        turn: None,
        damaged: None,
        pruned: true,
    }
}

/// A damaged message: named, and nothing of it is shown.
fn damaged_message(damage: pinfold_store::RowDamage, session: &str) -> Message {
    Message {
        id: damage.id,
        session: session.to_owned(),
        from: None,
        text: String::new(),
        key: None,
        state: MessageState::Damaged,
        tries: 0,
        enqueued_at: time(Wall(0)),
        done_at: None,
        answer: None,
        answer_bytes: None,
        answer_cut: false,
        failure: None,
        reason: None,
        usage: None,
        files: Vec::new(),
        waits_for: None,
        turn: None,
        damaged: Some(damage.problem),
        pruned: false,
    }
}

#[cfg(test)]
mod tests;
