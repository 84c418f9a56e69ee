//! One sweep over the past: what `[retention]` no longer allows goes, one small batch after the other.
//!
//! It only plans: [`Sweep::next`] looks through a reader, which holds up nothing, and returns the batch that
//! is due; the caller commits it, passes the result to [`Sweep::done`], and rests in between.

use crate::batch::Batch;
use crate::query::{MessagePlace, Query, Read};
use crate::step::{Old, PRUNE_WITHIN, Prune, Reason};
use crate::ticket::Committed;
use crate::ulid::SessionId;
use pinfold_core::Wall;
use std::num::NonZeroU64;
use std::time::Duration;

/// This many of the newest events are kept, however large they are.
const NEWEST: NonZeroU64 = NonZeroU64::new(1000).expect("more than none");
/// How many message ids go into one batch: the messages may be long.
const MESSAGES: u64 = 100;
/// Less free space than this is used again soon and not worth giving back, unless the file is over its limit.
const ROOM: u64 = 4 << 20;
/// A store that is too large is shrunk below its limit by this part of it: otherwise every few events would
/// start a sweep, and the file, which also has the free space between rows, would never get below its limit.
const SPARE: u64 = 16;
/// The longest rest between two batches.
const LONGEST_REST: Duration = Duration::from_millis(50);

/// What may be forgotten: whatever was over before each of these moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SweepLimits {
    /// The moment for events.
    pub events: Option<Wall>,
    /// The moment for runs that have ended.
    pub runs: Option<Wall>,
    /// The moment for messages that are done.
    pub messages: Option<Wall>,
    /// The bytes that the store may have; beyond that the oldest events and runs go.
    pub size: Option<u64>,
}

/// A sweep under way.
#[derive(Debug)]
pub struct Sweep {
    limits: SweepLimits,
    stage: Stage,
    /// Whether events went because there were too many.
    shrunk: bool,
    /// Whether there is too much although no more events can go.
    exhausted: bool,
    /// The newest event when the store was last seen to be far over its limit; `None` if it is not.
    hurried: Option<u64>,
}

#[derive(Debug)]
enum Stage {
    Events,
    /// The runs of these sessions before a moment, the last session first.
    Runs(Vec<SessionId>, Wall, Reason),
    /// The messages of these sessions, the last session first, from a place on; and where the batch under way ends.
    Messages(Vec<SessionId>, MessagePlace, Option<MessagePlace>),
    Size,
    /// Whether space is already being given back.
    Room(bool),
    Over,
}

impl Sweep {
    /// Creates a sweep that has not begun.
    #[must_use]
    pub fn new(limits: SweepLimits) -> Sweep {
        Sweep { limits, stage: Stage::Events, shrunk: false, exhausted: false, hurried: None }
    }

