//! Lists, whole and in parts.

use super::tables::Tables;
use crate::query::{EventQuery, ListPage, MessagePlace, MessageQuery, Take};
use crate::rows::{Message, StoredEvent};
use crate::size::{MOST, of_event, of_message};

/// Returns as many of the rows as wanted, in order.
pub(super) fn taken<'a, T: Clone + 'a>(rows: impl DoubleEndedIterator<Item = &'a T>, take: Take) -> Vec<T> {
    match take {
        Take::All => rows.cloned().collect(),
        Take::First(count) => rows.take(count as usize).cloned().collect(),
        Take::Last(count) => {
            let mut last: Vec<T> = rows.rev().take(count as usize).cloned().collect();
            last.reverse();
            last
        }
    }
}

/// Returns the last of `most` rows, if more come after it.
pub(super) fn last_of_more<T>(mut rows: impl Iterator<Item = T>, most: u64) -> Option<T> {
    let last = rows.nth(usize::try_from(most.checked_sub(1)?).ok()?);
    rows.next().and(last)
}

pub(super) fn messages(
    tables: &Tables,
    query: MessageQuery,
) -> impl DoubleEndedIterator<Item = (i64, &Message)> {
    let wanted = move |message: &Message| query.state.is_none_or(|state| message.state == state);
    tables.messages_of(query.session).filter(move |(_, message)| wanted(message))
}

pub(super) fn messages_after(
    tables: &Tables,
    query: MessageQuery,
    after: MessagePlace,
) -> impl Iterator<Item = (i64, &Message)> {
    messages(tables, query).filter(move |(place, _)| *place > after.0)
}

pub(super) fn message_part(
    tables: &Tables,
    query: MessageQuery,
    after: MessagePlace,
    most: u64,
    room: usize,
) -> ListPage<Message, MessagePlace> {
    let most = most.min(MOST);
    let (mut rows, mut used, mut last) = (Vec::new(), 0, after);
    for (place, message) in messages_after(tables, query, after) {
        if rows.len() as u64 >= most || used >= room {
            return ListPage { rows, next: Some(last) };
        }
        used += of_message(message);
        rows.push(message.clone());
        last = MessagePlace(place);
    }
    ListPage { rows, next: None }
}

pub(super) fn message_place(tables: &Tables, query: MessageQuery, take: Take) -> MessagePlace {
    let Take::Last(count) = take else { return MessagePlace::default() };
    let Some(before) = count.checked_sub(1) else { return MessagePlace(i64::MAX) };
    let first = messages(tables, query).rev().nth(before as usize);
    first.map_or_else(MessagePlace::default, |(place, _)| MessagePlace(place - 1))
}

pub(super) fn events_after<'a>(
    tables: &'a Tables,
    query: &'a EventQuery,
    after: u64,
) -> impl DoubleEndedIterator<Item = &'a StoredEvent> {
    let until = query.until.unwrap_or(u64::MAX);
    let in_range = move |event: &&StoredEvent| event.seq > after && event.seq <= until;
    let young = |event: &&StoredEvent| query.since.is_none_or(|since| event.at >= since);
    let own = |event: &&StoredEvent| query.session.is_none_or(|session| event.session == Some(session));
    tables.events.values().filter(in_range).filter(young).filter(own)
}

pub(super) fn event_part(
    tables: &Tables,
    query: &EventQuery,
    after: u64,
    most: u64,
    room: usize,
) -> ListPage<StoredEvent, u64> {
    let (most, mut rows, mut used) = (most.min(MOST), Vec::new(), 0);
    for event in events_after(tables, query, after) {
        if rows.len() as u64 >= most || used >= room {
            return ListPage { next: rows.last().map(|last: &StoredEvent| last.seq), rows };
        }
        used += of_event(event);
        rows.push(event.clone());
    }
    ListPage { rows, next: None }
}

pub(super) fn event_place(tables: &Tables, query: &EventQuery) -> u64 {
    let young = |event: &&StoredEvent| query.since.is_none_or(|since| event.at >= since);
    let first = match query.since {
        Some(_) => tables.events.values().find(young).map(|event| event.seq),
        None => Some(0),
    };
    let Some(first) = first else { return query.after.max(tables.newest) };
    let after = query.after.max(first.saturating_sub(1));
    let Take::Last(count) = query.take else { return after };
    let Some(before) = count.checked_sub(1) else { return after.max(tables.newest) };
    let first = events_after(tables, query, after).rev().nth(before as usize);
    first.map_or(after, |event| event.seq - 1)
}
