//! What a child has to be forked with, before it is known what it becomes.

use crate::protocol::start::{Contain, Start, Stdin};
use pinfold_terminal::Size;

/// What a child has to be forked with; it is told everything else at its gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChildShape {
    pub(super) terminal: Option<Size>,
    pub(super) stdin: Stdin,
    pub(super) contain: Contain,
}

impl ChildShape {
    pub(super) fn of(start: &Start) -> Self {
        Self { terminal: start.terminal, stdin: start.stdin, contain: start.contain }
    }

    /// Returns the shape of the next run, if one is to follow at once. A terminal is made only when it is
    /// asked for.
    pub(super) fn behind(start: &Start) -> Option<Self> {
        (start.repeats && start.terminal.is_none()).then(|| Self::of(start))
    }
}
