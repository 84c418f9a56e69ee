//! Reading: what every back-end answers, in plain data.

use crate::cause::Cause;
use crate::copy::{BackupError, Files};
use crate::pace::CheckPace;
use crate::rows::{
    CompleteFrom, Cursor, Loaded, Lookup, Message, MessageState, Meta, SpentKey, StoredEvent, StoredRun,
};
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
        /// The back-end's error.
        #[source]
        source: Cause,
    },
    /// The one record that was asked for was altered since it was written.
    #[error("{what} {id} in `{path}` is damaged: {problem}")]
    Row {
        /// The store.
        path: PathBuf,
        /// The kind of record.
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
        /// The back-end's error.
        #[source]
        source: Cause,
    },
}

/// How many of the matching rows to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Take {
    /// All of them.
    #[default]
    All,
    /// This many of the oldest.
    First(u32),
    /// This many of the newest.
    Last(u32),
}

/// Which events to read; all of them unless it says otherwise. It covers everything that is stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventQuery {
    /// Only events with a greater number.
    pub after: u64,
    /// Only events with a number up to this.
    pub until: Option<u64>,
    /// Only events that are not older than this.
    pub since: Option<Wall>,
    /// Only events of this session.
    pub session: Option<SessionId>,
    /// How many of these to take.
    pub take: Take,
}

impl EventQuery {
    /// Whether it may leave some out for another reason than their number.
    pub(crate) fn is_of_some(&self) -> bool {
        self.until.is_some() || self.since.is_some() || self.session.is_some()
    }
}

/// At most this many rows are counted one by one: more is of no use to a person, and this takes less than a millisecond.
pub const COUNTED: u64 = 10_000;

/// How many rows there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowCount {
    /// The exact number.
    Exactly(u64),
    /// They were not all counted; there are more than this.
    MoreThan(u64),
}

impl RowCount {
    /// Makes a count of rows that were counted one by one, up to one more than [`COUNTED`].
    pub(crate) fn of_some(count: u64) -> RowCount {
        if count > COUNTED { RowCount::MoreThan(COUNTED) } else { RowCount::Exactly(count) }
    }
}

/// Which messages to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageQuery {
    /// Messages of this session.
    pub session: SessionId,
    /// Only messages in this state.
    pub state: Option<MessageState>,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage<T, P> {
    /// The rows of this part.
    pub rows: Vec<T>,
    /// Where the list continues; `None` if it has ended.
    pub next: Option<P>,
}

/// A place in the order of messages: after one of them, or before all. Back-ends number it as they like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct MessagePlace(pub(crate) i64);

/// The result of a read.
pub type Read<T> = Result<T, ReadError>;

/// Reads a store. Each call sees it as it was at one moment, and only what is durable.
///
/// All of these fail if the store cannot be read, or if the one record that was asked for is damaged. In
/// lists a damaged record is a row that says so, and hides none of the others.
pub trait Query: Debug + Send {
    /// Returns all sessions, including archived ones, in order.
    fn sessions(&self) -> Read<Vec<Loaded>>;

    /// Returns the session with this id.
    fn session(&self, id: SessionId) -> Read<Option<Loaded>>;

    /// Returns the session that a name or the beginning of an id stands for.
    ///
    /// A name takes precedence over an id, and a session that is not archived over those that are.
    fn find(&self, name_or_prefix: &str) -> Read<Lookup>;

    /// Returns the messages of a session in the order in which they came.
    fn messages(&self, session: SessionId, state: Option<MessageState>, take: Take) -> Read<Vec<Message>>;

    /// Returns one message.
    fn message(&self, message: MessageId) -> Read<Option<Message>>;

    /// Returns one message with its whole answer, however long that is.
    fn answered(&self, message: MessageId) -> Read<Option<Message>>;

    /// Returns the message that a dedupe key of a session stands for; `None` if that was forgotten, too.
    fn message_by_key(&self, session: SessionId, key: &str) -> Read<Option<Message>>;

    /// Returns what a dedupe key of a session stood for, if the message was forgotten.
    fn spent_key(&self, session: SessionId, key: &str) -> Read<Option<SpentKey>>;

    /// Returns how many bytes of text wait in an inbox, including that of the turn under way.
    fn waiting_bytes(&self, session: SessionId) -> Read<u64>;

    /// Returns messages of a session after a place, in order, until there are `most` or the room is used up;
    /// at least one, if there is one.
    fn message_part(
        &self,
        query: MessageQuery,
        after: MessagePlace,
        most: u64,
        room: usize,
    ) -> Read<ListPage<Message, MessagePlace>>;

