//! Keeps an index up to date with the store, a few rows at a time: first new rows, then older ones, then removed ones.
//!
//! It goes by the numbers of events, which are never reused. Messages older than the index are read session
//! by session, because their events may have been forgotten.

use super::index::{Doc, Index, IndexError};
use super::{IndexCandidate, Indexed, has_own_words};
use crate::query::{EventQuery, MessagePlace, MessageQuery, Query, Take};
use crate::rows::{Loaded, Message, StoredEvent};
use crate::ulid::{SessionId, Ulid};
use pinfold_core::{EventKind, MessageId};
use std::path::Path;

/// The most rows, and about the most bytes, in one step: under 5 ms.
const ROWS: u64 = 48;
const ROOM: usize = 32 << 10;
/// How many rows are looked up or removed in one step.
const LOOKED_AT: usize = 128;
/// How many pages are merged after each step: enough to keep up with it.
const TIDIED: i64 = 48;
/// How many pages are rewritten in one step.
const PAGES: i64 = 16;
/// After this many steps the log is checkpointed, as a step of its own because it waits for the disk.
const CARRIED: u32 = 4;

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stepped {
    /// There is more to do.
    More,
    /// The index is up to date.
    UpToDate,
}

/// Keeps an index up to date with a store.
#[derive(Debug)]
pub struct Follower {
    index: Index,
    /// Sessions whose messages are not all indexed yet, by id; `None` once all are.
    old: Option<Vec<SessionId>>,
    /// The number of steps whose pages are only in the log.
    carry: u32,
    /// The log as the last step left it.
    log: Option<(u64, u64, u64)>,
}

impl Follower {
    /// Opens the index of a store. One that is missing, damaged, or of another store is rebuilt.
    ///
    /// # Errors
    /// The file cannot be used, or the store cannot be read.
    pub fn open(path: &Path, reader: &dyn Query) -> Result<Follower, IndexError> {
        let index = Index::open_or_make(path)?;
        let mut follower = Follower { index, old: None, carry: 0, log: None };
        if !follower.is_of(reader)? {
            follower.begin(reader)?;
        }
        if follower.index.state::<i64>("walked")?.is_none() {
            follower.old = Some(ids(reader)?);
        }
        follower.log = follower.index.log();
        Ok(follower)
    }

    /// Rebuilds an index that is known to be damaged.
    ///
    /// # Errors
    /// As for [`Follower::open`].
    pub fn anew(path: &Path, reader: &dyn Query) -> Result<Follower, IndexError> {
        Index::remove(path)?;
        Follower::open(path, reader)
    }

