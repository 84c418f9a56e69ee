//! Reading: what every back-end answers, in plain data.

use crate::cause::Cause;
use crate::copy::{BackupError, Files};
use crate::pace::Pace;
use crate::rows::{Complete, Cursor, Event, Loaded, Lookup, Message, MessageState, Meta, Run, SpentKey};
use crate::step::Untold;
use crate::ulid::{RunId, SessionId, Ulid};
use crate::usage::{UsageQuery, UsageSum};
use pinfold_core::{MessageId, Wall};
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};

/// Why something cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file, or the one record that was asked for, is damaged.
    #[error("`{path}` is damaged")]
    Damaged {
        /// The store.
        path: PathBuf,
        /// What the back-end says.
        #[source]
        source: Cause,
    },
    /// The one record that was asked for is not as it was written.
    #[error("{what} {id} in `{path}` is damaged: {problem}")]
    Row {
        /// The store.
        path: PathBuf,
        /// What it is.
        what: &'static str,
        /// Its id, as it is stored.
        id: String,
        /// What is wrong with it.
        problem: String,
    },
    /// It cannot be read now.
    #[error("`{path}` cannot be read")]
    Failed {
        /// The store.
        path: PathBuf,
        /// What the back-end says.
        #[source]
        source: Cause,
    },
}

/// How many of those that match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Take {
    /// All of them.
    #[default]
    All,
    /// The oldest so many.
    First(u32),
    /// The newest so many.
    Last(u32),
}

/// Which events; all of them unless it says otherwise. It spans everything that is stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventQuery {
    /// Only those with a greater number.
    pub after: u64,
    /// Only those with a number up to this.
    pub until: Option<u64>,
    /// Only those not older than this.
    pub since: Option<Wall>,
    /// Only those of this session.
    pub session: Option<SessionId>,
    /// How many of these.
    pub take: Take,
}

impl EventQuery {
    /// Whether it may leave some out, other than by their place.
    pub(crate) fn is_of_some(&self) -> bool {
        self.until.is_some() || self.since.is_some() || self.session.is_some()
    }
}

/// So many rows are counted one by one at most: a person has seen enough, and it takes less than a millisecond.
pub const COUNTED: u64 = 10_000;

/// How many rows there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// So many.
    Exactly(u64),
    /// They were not all counted.
    MoreThan(u64),
}

impl Count {
    /// Of rows that were counted one by one, up to one more than [`COUNTED`].
    pub(crate) fn of_some(count: u64) -> Count {
        if count > COUNTED { Count::MoreThan(COUNTED) } else { Count::Exactly(count) }
    }
}

/// Which messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageQuery {
    /// Those of this session.
    pub session: SessionId,
    /// Only those in this state.
    pub state: Option<MessageState>,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part<T, P> {
    /// Its rows.
    pub rows: Vec<T>,
    /// Where the list goes on; nothing where it has ended.
    pub next: Option<P>,
}

/// A place in the order of messages: after one of them, or before all. Back-ends number it as they like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place(pub(crate) i64);

/// What a reader gets, or why not.
pub type Read<T> = Result<T, ReadError>;

/// Reads a store. Each call sees it as it was at one moment, and only what is durable.
///
/// All of these fail when the store cannot be read, or when the one record that was asked for is damaged. In lists a
/// damaged record is a row that says so, and hides none of the others.
pub trait Query: Debug + Send {
    /// All sessions, archived ones too, in their order.
    fn sessions(&self) -> Read<Vec<Loaded>>;

    /// The session of this id.
    fn session(&self, id: SessionId) -> Read<Option<Loaded>>;

    /// The session that a name or the beginning of an id stands for.
    ///
    /// A name goes before an id, and one that is not archived before those that are.
    fn find(&self, name_or_prefix: &str) -> Read<Lookup>;

    /// The messages of a session in the order in which they came.
    fn messages(&self, session: SessionId, state: Option<MessageState>, take: Take) -> Read<Vec<Message>>;

    /// One message.
    fn message(&self, message: MessageId) -> Read<Option<Message>>;

    /// One message with all of its answer, however long that is.
    fn answered(&self, message: MessageId) -> Read<Option<Message>>;

    /// The message that a dedupe key of a session stands for; nothing where that was forgotten, too.
    fn message_by_key(&self, session: SessionId, key: &str) -> Read<Option<Message>>;

    /// What a dedupe key of a session stood for, if the message was forgotten.
    fn spent_key(&self, session: SessionId, key: &str) -> Read<Option<SpentKey>>;

