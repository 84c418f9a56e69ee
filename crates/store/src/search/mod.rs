//! Full text over what is stored: names, messages, answers, and the sentences of events.
//!
//! What counts is the store. An [`Index`] only proposes rows, which are read and compared again before they are found, so a
//! row that is gone is never shown, however far behind the index is. It is a file of its own: nothing of it is written with a
//! message, it may be deleted at any time, and it is made anew from the store ([`Follower`]). Without one, everything is read.

mod excerpt;
mod follow;
mod index;
mod scan;
mod shelf;
mod words;

use crate::query::{Query, Read};
use crate::rows::{Event, Message};
use crate::ulid::SessionId;
use excerpt::excerpt;
use pinfold_core::{EventKind, MessageId, Wall};
use std::collections::BTreeSet;

pub use follow::{Follower, Stepped};
pub use index::{Index, IndexError};
pub use words::Words;

/// Of a text so many bytes are looked through, from its beginning: a longer one would hold up all others.
pub(crate) const SEARCHED: usize = 128 << 10;

/// What is sought, and where.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// All of these words.
    pub words: Words,
    /// Only what belongs to these sessions; everything where it is nothing.
    pub within: Option<BTreeSet<SessionId>>,
    /// At most so many.
    pub limit: usize,
}

/// A session's name, which is looked through as it is now: it may change.
#[derive(Debug, Clone)]
pub struct Named {
    /// Whose.
    pub id: SessionId,
    /// The name.
    pub name: String,
    /// Since when there is such a session.
    pub created_at: Wall,
}

/// What kind of text something was found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextKind {
    /// The name of a session.
    Name,
    /// What was sent.
    Message,
    /// What was answered.
    Answer,
    /// The sentence of an event.
    Why,
}

impl TextKind {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            TextKind::Name => "name",
            TextKind::Message => "message",
            TextKind::Answer => "answer",
            TextKind::Why => "why",
        }
    }
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Whose it is; an event may be of no session.
    pub session: Option<SessionId>,
    /// In what.
    pub kind: TextKind,
    /// The id of the session or message, or the number of the event.
    pub id: String,
    /// When that was sent, answered or told.
    pub at: Wall,
    /// What stands around it, on one line.
    pub excerpt: String,
}

/// How much was looked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Indexed {
    /// So many records,
    pub done: u64,
    /// of so many.
    pub total: u64,
}

/// What was found, best first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// The hits.
    pub hits: Vec<Hit>,
    /// How much was looked through.
    pub indexed: Indexed,
    /// An index was there and is damaged: everything was read instead.
    pub damaged: bool,
}

/// Seeks in everything: names first, then the best of the index, or of all there is where there is no index.
///
/// # Errors
/// The store cannot be read. An index that cannot be read is one that is not there.
pub fn search(reader: &dyn Query, index: Option<&Index>, names: &[Named], wanted: &Wanted) -> Read<Found> {
    let there: BTreeSet<SessionId> = names.iter().map(|named| named.id).collect();
    let mut hits = named(names, wanted);
    let proposed = index.map(|index| Ok((index.candidates(wanted)?, index.indexed(reader)?)));
    let damaged = matches!(proposed, Some(Err(IndexError::Unusable(_))));
    let Some(Ok((candidates, indexed))) = proposed else {
        let indexed = scan::scan(reader, &there, wanted, &mut hits)?;
        hits.truncate(wanted.limit);
        return Ok(Found { hits, indexed, damaged });
    };
    for candidate in candidates {
        if hits.len() >= wanted.limit {
            break;
        }
        hits.extend(looked_up(reader, &candidate, wanted)?.filter(|hit| is_shown(hit, &there)));
    }
    hits.truncate(wanted.limit);
    Ok(Found { hits, indexed, damaged })
}

/// What is told of a session that was removed is for `events` only.
fn is_shown(hit: &Hit, there: &BTreeSet<SessionId>) -> bool {
    hit.session.is_none_or(|id| there.contains(&id))
}

