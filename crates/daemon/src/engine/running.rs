//! What the daemon knows of a run while it lives, besides what the core knows. Dropped with the run. Data
//! only.

use crate::define::definition::{MessageFormat, TurnEndRule};
use crate::define::kept::Found;
use crate::engine::stopping::{ShimHeard, StopWatch};
use crate::engine::taping::HeardTape;
use crate::engine::terminal::RunTerminal;
use pinfold_core::{ConsumerId, RunNumber};
use std::time::{Duration, Instant};

/// A run that was decided and has not ended.
pub(crate) struct LiveRun {
    pub(crate) number: RunNumber,
    /// When this daemon decided it; cleared once it runs.
    pub(crate) due: Option<Instant>,
    /// How its agent is talked to since its start: a change of the definition counts from the next run on.
    pub(crate) spoken: Option<(MessageFormat, TurnEndRule)>,
    pub(crate) ready: bool,
    pub(crate) status: Option<String>,
    pub(crate) memory: RunMemory,
    /// Clients on its terminal: they leave when it ends.
    pub(crate) viewers: Vec<ConsumerId>,
    /// `unlock` is ending it, or has.
    pub(crate) unlocked: bool,
    /// The grace of the last stop asked for: a shim that is still starting has not heard of it.
    pub(crate) stop: Option<Duration>,
    /// The stop that is watched, and whether the shim has reported anything since it was asked for a sign of
    /// life.
    pub(crate) watch: Option<StopWatch>,
    pub(crate) heard: ShimHeard,
    /// What is known of its terminal, if it has one.
    pub(crate) terminal: RunTerminal,
    /// What the vendor had of its conversation before it started, if that was looked for.
    pub(crate) transcript: Option<Found>,
    /// Its tape, if it has one.
    pub(crate) taping: Option<Box<HeardTape>>,
}

/// What is known of a run's memory, besides what the core knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunMemory {
    Unwatched,
    /// It is watched; the swap it used at the last reading.
    Watched {
        swap: Option<u64>,
    },
}

impl LiveRun {
    pub(crate) fn new(number: RunNumber) -> LiveRun {
        LiveRun {
            number,
            due: None,
            spoken: None,
            ready: false,
            status: None,
            memory: RunMemory::Unwatched,
            viewers: Vec::new(),
            unlocked: false,
            stop: None,
            watch: None,
            heard: ShimHeard::Since,
            terminal: RunTerminal::default(),
            transcript: None,
            taping: None,
        }
    }

    /// Its use of swap, if known.
    pub(crate) fn swap(&self) -> Option<u64> {
        if let RunMemory::Watched { swap } = self.memory { swap } else { None }
    }
}