    /// Whether searches find the files that this one writes, as it left them.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.index.is_in_place() && self.log == self.index.log()
    }

    /// Returns how much of the store is indexed.
    ///
    /// # Errors
    /// As for [`Follower::open`].
    pub fn indexed(&self, reader: &dyn Query) -> Result<Indexed, IndexError> {
        self.index.indexed(reader)
    }

    /// Does a small part of what is left to do.
    ///
    /// # Errors
    /// As for [`Follower::open`]; what the step had done is undone.
    pub fn step(&mut self, reader: &dyn Query) -> Result<Stepped, IndexError> {
        let stepped = self.go_on(reader);
        self.log = self.index.log();
        stepped
    }

    fn go_on(&mut self, reader: &dyn Query) -> Result<Stepped, IndexError> {
        if self.carry >= CARRIED {
            self.carry = 0;
            self.index.checkpoint()?;
            return Ok(Stepped::More);
        }
        self.carry += 1;
        if self.follow(reader)? || self.walk(reader)? || self.recall(reader)? {
            self.index.tidy(TIDIED)?;
            return Ok(Stepped::More);
        }
        Ok(if self.sweep(reader)? || self.merge()? { Stepped::More } else { Stepped::UpToDate })
    }

    /// Whether the store has the event that was indexed last: a store that was put back from a copy has a
    /// different one, or none. A file that replaced ours may have got some of our words through the log.
    fn is_of(&self, reader: &dyn Query) -> Result<bool, IndexError> {
        if self.index.state::<i64>("file")? != Some(self.index.file_number()) {
            return Ok(false);
        }
        let (Some(seq), Some(mark)) = (self.index.state::<u64>("seq")?, self.index.state::<i64>("mark")?)
        else {
            return Ok(false);
        };
        Ok(mark_of(reader, seq)? == mark)
    }

    fn begin(&self, reader: &dyn Query) -> Result<(), IndexError> {
        self.index.empty()?;
        let (newest, mut left) = (reader.max_seq()?, 0);
        for session in ids(reader)? {
            left += reader.count_messages(MessageQuery { session, state: None }, MessagePlace::default())?;
        }
        let mark = mark_of(reader, newest)?;
        self.index.at_once(|| {
            self.index.put_state("file", self.index.file_number())?;
            self.index.put_state("begun", newest)?;
            self.index.put_state("seq", newest)?;
            self.index.put_state("mark", mark)?;
            self.index.put_state("left", left)
        })
    }

    /// Indexes what has happened since; returns whether there was anything.
    fn follow(&self, reader: &dyn Query) -> Result<bool, IndexError> {
        let after = self.index.state("seq")?.unwrap_or(0);
        let part = reader.event_part(&EventQuery::default(), after, ROWS, ROOM)?;
        let Some(last) = part.rows.last() else { return Ok(false) };
        self.index.at_once(|| {
            for event in &part.rows {
                if !self.happened(reader, event)? {
                    return self.followed_to(event.seq.saturating_sub(1), reader);
                }
            }
            self.followed_to(last.seq, reader)
        })?;
        Ok(true)
    }

    fn followed_to(&self, seq: u64, reader: &dyn Query) -> Result<(), IndexError> {
        self.index.put_state("seq", seq)?;
        self.index.put_state("mark", mark_of(reader, seq)?)
    }

    /// Indexes one event; returns whether it is finished with it.
    fn happened(&self, reader: &dyn Query, event: &StoredEvent) -> Result<bool, IndexError> {
        let kind = &event.kind;
        if has_own_words(kind) {
            self.take_in_why(event)?;
        }
        if *kind == EventKind::Pruned {
            self.index.put_state("sweep", 0)?;
        }
        if [EventKind::MessageQueued, EventKind::MessageDone].contains(kind) {
            let id = event.data.get("message").and_then(|id| id.as_str()?.parse::<Ulid>().ok());
            let message = id.map(|id| super::readable(reader, id.into())).transpose()?.flatten();
            message.map_or(Ok(()), |message| self.take_in(&message))?;
        }
        match event.session.filter(|_| *kind == EventKind::Removed) {
            Some(session) => self.remove(session),
            None => Ok(true),
        }
    }

    /// Removes what a session had; returns whether that was all of it.
    fn remove(&self, session: SessionId) -> Result<bool, IndexError> {
        let rows = self.index.of_session(session, LOOKED_AT)?;
        rows.iter().try_for_each(|id| self.index.take_out(*id))?;
        self.index.put_state("merge", 1)?;
        Ok(rows.len() < LOOKED_AT)
    }

    fn take_in(&self, message: &Message) -> Result<(), IndexError> {
        let (id, session) = (MessageId::from(message.id), Some(message.session));
        self.index.put(&IndexCandidate::Message(id), session, &message.text)?;
        match &message.answer {
            Some(answer) => self.index.put(&IndexCandidate::Answer(id), session, answer),
            None => Ok(()),
        }
    }

    fn take_in_why(&self, event: &StoredEvent) -> Result<(), IndexError> {
        self.index.put(&IndexCandidate::Why(event.seq), event.session, &event.why)
    }

    /// Indexes messages older than the index; returns whether any are left.
    fn walk(&mut self, reader: &dyn Query) -> Result<bool, IndexError> {
        let Some(sessions) = &self.old else { return Ok(false) };
        let walked = self.index.state::<String>("session")?.and_then(|id| id.parse::<SessionId>().ok());
        let Some(session) = sessions.iter().find(|id| walked.is_none_or(|walked| **id > walked)) else {
            self.index.at_once(|| {
                self.index.put_state("walked", 1)?;
                self.index.put_state("left", 0)
            })?;
            self.old = None;
            return Ok(true);
        };
        let after = MessagePlace(self.index.state("place")?.unwrap_or(0));
        let query = MessageQuery { session: *session, state: None };
        let part = reader.message_part(query, after, ROWS, ROOM)?;
        let count = part.rows.len() as u64;
        self.index.at_once(|| {
            for message in part.rows.iter().filter(|message| message.damage.is_none()) {
                self.take_in(message)?;
            }
            if part.next.is_none() {
                self.index.put_state("session", session.to_string())?;
            }
            self.index.put_state("place", part.next.map_or(0, |next| next.0))?;
            let (left, seen) = (self.index.number("left")?, self.index.number("seen")?);
            self.index.put_state("left", left.saturating_sub(count))?;
            self.index.put_state("seen", seen + count)
        })?;
        Ok(true)
    }

    /// Indexes events older than the index; returns whether any are left.
    fn recall(&self, reader: &dyn Query) -> Result<bool, IndexError> {
        let (begun, after) = (self.index.number("begun")?, self.index.number("recalled")?);
        if after >= begun {
            return Ok(false);
        }
        let query = EventQuery { until: Some(begun), ..EventQuery::default() };
        let part = reader.event_part(&query, after, ROWS, ROOM)?;
        self.index.at_once(|| {
            for event in part.rows.iter().filter(|event| has_own_words(&event.kind)) {
                self.take_in_why(event)?;
            }
            self.index.put_state("recalled", part.next.unwrap_or(begun))
        })?;
        Ok(true)
    }

    /// Removes what was forgotten; returns whether there is more to look at.
    fn sweep(&self, reader: &dyn Query) -> Result<bool, IndexError> {
        let Some(after) = self.index.state::<i64>("sweep")? else { return Ok(false) };
        let docs = self.index.docs(after, LOOKED_AT)?;
        let mut gone = Vec::new();
        for doc in &docs {
            if !is_there(reader, doc)? {
                gone.push(doc.id);
            }
        }
        self.index.at_once(|| {
            gone.iter().try_for_each(|id| self.index.take_out(*id))?;
            match docs.last() {
                Some(last) => self.index.put_state("sweep", last.id),
                None => {
                    self.index.put_state("merge", 1)?;
                    self.index.forget_state("sweep")
                }
            }
        })?;
        Ok(true)
    }

    /// Rewrites pages that have traces of what was removed; returns whether there is more to do.
    fn merge(&self) -> Result<bool, IndexError> {
        if self.index.state::<i64>("merge")?.is_none() {
            return Ok(false);
        }
        if self.index.at_once(|| self.index.merge(PAGES))? {
            return Ok(true);
        }
        // The log has them too, until no reader uses it.
        if self.index.empty_log()? {
            self.index.forget_state("merge")?;
        }
        Ok(true)
    }
}