/// Names, the nearest first.
fn named(names: &[Named], wanted: &Wanted) -> Vec<Hit> {
    let mut found: Vec<(usize, &Named)> = names
        .iter()
        .filter(|named| wanted.may_show(Some(named.id)) && wanted.words.are_in_name(&named.name))
        .map(|named| (named.name.len(), named))
        .collect();
    found.sort_by(|one, other| {
        let newest = other.1.created_at.cmp(&one.1.created_at);
        one.0.cmp(&other.0).then_with(|| one.1.name.cmp(&other.1.name)).then(newest)
    });
    found.into_iter().map(|(_, named)| named.hit()).collect()
}

impl Named {
    fn hit(&self) -> Hit {
        Hit {
            session: Some(self.id),
            kind: TextKind::Name,
            id: self.id.to_string(),
            at: self.created_at,
            excerpt: self.name.clone(),
        }
    }
}

/// A row that the index proposes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Candidate {
    Message(MessageId),
    Answer(MessageId),
    Why(u64),
}

/// The row as it is now, if it is there, has the words, and may be shown.
fn looked_up(reader: &dyn Query, candidate: &Candidate, wanted: &Wanted) -> Read<Option<Hit>> {
    match candidate {
        Candidate::Message(id) => Ok(readable(reader, *id)?.and_then(|found| sent(&found, wanted))),
        Candidate::Answer(id) => Ok(readable(reader, *id)?.and_then(|found| answered(&found, wanted))),
        Candidate::Why(seq) => {
            let query = crate::EventQuery {
                after: seq.saturating_sub(1),
                until: Some(*seq),
                ..crate::EventQuery::default()
            };
            Ok(reader.events(&query)?.first().and_then(|event| told(event, wanted)))
        }
    }
}

/// One that is damaged is named wherever messages are listed; it has no text any more.
fn readable(reader: &dyn Query, id: MessageId) -> Read<Option<Message>> {
    match reader.message(id) {
        Err(crate::ReadError::Row { .. }) => Ok(None),
        other => other,
    }
}

fn sent(message: &Message, wanted: &Wanted) -> Option<Hit> {
    wanted.may_show(Some(message.session)).then_some(())?;
    let excerpt = excerpt(&message.text, &wanted.words)?;
    Some(of_message(message, TextKind::Message, message.enqueued_at, excerpt))
}

fn answered(message: &Message, wanted: &Wanted) -> Option<Hit> {
    wanted.may_show(Some(message.session)).then_some(())?;
    let excerpt = excerpt(message.answer.as_deref()?, &wanted.words)?;
    let at = message.done_at.unwrap_or(message.enqueued_at);
    Some(of_message(message, TextKind::Answer, at, excerpt))
}

fn of_message(message: &Message, kind: TextKind, at: Wall, excerpt: String) -> Hit {
    Hit { session: Some(message.session), kind, id: message.id.to_string(), at, excerpt }
}

fn told(event: &Event, wanted: &Wanted) -> Option<Hit> {
    (has_own_words(&event.kind) && wanted.may_show(event.session)).then_some(())?;
    let excerpt = excerpt(&event.why, &wanted.words)?;
    let id = event.seq.to_string();
    Some(Hit { session: event.session, kind: TextKind::Why, id, at: event.at, excerpt })
}

/// Whether the sentence of an event says more than that a message went its way, or a client came: that is said thousands of
/// times, in the same words.
pub(crate) fn has_own_words(kind: &EventKind) -> bool {
    !matches!(
        kind,
        EventKind::MessageQueued
            | EventKind::MessageDelivered
            | EventKind::MessageDone
            | EventKind::ConsumerJoined
            | EventKind::ConsumerLeft
            | EventKind::Damaged
    )
}

impl Wanted {
    /// Whether something of this session is asked for. What belongs to no session is for those who may see all.
    pub(crate) fn may_show(&self, session: Option<SessionId>) -> bool {
        self.within.as_ref().is_none_or(|within| session.is_some_and(|id| within.contains(&id)))
    }
}