    /// Returns the next batch; `None` when all is done.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn next(&mut self, reader: &dyn Query) -> Read<Option<Batch>> {
        while !matches!(self.stage, Stage::Over) {
            let due = match &mut self.stage {
                Stage::Events => self.events(reader)?,
                Stage::Runs(sessions, before, reason) => {
                    let session = sessions.last().copied();
                    session.map(|session| prune(Old::Runs { session }, *before, *reason))
                }
                Stage::Messages(sessions, after, next) => match self.limits.messages {
                    Some(before) => messages(reader, before, sessions, after, next)?,
                    None => None,
                },
                Stage::Size => self.size(reader)?,
                Stage::Room(giving) => room(reader, giving, self.limits.size)?,
                Stage::Over => None,
            };
            if due.is_some() {
                return Ok(due);
            }
            self.stage = self.next_stage(reader)?;
        }
        Ok(None)
    }

    /// Notes the result of the batch.
    pub fn done(&mut self, committed: &Committed) {
        let (gone, more) = (committed.pruned.rows() > 0, committed.more);
        match &mut self.stage {
            Stage::Events if !more => self.limits.events = None,
            Stage::Runs(sessions, ..) if !more => _ = sessions.pop(),
            // A batch whose time was up is continued, unless it achieved nothing.
            Stage::Messages(sessions, after, next) if !more || !gone => match next.take() {
                Some(next) => *after = next,
                None => {
                    sessions.pop();
                    *after = MessagePlace::default();
                }
            },
            Stage::Size => {
                self.shrunk |= gone;
                self.exhausted = !more && !gone;
            }
            Stage::Room(_) if !more => self.stage = Stage::Over,
            Stage::Events | Stage::Runs(..) | Stage::Messages(..) | Stage::Room(_) | Stage::Over => {}
        }
    }

    /// Returns how long to rest after a batch that took this long: others get four times as much, unless
    /// there is far too much.
    #[must_use]
    pub fn rest(&self, took: Duration) -> Duration {
        if self.hurried.is_some() { Duration::ZERO } else { (took * 4).min(LONGEST_REST) }
    }

    fn events(&self, reader: &dyn Query) -> Read<Option<Batch>> {
        let Some(before) = self.limits.events else { return Ok(None) };
        // Nearly always there is nothing to write.
        let old = reader.complete_from()?.is_some_and(|from| from.at < before);
        Ok(old.then(|| prune(Old::Events { keep: NonZeroU64::MIN }, before, Reason::Age)))
    }

    fn size(&mut self, reader: &dyn Query) -> Read<Option<Batch>> {
        let Some(size) = self.limits.size.filter(|_| !self.exhausted) else { return Ok(None) };
        let used = reader.bytes_used()?;
        let newest = reader.max_seq()?;
        let too_much = used > size + size / SPARE;
        let before = std::mem::replace(&mut self.hurried, too_much.then_some(newest));
        // However fast others write, more goes than comes.
        let came =
            before.filter(|_| self.hurried.is_some()).map_or(0, |before| newest.saturating_sub(before));
        let oldest = Prune {
            old: Old::Events { keep: NEWEST },
            before: Wall(i64::MAX),
            reason: Reason::Size,
            within: PRUNE_WITHIN,
            at_least: came + came / 2,
        };
        let allowed = if self.shrunk { size - size / SPARE } else { size };
        Ok((used > allowed).then(|| batch_of(oldest)))
    }

    fn next_stage(&mut self, reader: &dyn Query) -> Read<Stage> {
        let runs = |before, reason| Ok(Stage::Runs(reader.with_old_runs(before)?, before, reason));
        match (&self.stage, self.limits) {
            (Stage::Events, SweepLimits { runs: Some(before), .. }) => runs(before, Reason::Age),
            (Stage::Events | Stage::Runs(_, _, Reason::Age), SweepLimits { messages: Some(before), .. }) => {
                Ok(Stage::Messages(reader.with_old_messages(before)?, MessagePlace::default(), None))
            }
            (Stage::Events | Stage::Runs(_, _, Reason::Age) | Stage::Messages(..), _) => Ok(Stage::Size),
            (Stage::Size, _) if self.exhausted => runs(Wall(i64::MAX), Reason::Size),
            // Runs go together with the events about them.
            (Stage::Size, _) if self.shrunk => {
                self.hurried = None;
                let oldest = reader.complete_from()?.map_or(Wall(i64::MIN), |from| from.at);
                runs(oldest, Reason::Size)
            }
            (Stage::Size | Stage::Runs(_, _, Reason::Size), _) => Ok(Stage::Room(false)),
            (Stage::Room(_) | Stage::Over, _) => Ok(Stage::Over),
        }
    }
}

fn messages(
    reader: &dyn Query,
    before: Wall,
    sessions: &mut Vec<SessionId>,
    after: &mut MessagePlace,
    next: &mut Option<MessagePlace>,
) -> Read<Option<Batch>> {
    while let Some(session) = sessions.last().copied() {
        let part = reader.old_messages(session, before, *after, MESSAGES)?;
        if !part.rows.is_empty() {
            *next = part.next;
            return Ok(Some(prune(Old::Messages { session, ids: part.rows }, before, Reason::Age)));
        }
        sessions.pop();
        *after = MessagePlace::default();
    }
    Ok(None)
}

/// Once begun, it continues down to half of what is worth it. A file over its limit gives back as much as it
/// is too large.
fn room(reader: &dyn Query, giving: &mut bool, size: Option<u64>) -> Read<Option<Batch>> {
    let (used, free) = (reader.bytes_used()?, reader.bytes_free()?);
    let worth = (used / 4).max(ROOM);
    let too_large = size.is_some_and(|size| free > 0 && used + free > size);
    if !too_large && free <= if *giving { worth / 2 } else { worth } {
        return Ok(None);
    }
    *giving = true;
    let mut batch = Batch::new();
    batch.give_back(PRUNE_WITHIN);
    Ok(Some(batch))
}

fn prune(old: Old, before: Wall, reason: Reason) -> Batch {
    batch_of(Prune { old, before, reason, within: PRUNE_WITHIN, at_least: 0 })
}

fn batch_of(prune: Prune) -> Batch {
    let mut batch = Batch::new();
    batch.prune(prune);
    batch
}
