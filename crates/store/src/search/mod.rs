//! Full-text search over what is stored: names, messages, answers, and the sentences of events.
//!
//! The store is what counts. An [`Index`] only proposes rows, which are read and compared again before they
//! count as found, so a row that is gone is never shown, however far behind the index is. It is a separate
//! file: nothing of it is written with a message, it may be deleted at any time, and it is rebuilt from the
//! store ([`Follower`]). Without one, everything is read.

mod excerpt;
mod follow;
mod index;
mod scan;
mod shelf;
mod words;

use crate::query::{Query, Read};
use crate::rows::{Message, StoredEvent};
use crate::ulid::SessionId;
use excerpt::excerpt;
use pinfold_core::{EventKind, MessageId, Wall};
use std::collections::BTreeSet;

pub use follow::{Follower, Stepped};
pub use index::{Index, IndexError};
pub use words::SearchWords;

/// How many bytes of a text are searched, from its beginning: a longer one would hold up all others.
pub(crate) const SEARCHED: usize = 128 << 10;

/// What to search for, and where.
#[derive(Debug, Clone)]
pub struct SearchQuery {
    /// All of these words must occur.
    pub words: SearchWords,
    /// Only what belongs to these sessions; `None` means everything.
    pub within: Option<BTreeSet<SessionId>>,
    /// The most hits to return.
    pub limit: usize,
}

/// A session's name, which is searched as it is now because it may change.
#[derive(Debug, Clone)]
pub struct NamedSession {
    /// The id of the session.
    pub id: SessionId,
    /// The name of the session.
    pub name: String,
    /// When the session was created.
    pub created_at: Wall,
}

/// The kind of text that something was found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextKind {
    /// The name of a session.
    Name,
    /// A message.
    Message,
    /// An answer.
    Answer,
    /// The sentence of an event.
    Why,
}

impl TextKind {
    /// Returns its word.
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

/// A match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The session it belongs to; an event may have none.
    pub session: Option<SessionId>,
    /// The kind of text it is in.
    pub kind: TextKind,
    /// The id of the session or message, or the number of the event.
    pub id: String,
    /// When that was sent, answered or recorded.
    pub at: Wall,
    /// The text around it, on one line.
    pub excerpt: String,
}

/// How much was searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Indexed {
    /// The number of records that were searched.
    pub done: u64,
    /// The number of records there are.
    pub total: u64,
}

/// The result of a search, best first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchResult {
    /// The matches.
    pub hits: Vec<Hit>,
    /// How much was searched.
    pub indexed: Indexed,
    /// Whether there is an index that is damaged, so that everything was read instead.
    pub damaged: bool,
}

/// Searches everything: names first, then the best of the index, or of all rows if there is no index.
///
/// # Errors
/// The store cannot be read. An index that cannot be read counts as missing.
pub fn search(
    reader: &dyn Query,
    index: Option<&Index>,
    names: &[NamedSession],
    wanted: &SearchQuery,
) -> Read<SearchResult> {
    let there: BTreeSet<SessionId> = names.iter().map(|named| named.id).collect();
    let mut hits = named(names, wanted);
    let proposed = index.map(|index| Ok((index.candidates(wanted)?, index.indexed(reader)?)));
    let damaged = matches!(proposed, Some(Err(IndexError::Unusable(_))));
    let Some(Ok((candidates, indexed))) = proposed else {
        let indexed = scan::scan(reader, &there, wanted, &mut hits)?;
        hits.truncate(wanted.limit);
        return Ok(SearchResult { hits, indexed, damaged });
    };
    for candidate in candidates {
        if hits.len() >= wanted.limit {
            break;
        }
        hits.extend(looked_up(reader, &candidate, wanted)?.filter(|hit| is_shown(hit, &there)));
    }
    hits.truncate(wanted.limit);
    Ok(SearchResult { hits, indexed, damaged })
}

/// Events of a session that was removed are shown by `events` only.
fn is_shown(hit: &Hit, there: &BTreeSet<SessionId>) -> bool {
    hit.session.is_none_or(|id| there.contains(&id))
}

/// Returns matching names, the nearest first.
fn named(names: &[NamedSession], wanted: &SearchQuery) -> Vec<Hit> {
    let mut found: Vec<(usize, &NamedSession)> = names
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

impl NamedSession {
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

/// A row proposed by the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IndexCandidate {
    Message(MessageId),
    Answer(MessageId),
    Why(u64),
}

/// Returns the row as it is now, if it exists, has the words, and may be shown.
fn looked_up(reader: &dyn Query, candidate: &IndexCandidate, wanted: &SearchQuery) -> Read<Option<Hit>> {
    match candidate {
        IndexCandidate::Message(id) => Ok(readable(reader, *id)?.and_then(|found| sent(&found, wanted))),
        IndexCandidate::Answer(id) => Ok(readable(reader, *id)?.and_then(|found| answered(&found, wanted))),
        IndexCandidate::Why(seq) => {
            let query = crate::EventQuery {
                after: seq.saturating_sub(1),
                until: Some(*seq),
                ..crate::EventQuery::default()
            };
            Ok(reader.events(&query)?.first().and_then(|event| told(event, wanted)))
        }
    }
}

/// Returns a message unless it is damaged: then it has no text, and lists of messages name it.
fn readable(reader: &dyn Query, id: MessageId) -> Read<Option<Message>> {
    match reader.message(id) {
        Err(crate::ReadError::Row { .. }) => Ok(None),
        other => other,
    }
}

fn sent(message: &Message, wanted: &SearchQuery) -> Option<Hit> {
    wanted.may_show(Some(message.session)).then_some(())?;
    let excerpt = excerpt(&message.text, &wanted.words)?;
    Some(of_message(message, TextKind::Message, message.enqueued_at, excerpt))
}

fn answered(message: &Message, wanted: &SearchQuery) -> Option<Hit> {
    wanted.may_show(Some(message.session)).then_some(())?;
    let excerpt = excerpt(message.answer.as_deref()?, &wanted.words)?;
    let at = message.done_at.unwrap_or(message.enqueued_at);
    Some(of_message(message, TextKind::Answer, at, excerpt))
}

fn of_message(message: &Message, kind: TextKind, at: Wall, excerpt: String) -> Hit {
    Hit { session: Some(message.session), kind, id: message.id.to_string(), at, excerpt }
}

fn told(event: &StoredEvent, wanted: &SearchQuery) -> Option<Hit> {
    (has_own_words(&event.kind) && wanted.may_show(event.session)).then_some(())?;
    let excerpt = excerpt(&event.why, &wanted.words)?;
    let id = event.seq.to_string();
    Some(Hit { session: event.session, kind: TextKind::Why, id, at: event.at, excerpt })
}

/// Whether the sentence of an event says more than that a message moved on or a client came: that occurs
/// thousands of times, in the same words.
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

impl SearchQuery {
    /// Whether something of this session was asked for. What belongs to no session is only for callers that
    /// may see all.
    pub(crate) fn may_show(&self, session: Option<SessionId>) -> bool {
        self.within.as_ref().is_none_or(|within| session.is_some_and(|id| within.contains(&id)))
    }
}
