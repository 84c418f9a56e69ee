//! What a request was admitted with: its caller, and what that may see and touch.

use super::{By, Caller};
use pinfold_store::SessionId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A request that was admitted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pass {
    /// The caller; `None` for what the daemon does by itself.
    pub(crate) by: Option<Arc<By>>,
    /// The limits of a caller that is a run; `None` for a person.
    kept: Option<Arc<CallerLimits>>,
}

/// The limits of a run.
#[derive(Debug)]
pub(crate) struct CallerLimits {
    pub(crate) own: SessionId,
    pub(crate) parent: Option<SessionId>,
    pub(crate) children: BTreeSet<SessionId>,
    pub(crate) confined: bool,
}

impl Pass {
    /// The pass of a person.
    pub(crate) fn of_person(caller: Arc<Caller>) -> Pass {
        Pass { by: Some(Arc::new(By::new(caller, None))), kept: None }
    }

    /// The pass of a caller with limits, or without.
    pub(crate) fn of(by: By, kept: Option<CallerLimits>) -> Pass {
        Pass { by: Some(Arc::new(by)), kept: kept.map(Arc::new) }
    }

    /// Whether a session may be shown in a list.
    pub(crate) fn shows(&self, id: SessionId) -> bool {
        self.kept.as_ref().is_none_or(|kept| match kept.confined {
            true => kept.own == id,
            false => kept.touches(id) || kept.parent == Some(id),
        })
    }

    /// Whether a request for many sessions may act on this one.
    pub(crate) fn touches(&self, id: SessionId) -> bool {
        self.kept.as_ref().is_none_or(|kept| kept.touches(id))
    }

    /// The session it acts for, if it is limited to that one.
    pub(crate) fn own(&self) -> Option<SessionId> {
        self.kept.as_ref().map(|kept| kept.own)
    }

    /// Whether it is limited to what a sandbox may see.
    pub(crate) fn is_confined(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.confined)
    }

    /// Whether it has any limits.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }
}

impl CallerLimits {
    fn touches(&self, id: SessionId) -> bool {
        self.own == id || self.children.contains(&id)
    }
}

#[cfg(test)]
mod tests;