    /// Returns the place after which a list begins that takes only some of the messages: after one of them,
    /// or the last ones.
    fn message_place(&self, query: MessageQuery, take: Take) -> Read<MessagePlace>;

    /// Returns the place right after a message of a session.
    fn place_behind(&self, session: SessionId, message: MessageId) -> Read<Option<MessagePlace>>;

    /// Returns the last message of a list of `most` after a place, if more come after it.
    fn message_behind_which_more_come(
        &self,
        query: MessageQuery,
        after: MessagePlace,
        most: u64,
    ) -> Read<Option<Ulid>>;

    /// Returns how many messages there are after a place.
    fn count_messages(&self, query: MessageQuery, after: MessagePlace) -> Read<u64>;

    /// Returns the runs of a session by number, including those that were never started.
    fn runs(&self, session: SessionId, take: Take) -> Read<Vec<StoredRun>>;

    /// Returns one run.
    fn run(&self, id: RunId) -> Read<Option<StoredRun>>;

    /// Returns how far the tape of a session was folded.
    fn cursor(&self, session: SessionId) -> Read<Option<Cursor>>;

    /// Returns sums of what turns used, ordered by what they are grouped by. Damaged rows are not counted.
    fn usage(&self, query: &UsageQuery) -> Read<Vec<UsageSum>>;

    /// Returns what is known about accounts: name and state of each. A damaged one is treated as unknown.
    fn accounts(&self) -> Read<Vec<(String, String)>>;

    /// Returns events by number.
    fn events(&self, query: &EventQuery) -> Read<Vec<StoredEvent>>;

    /// Returns events after a number, in order, until there are `most` or the room is used up; at least one,
    /// if there is one. Ignores how many the query wants to take: see [`Query::event_place`].
    fn event_part(
        &self,
        query: &EventQuery,
        after: u64,
        most: u64,
        room: usize,
    ) -> Read<ListPage<StoredEvent, u64>>;

    /// Returns the number after which a list of events begins.
    fn event_place(&self, query: &EventQuery) -> Read<u64>;

    /// Returns the last event of a list of `most` after a number, if more come after it.
    fn event_behind_which_more_come(&self, query: &EventQuery, after: u64, most: u64) -> Read<Option<u64>>;

    /// Returns how many events there are after a number. For one session, or since a time, no more than
    /// [`COUNTED`] are counted.
    fn count_events(&self, query: &EventQuery, after: u64) -> Read<RowCount>;

    /// Returns the number of the newest event; 0 before the first.
    fn max_seq(&self) -> Read<u64>;

    /// Returns where the events begin from which on none was forgotten; `None` before the first.
    fn complete_from(&self) -> Read<Option<CompleteFrom>>;

    /// Returns the sessions, not archived, whose oldest run ended before a moment and that have more runs
    /// than are kept.
    fn with_old_runs(&self, before: Wall) -> Read<Vec<SessionId>>;

    /// Returns the sessions, not archived, whose oldest finished message was done before a moment.
    fn with_old_messages(&self, before: Wall) -> Read<Vec<SessionId>>;

    /// Returns messages of a session after a place that were done before a moment, and where the list
    /// continues after `most`.
    fn old_messages(
        &self,
        session: SessionId,
        before: Wall,
        after: MessagePlace,
        most: u64,
    ) -> Read<ListPage<Ulid, MessagePlace>>;

    /// Returns what was forgotten and not yet reported.
    fn untold(&self) -> Read<Untold>;

    /// Returns what is known about the daemons that used this store.
    fn meta(&self) -> Read<Meta>;

    /// Returns the bytes that its rows take up; space of forgotten rows is not counted, and is used again.
    fn bytes_used(&self) -> Read<u64>;

    /// Returns the bytes of that space which can be given back; 0 for a file that is too old for this.
    fn bytes_free(&self) -> Read<u64>;

    /// Returns the bytes that its files take up on disk.
    fn disk_used(&self) -> u64;

    /// Checks everything and returns what is wrong; nothing if all is well.
    fn check(&mut self, pace: &CheckPace) -> Read<Vec<String>>;

    /// Writes a complete and consistent copy to a new file that only its owner can read; returns its size.
    /// `beside` reads the files that belong to the store but are not in it, once, after the store was copied.
    ///
    /// # Errors
    /// The file already exists or cannot be written, or the store is damaged: a copy that cannot be put back
    /// is not a backup. Then none is left.
    fn backup(&self, file: &Path, beside: &mut dyn FnMut() -> io::Result<Files>) -> Result<u64, BackupError>;
}
