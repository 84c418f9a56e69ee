//! What the daemon knows of a run with a tape: its fold, how far that is stored, and what is to be said. Data
//! only.

use crate::ports::shims::observe::SessionSeen;
use pinfold_agents::{Fold, Intent, Label, Observation};
use pinfold_core::event::Shim;
use pinfold_core::{Boot, MessageId, RunNumber, Wall};
use pinfold_shim::{Exited, Flow};
use pinfold_store::{AnswerPart, Batch, Cursor, SessionId};

/// The most that may be unheard of one tape: after that the agent waits.
const MOST_UNHEARD: u64 = 64 << 20;
/// However many tapes there are, each may have this much unheard.
const LEAST_UNHEARD: u64 = 8 << 20;
/// The most that may be unheard of all tapes of a home together.
const ALL_UNHEARD: u64 = 8 << 30;

/// A cursor this many bytes behind its fold is stored on its own.
const BEHIND: u64 = 1 << 20;
/// The same after this time, in milliseconds.
const BEHIND_FOR: u64 = 10_000;

/// How many bytes of the latest output are kept in memory.
const LAST: usize = 4 << 10;

/// How much of a tape may be unheard, given the number of live tapes.
pub(crate) fn most_unheard(tapes: u64) -> u64 {
    (ALL_UNHEARD / tapes.max(1)).clamp(LEAST_UNHEARD, MOST_UNHEARD)
}

/// The tape of a run, as the daemon hears it.
pub(crate) struct HeardTape {
    pub(crate) fold: Fold,
    /// Where reading continues.
    pub(crate) next: u64,
    pub(crate) reading: TapeReading,
    /// The end of the tape when the shim last reported it, until that is read.
    pub(crate) told: Option<u64>,
    /// Since when the fold knows more than is stored or being committed; `None` if it does not.
    pub(crate) changed: Option<Boot>,
    /// How far it was when it was last stored.
    stored: u64,
    /// What is to be said as soon as possible.
    pub(crate) intents: Vec<Intent>,
    /// The number of the utterance that the shim was given and that is not on the tape yet.
    pub(crate) asked: Option<u64>,
    /// The agent does not read its input any more.
    pub(crate) shut: bool,
    /// The end that is judged when the fold has reached the end of the tape.
    pub(crate) end: Option<Judgement>,
    /// What a new daemon has found; it waits for the same.
    pub(crate) seen: Option<Box<SessionSeen>>,
    /// Whether the agent waits because its tape is full or cannot be written.
    pub(crate) flow: Flow,
    /// Parts of the answer under way that are not being committed yet.
    pub(crate) parts: Vec<AnswerPart>,
    /// When the agent last printed.
    pub(crate) printed_at: Option<Wall>,
    /// The end of its output.
    last: Vec<u8>,
    /// What was known when the run was decided; it counts once the run has started.
    pub(crate) first: Vec<Observation>,
}

/// Whether the tape is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TapeReading {
    No,
    UnderWay,
    /// It is, and it has grown meanwhile.
    Again,
}

/// An end that waits for the rest of the tape.
#[derive(Debug)]
pub(crate) enum Judgement {
    /// The shim recorded it.
    Exited { exited: Box<Exited>, shim: Shim },
    /// It was not recorded: the shim was lost.
    Lost,
}

/// A cursor that was given to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotedCursor {
    pub(crate) run: RunNumber,
    /// How far the tape was folded.
    pub(crate) to: u64,
    /// From where the tape is still needed.
    pub(crate) from: u64,
}

/// Decisions of one session that become durable together.
pub(crate) struct GatheredBatch {
    id: SessionId,
    pub(crate) batch: Batch,
    /// Whether it contains a decision.
    pub(crate) joined: bool,
}

impl GatheredBatch {
    pub(crate) fn of(id: SessionId) -> GatheredBatch {
        GatheredBatch { id, batch: Batch::new(), joined: false }
    }

    /// Adds a decision; returns whether it is not the first.
    pub(crate) fn join(&mut self, batch: Batch) -> bool {
        self.batch.append(batch);
        std::mem::replace(&mut self.joined, true)
    }

