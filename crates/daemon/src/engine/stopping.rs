//! What is known of an end under way: of a run that was told to stop, and of a session when the daemon goes
//! down.

use pinfold_core::RunNumber;
use pinfold_core::unended::Unended;
use std::time::Instant;

/// A stop that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StopWatch {
    pub(super) run: RunNumber,
    /// When its grace is over.
    pub(super) until: Instant,
}

/// How far a watched stop is past its grace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// Long enough to ask the shim for a sign of life.
    ToAsk,
    /// Too long for a running shim to stay silent.
    Unanswered,
    /// Too long for a tree that can be ended.
    Unended,
}

/// Whether a shim has reported anything since it was asked for a sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShimHeard {
    Since,
    /// It has not; `ran` is the CPU time it had used when it was asked, in nanoseconds.
    NotSince {
        ran: Option<u64>,
    },
}

/// How far one session is with the daemon's shutdown.
#[derive(Debug, Default)]
pub(crate) struct Farewell {
    /// It had long enough to come to rest, and what is in the way is not known yet.
    pub(super) overdue: bool,
    /// How often its tree was killed.
    pub(super) endings: u32,
    /// What is left of it, if anything.
    pub(super) left: Option<Unended>,
}
