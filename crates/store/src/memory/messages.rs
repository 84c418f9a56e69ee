//! Messages: each step may be taken only from certain states.

use super::contradiction::{Applied, Contradiction};
use super::tables::{Stand, Tables};
use crate::answer::{AnswerKept, AnswerPart, AnswerTold, BEGINNING, LONGEST_IN_ROW};
use crate::audit::failure;
use crate::commit_error::CommitError;
use crate::rows::{Message, MessageState, SpentKey, TurnPlace};
use crate::step::{PRUNE_AT_ONCE, Tally, message_of};
use crate::ulid::{SessionId, Ulid};
use pinfold_core::Wall;
use pinfold_core::inbox::{Cost, MessageChange};

/// The circumstances of a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepFacts<'a> {
    pub(super) at: Wall,
    pub(super) words: Option<&'a str>,
    pub(super) answer: AnswerTold,
    pub(super) from: Option<&'a str>,
    pub(super) place: Option<TurnPlace>,
}

pub(super) fn apply(
    tables: &mut Tables,
    session: SessionId,
    change: &MessageChange,
    told: StepFacts<'_>,
) -> Applied {
    let id = Ulid::from(message_of(change));
    match change {
        MessageChange::Queued { key, .. } => queue(tables, session, id, key.as_deref(), told)?,
        MessageChange::Delivering { .. } => {}
        MessageChange::Retried { .. } => retry(tables, session, id)?,
        MessageChange::Taken { .. }
        | MessageChange::Requeued { .. }
        | MessageChange::Done { .. }
        | MessageChange::Failed { .. } => step(tables, session, id, change, told)?,
    }
    if let (Some(place), Some((at, message))) = (told.place, found(tables, session, id)) {
        tables.put_message(at, Some(Message { place: Some(place), ..message }));
    }
    Ok(())
}

fn found(tables: &Tables, session: SessionId, id: Ulid) -> Option<(Stand, Message)> {
    let at = *tables.stands.get(&id)?;
    let message = tables.messages.get(&at)?;
    (at.0 == session).then(|| (at, message.clone()))
}

fn queue(
    tables: &mut Tables,
    session: SessionId,
    id: Ulid,
    key: Option<&str>,
    told: StepFacts<'_>,
) -> Applied {
    let text = told.words.ok_or(CommitError::MessageWithoutText { message: id })?.to_owned();
    if !tables.sessions.contains_key(&session) {
        return Err(Contradiction::NoSession(session).into());
    }
    if tables.stands.contains_key(&id) {
        return Err(Contradiction::MessageThere.into());
    }
    let taken = |key: &(SessionId, String)| tables.keys.contains_key(key) || tables.spent.contains_key(key);
    if key.is_some_and(|key| taken(&(session, key.to_owned()))) {
        return Err(Contradiction::KeyTaken.into());
    }
    let message = Message {
        id,
        session,
        key: key.map(str::to_owned),
        from: told.from.map(str::to_owned),
        text,
        state: MessageState::Queued,
        tries: 0,
        enqueued_at: told.at,
        done_at: None,
        answer: None,
        kept: AnswerKept::default(),
        taken: None,
        files: Vec::new(),
        failure: None,
        place: None,
        damage: None,
    };
    put_last(tables, message);
    Ok(())
}

/// Sets the files that a message was sent with.
pub(super) fn files(tables: &mut Tables, session: SessionId, id: Ulid, paths: &[String]) -> Applied {
    let Some((at, message)) = found(tables, session, id) else {
        return Err(CommitError::NoSuchMessage { session, message: id });
    };
    tables.put_message(at, Some(Message { files: paths.to_vec(), ..message }));
    Ok(())
}

fn put_last(tables: &mut Tables, message: Message) {
    tables.last_place += 1;
    tables.put_message((message.session, tables.last_place), Some(message));
}

/// Takes a step with a waiting message, which keeps its place.
fn step(
    tables: &mut Tables,
    session: SessionId,
    id: Ulid,
    change: &MessageChange,
    told: StepFacts<'_>,
) -> Applied {
    let waits = |message: &Message| match message.state {
        MessageState::Queued => true,
        MessageState::Delivered => !matches!(change, MessageChange::Taken { .. }),
        MessageState::Done | MessageState::Failed => false,
    };
    let before = found(tables, session, id).filter(|(_, message)| waits(message));
    let (at, before) = before.ok_or(CommitError::NoSuchMessage { session, message: id })?;
    let mut after = changed(before, change, told);
    if let (MessageChange::Done { .. }, Some(rest)) = (change, told.words)
        && told.answer.is_more_than_a_row(rest)
    {
        keep_long(tables, &mut after, told.answer, rest);
    }
    tables.put_message(at, Some(after));
    Ok(())
}

