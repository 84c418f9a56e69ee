//! What the daemon knows of a run while it lives, beside what the core knows. It is gone with the run. Data only.

use crate::define::definition::{MessageFormat, TurnEndRule};
use crate::engine::stopping::{Heard, Watch};
use crate::engine::taping::Taping;
use crate::engine::terminal::Terminal;
use pinfold_core::{ConsumerId, RunNumber};
use std::time::{Duration, Instant};

/// A run that was decided and has not ended.
pub(crate) struct Run {
    pub(crate) number: RunNumber,
    /// When this daemon decided it, until it runs.
    pub(crate) due: Option<Instant>,
    /// How its agent is spoken to, from its start on: a change of the definition counts from the next run on.
    pub(crate) spoken: Option<(MessageFormat, TurnEndRule)>,
    pub(crate) ready: bool,
    pub(crate) status: Option<String>,
    pub(crate) memory: Memory,
    /// Who has its terminal: they go when it ends.
    pub(crate) viewers: Vec<ConsumerId>,
    /// `unlock` ends it, or has ended it.
    pub(crate) unlocked: bool,
    /// The grace of the stop that was asked for last: a shim that is still being started has not heard of it.
    pub(crate) stop: Option<Duration>,
    /// The stop that is watched, and whether its shim has said anything since it was asked for a sign of life.
    pub(crate) watch: Option<Watch>,
    pub(crate) heard: Heard,
    /// What is known of its terminal, if it has one.
    pub(crate) terminal: Terminal,
    /// Its tape, if it has one.
    pub(crate) taping: Option<Box<Taping>>,
}

/// What is known of the memory of a run, beside what the core knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    Unwatched,
    /// It is read; what the run had on the swap when it was.
    Watched {
        swap: Option<u64>,
    },
}

impl Run {
    pub(crate) fn new(number: RunNumber) -> Run {
        Run {
            number,
            due: None,
            spoken: None,
            ready: false,
            status: None,
            memory: Memory::Unwatched,
            viewers: Vec::new(),
            unlocked: false,
            stop: None,
            watch: None,
            heard: Heard::Since,
            terminal: Terminal::default(),
            taping: None,
        }
    }

    /// What it has on the swap, where that is known.
    pub(crate) fn swap(&self) -> Option<u64> {
        if let Memory::Watched { swap } = self.memory { swap } else { None }
    }
}