fn is_there(reader: &dyn Query, doc: &Doc) -> Result<bool, IndexError> {
    Ok(match &doc.of {
        Some(IndexCandidate::Message(id) | IndexCandidate::Answer(id)) => {
            super::readable(reader, *id)?.is_some()
        }
        Some(IndexCandidate::Why(seq)) => event(reader, *seq)?.is_some(),
        None => false,
    })
}

fn ids(reader: &dyn Query) -> Result<Vec<SessionId>, IndexError> {
    let mut ids: Vec<SessionId> = reader
        .sessions()?
        .iter()
        .filter_map(|loaded| match loaded {
            Loaded::Whole(stored) => Some(stored.id),
            Loaded::Damaged(damaged) => damaged.id.parse().ok(),
        })
        .collect();
    ids.sort_unstable();
    Ok(ids)
}

fn event(reader: &dyn Query, seq: u64) -> Result<Option<StoredEvent>, IndexError> {
    let Some(after) = seq.checked_sub(1) else { return Ok(None) };
    let query = EventQuery { after, until: Some(seq), take: Take::First(1), ..EventQuery::default() };
    Ok(reader.events(&query)?.pop())
}

/// Returns a hash that tells the event of one store from that of another with the same number (FNV-1a).
fn mark_of(reader: &dyn Query, seq: u64) -> Result<i64, IndexError> {
    let Some(event) = event(reader, seq)? else { return Ok(0) };
    let text = format!("{} {} {:?} {}", event.at.0, event.kind, event.session, event.why);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    Ok(hash.cast_signed())
}