/// Keeps an answer that does not fit into its row separately; the row gets the beginning.
fn keep_long(tables: &mut Tables, message: &mut Message, told: AnswerTold, rest: &str) {
    let before = usize::try_from(told.before).unwrap_or(usize::MAX);
    let mut words = tables.drafts.get(&message.id).cloned().unwrap_or_default();
    let cut = told.cut || words.len() < before;
    words.truncate(words.floor_char_boundary(before));
    words.push_str(rest);
    message.kept = AnswerKept { beside: None, cut };
    if words.len() as u64 > LONGEST_IN_ROW {
        message.kept.beside = Some(words.len() as u64);
        message.answer = Some(words[..words.floor_char_boundary(BEGINNING)].to_owned());
        tables.answers.insert(message.id, words);
    } else {
        message.answer = Some(words);
    }
}

/// Adds a part of an answer, which replaces everything from its offset on.
pub(super) fn add_part(tables: &mut Tables, part: &AnswerPart) {
    let draft = tables.drafts.entry(part.message).or_default();
    draft.truncate(draft.floor_char_boundary(usize::try_from(part.offset).unwrap_or(usize::MAX)));
    draft.push_str(&part.text);
}

fn changed(before: Message, change: &MessageChange, told: StepFacts<'_>) -> Message {
    let done_at = Some(told.at);
    match change {
        MessageChange::Taken { .. } => {
            Message { state: MessageState::Delivered, tries: before.tries + 1, ..before }
        }
        MessageChange::Requeued { cost, .. } => {
            let free = *cost == Cost::Nothing && before.state == MessageState::Delivered;
            Message { state: MessageState::Queued, tries: before.tries - u32::from(free), ..before }
        }
        MessageChange::Done { .. } => {
            Message { state: MessageState::Done, done_at, answer: told.words.map(str::to_owned), ..before }
        }
        MessageChange::Failed { why, .. } => {
            let failure = Some(failure(*why, told.words));
            Message { state: MessageState::Failed, done_at, failure, ..before }
        }
        MessageChange::Queued { .. } | MessageChange::Delivering { .. } | MessageChange::Retried { .. } => {
            before
        }
    }
}

/// Moves a message to the end of the queue: rows are in the order of their turns.
fn retry(tables: &mut Tables, session: SessionId, id: Ulid) -> Applied {
    let failed = found(tables, session, id).filter(|(_, message)| message.state == MessageState::Failed);
    let (at, before) = failed.ok_or(CommitError::NoSuchMessage { session, message: id })?;
    tables.put_message(at, None);
    let (state, done_at, failure) = (MessageState::Queued, None, None);
    put_last(tables, Message { state, tries: 0, done_at, failure, ..before });
    Ok(())
}

/// Forgets those of these messages that were done before a moment, and keeps their keys.
pub(super) fn prune(
    tables: &mut Tables,
    session: SessionId,
    ids: &[Ulid],
    before: Wall,
    more: &mut bool,
) -> Tally {
    if !tables.is_active(session) {
        return Tally::default();
    }
    let most = PRUNE_AT_ONCE as usize;
    *more |= ids.len() > most;
    let is_old = |message: &Message| {
        message.state == MessageState::Done && message.done_at.is_some_and(|at| at < before)
    };
    let mut messages = 0;
    for id in ids.iter().take(most) {
        let Some((at, message)) = found(tables, session, *id).filter(|(_, message)| is_old(message)) else {
            continue;
        };
        tables.put_message(at, None);
        if let Some(key) = message.key {
            let Message { id, enqueued_at, done_at, .. } = message;
            let spent = SpentKey { key: key.clone(), message: id, enqueued_at, done_at };
            tables.put_spent((session, key), Some(spent));
        }
        messages += 1;
    }
    Tally { messages, ..Tally::default() }
}

/// Forgets messages that are done until at most this many are left.
pub(super) fn forget(tables: &mut Tables, session: SessionId, most: usize) {
    let many = done(tables, session).count().saturating_sub(most);
    let old = done(tables, session).map(|(place, _)| place).take(many).collect();
    remove(tables, session, old);
}

fn done(tables: &Tables, session: SessionId) -> impl Iterator<Item = (i64, &Message)> {
    tables.messages_of(session).filter(|(_, message)| message.state == MessageState::Done)
}

fn remove(tables: &mut Tables, session: SessionId, places: Vec<i64>) -> u64 {
    let count = places.len() as u64;
    places.into_iter().for_each(|place| tables.put_message((session, place), None));
    count
}