    /// Adds what becomes durable with it but is not a decision of the session.
    pub(crate) fn add(&mut self, batch: Batch) {
        self.batch.append(batch);
    }

    pub(crate) fn is_of(&self, id: SessionId) -> bool {
        self.id == id
    }
}

/// One delivery of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageDelivery {
    pub(crate) message: MessageId,
    pub(crate) attempt: u32,
    pub(crate) delivery: u64,
    pub(crate) repetition: bool,
}

impl HeardTape {
    /// The state for a run that was just decided, on a tape folded up to `floor`.
    pub(crate) fn begin(fold: Fold, first: Vec<Observation>, floor: u64, now: Boot) -> HeardTape {
        HeardTape { changed: Some(now), first, ..HeardTape::of(fold, floor, floor) }
    }

    /// The state for a run that an earlier daemon has partly heard.
    pub(crate) fn resume(run: RunNumber, state: &str, floor: u64, now: Boot) -> HeardTape {
        let (fold, first) = Fold::resume(run, state);
        let next = if fold.to() == 0 { floor } else { fold.reads_from() };
        let changed = (!first.is_empty()).then_some(now);
        HeardTape { first, changed, ..HeardTape::of(fold, next, floor) }
    }

    fn of(fold: Fold, next: u64, stored: u64) -> HeardTape {
        HeardTape {
            fold,
            next,
            reading: TapeReading::No,
            told: None,
            changed: None,
            stored,
            intents: Vec::new(),
            asked: None,
            shut: false,
            end: None,
            seen: None,
            flow: Flow::Flows,
            parts: Vec::new(),
            printed_at: None,
            last: Vec::new(),
            first: Vec::new(),
        }
    }

    /// Whether it is time to store the cursor although the output led to nothing.
    pub(crate) fn is_behind(&self, now: Boot) -> bool {
        let long = |since: Boot| now.0.saturating_sub(since.0) >= BEHIND_FOR;
        self.changed.is_some_and(long) || self.fold.to().saturating_sub(self.stored) >= BEHIND
    }

    /// Whether more of an answer waits for the disk than should be in memory.
    pub(crate) fn is_full(&self) -> bool {
        self.parts.iter().map(|part| part.text.len() as u64).sum::<u64>() >= BEHIND
    }

    /// The cursor to store, and what the shim may be told of the tape afterwards. From here on it counts as
    /// stored.
    pub(crate) fn cursor(&mut self, session: SessionId, floor: u64) -> (Cursor, NotedCursor) {
        let (run, to) = (self.fold.run(), self.fold.to().max(floor));
        let from = if self.fold.to() == 0 { floor } else { self.fold.reads_from() };
        self.changed = None;
        self.stored = to;
        (Cursor { session, run, position: to, state: self.fold.cursor() }, NotedCursor { run, to, from })
    }

    /// Adds an intent, once.
    pub(crate) fn want(&mut self, intent: Intent) {
        let same = |known: &Intent| match (known, &intent) {
            // A delivered message replaces an earlier one.
            (Intent::Prompt(_), Intent::Prompt(_)) => true,
            (known, intent) => known.label() == intent.label(),
        };
        self.intents.retain(|known| !same(known));
        self.intents.push(intent);
    }

    /// Keeps the end of the agent's output for the record of its exit.
    pub(crate) fn printed(&mut self, bytes: &[u8], at: Wall) {
        self.printed_at = Some(at);
        self.last.extend_from_slice(&bytes[bytes.len().saturating_sub(LAST)..]);
        if self.last.len() > 2 * LAST {
            self.last.drain(..self.last.len() - LAST);
        }
    }

    /// The last lines that the agent printed.
    pub(crate) fn last_lines(&self, most: usize) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.last);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(most)..].iter().map(|line| (*line).to_owned()).collect()
    }

    /// An utterance has appeared on the tape.
    pub(crate) fn was_said(&mut self, number: u64, label: &Label) {
        self.intents.retain(|intent| intent.label() != *label);
        self.asked.take_if(|asked| *asked <= number);
    }
}
