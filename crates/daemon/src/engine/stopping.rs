//! What is known of an end that is under way: of a run that was told to stop, and of a session at the daemon's end.

use pinfold_core::RunNumber;
use pinfold_core::unended::Unended;
use std::time::Instant;

/// A stop that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Watch {
    pub(super) run: RunNumber,
    /// When its grace is over.
    pub(super) until: Instant,
}

/// How far a watched stop is behind its grace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// Long enough to ask.
    ToAsk,
    /// Too long for a shim that runs to be silent.
    Unanswered,
    /// Too long for a tree that can be ended.
    Unended,
}

/// Whether a shim has said anything since it was asked for a sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    Since,
    /// It has not; and how long it had run when it was asked, in nanoseconds.
    NotSince {
        ran: Option<u64>,
    },
}

/// How the daemon's end stands with one session.
#[derive(Debug, Default)]
pub(crate) struct Farewell {
    /// It had long enough to come to rest, and it is not known yet who is in the way.
    pub(super) overdue: bool,
    /// How often its tree was ended.
    pub(super) endings: u32,
    /// Who is left behind, where somebody is.
    pub(super) left: Option<Unended>,
}
