//! What one request is let through with: whose it is, and what it may see and touch.

use super::{By, Caller};
use pinfold_store::SessionId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A request that was let through.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pass {
    /// Who asks; nothing in what the daemon does by itself.
    pub(crate) by: Option<Arc<By>>,
    /// What it is kept to; nothing for a person.
    kept: Option<Arc<Kept>>,
}

/// What a run is kept to.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) own: SessionId,
    pub(crate) parent: Option<SessionId>,
    pub(crate) children: BTreeSet<SessionId>,
    pub(crate) confined: bool,
}

impl Pass {
    /// That of a person.
    pub(crate) fn of_person(caller: Arc<Caller>) -> Pass {
        Pass { by: Some(Arc::new(By::new(caller, None))), kept: None }
    }

    /// That of a caller that is kept to something, or to nothing.
    pub(crate) fn of(by: By, kept: Option<Kept>) -> Pass {
        Pass { by: Some(Arc::new(by)), kept: kept.map(Arc::new) }
    }

    /// Whether a session may be shown in a list.
    pub(crate) fn shows(&self, id: SessionId) -> bool {
        self.kept.as_ref().is_none_or(|kept| match kept.confined {
            true => kept.own == id,
            false => kept.touches(id) || kept.parent == Some(id),
        })
    }

    /// Whether it may be acted on by what takes many.
    pub(crate) fn touches(&self, id: SessionId) -> bool {
        self.kept.as_ref().is_none_or(|kept| kept.touches(id))
    }

    /// The session that it acts for, where it is kept to that.
    pub(crate) fn own(&self) -> Option<SessionId> {
        self.kept.as_ref().map(|kept| kept.own)
    }

    /// Whether it is kept to what a sandbox lets it see.
    pub(crate) fn is_confined(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.confined)
    }

    /// Whether it is kept to anything.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }
}

impl Kept {
    fn touches(&self, id: SessionId) -> bool {
        self.own == id || self.children.contains(&id)
    }
}

#[cfg(test)]
mod tests;