    /// How many bytes of text wait in an inbox, that of the turn under way included.
    fn waiting_bytes(&self, session: SessionId) -> Read<u64>;

    /// Messages of a session after a place, in their order, until there are `most` or the room is used up; at least
    /// one, where there is one.
    fn message_part(
        &self,
        query: MessageQuery,
        after: Place,
        most: u64,
        room: usize,
    ) -> Read<Part<Message, Place>>;

    /// The place after which a list begins that takes only some of the messages: after one of them, or the last ones.
    fn message_place(&self, query: MessageQuery, take: Take) -> Read<Place>;

    /// The place right after a message of a session.
    fn place_behind(&self, session: SessionId, message: MessageId) -> Read<Option<Place>>;

    /// The last message of a list of `most` after a place, if more come after it.
    fn message_behind_which_more_come(
        &self,
        query: MessageQuery,
        after: Place,
        most: u64,
    ) -> Read<Option<Ulid>>;

    /// How many messages there are after a place.
    fn count_messages(&self, query: MessageQuery, after: Place) -> Read<u64>;

    /// The runs of a session by their numbers, also those that came to nothing.
    fn runs(&self, session: SessionId, take: Take) -> Read<Vec<Run>>;

    /// One run.
    fn run(&self, id: RunId) -> Read<Option<Run>>;

    /// How far the tape of a session was folded.
    fn cursor(&self, session: SessionId) -> Read<Option<Cursor>>;

    /// Sums of what turns took, in the order of what they have in common. Rows that are damaged are not counted.
    fn usage(&self, query: &UsageQuery) -> Read<Vec<UsageSum>>;

    /// What is known of accounts: name and state of each. One that is damaged is as if it was not known.
    fn accounts(&self) -> Read<Vec<(String, String)>>;

    /// Events by their numbers.
    fn events(&self, query: &EventQuery) -> Read<Vec<Event>>;

    /// Events after a number, in their order, until there are `most` or the room is used up; at least one, where there
    /// is one. What the query says of how many to take is not looked at: see [`Query::event_place`].
    fn event_part(&self, query: &EventQuery, after: u64, most: u64, room: usize) -> Read<Part<Event, u64>>;

    /// The number after which a list of events begins.
    fn event_place(&self, query: &EventQuery) -> Read<u64>;

    /// The last event of a list of `most` after a number, if more come after it.
    fn event_behind_which_more_come(&self, query: &EventQuery, after: u64, most: u64) -> Read<Option<u64>>;

    /// How many events there are after a number. Of one session, or since a time, no more than [`COUNTED`] are counted.
    fn count_events(&self, query: &EventQuery, after: u64) -> Read<Count>;

    /// The number of the newest event; 0 before the first.
    fn max_seq(&self) -> Read<u64>;

    /// From where on no event was forgotten; nothing before the first.
    fn complete_from(&self) -> Read<Option<Complete>>;

    /// Sessions, not archived, whose oldest run had ended before a moment, and that have more runs than those that stay.
    fn with_old_runs(&self, before: Wall) -> Read<Vec<SessionId>>;

    /// Sessions, not archived, whose oldest message that is done was so before a moment.
    fn with_old_messages(&self, before: Wall) -> Read<Vec<SessionId>>;

    /// Messages of a session after a place that were done before a moment, and where the list goes on after `most`.
    fn old_messages(
        &self,
        session: SessionId,
        before: Wall,
        after: Place,
        most: u64,
    ) -> Read<Part<Ulid, Place>>;

    /// What was forgotten and not told yet.
    fn untold(&self) -> Read<Untold>;

    /// What is known of the daemons that used this store.
    fn meta(&self) -> Read<Meta>;

    /// The bytes that its rows take up: what was forgotten leaves room, which is used again.
    fn bytes_used(&self) -> Read<u64>;

    /// The bytes of that room which can be given back; a file that is older than this cannot.
    fn bytes_free(&self) -> Read<u64>;

    /// The bytes that its files take up on disk.
    fn disk_used(&self) -> u64;

    /// Looks at everything, and says what is wrong; nothing when all is well.
    fn check(&mut self, pace: &Pace) -> Read<Vec<String>>;

    /// Writes a whole and consistent copy to a new file, readable for its owner only; returns its size. `beside` reads
    /// files that belong to the store and are not in it, once, after the store was copied.
    ///
    /// # Errors
    /// The file is there already, or cannot be written, or the store is damaged: what cannot be put back is not a
    /// backup. Then none is left.
    fn backup(&self, file: &Path, beside: &mut dyn FnMut() -> io::Result<Files>) -> Result<u64, BackupError>;
}
