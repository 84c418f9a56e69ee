//! What is to become of several sessions at once, in plain data.

use super::why_not::WhyNot;
use crate::caller::By;
use crate::define::definition::Definition;
use crate::ports::files::NotMade;
use pinfold_api::Name;
use pinfold_core::life::CannotStart;
use pinfold_store::SessionId;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The reply: the ids of the new sessions, in the order in which they were requested.
type Reply = oneshot::Sender<Result<Vec<SessionId>, NotDeclared>>;

/// What is to become of several sessions.
pub(crate) struct Declaration {
    pub(crate) creates: Vec<DeclaredNew>,
    pub(crate) changes: Vec<DeclaredChange>,
    pub(crate) archives: Vec<SessionId>,
    pub(crate) by: Option<Arc<By>>,
    pub(crate) reply: Reply,
    /// The ids of the new sessions whose folders exist.
    pub(crate) folders: Vec<SessionId>,
    /// Why the next folder could not be made.
    pub(crate) not_made: Option<NotMade>,
}

/// A new session.
pub(crate) struct DeclaredNew {
    pub(crate) name: Name,
    pub(crate) definition: Definition,
    /// Why it cannot run, if it is created by force.
    pub(crate) broken: Option<CannotStart>,
    /// Its parent if that is still to be found, by name: it may be created by the same request.
    pub(crate) parent: Option<String>,
}

/// A session that changes.
pub(crate) struct DeclaredChange {
    pub(crate) id: SessionId,
    pub(crate) name: String,
    pub(crate) definition: Definition,
    pub(crate) given: VariablesChange,
    /// Its new parent, by name.
    pub(crate) parent: Option<String>,
}

/// What of a declaration depends on other sessions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outline {
    /// Names of new sessions, and of their parents.
    pub(crate) creates: Vec<(String, Option<String>)>,
    /// Sessions that change, with their names and those of their new parents.
    pub(crate) changes: Vec<(SessionId, String, Option<String>)>,
    pub(crate) archives: Vec<SessionId>,
}

/// Why nothing was done, and because of which session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotDeclared {
    pub(crate) name: Option<String>,
    pub(crate) why: WhyNot,
}

impl NotDeclared {
    pub(super) fn of(name: &str) -> impl FnOnce(WhyNot) -> NotDeclared {
        |why| NotDeclared { name: Some(name.to_owned()), why }
    }
}

impl From<WhyNot> for NotDeclared {
    fn from(why: WhyNot) -> NotDeclared {
        NotDeclared { name: None, why }
    }
}

impl Declaration {
    pub(super) fn outline(&self) -> Outline {
        let creates = self.creates.iter().map(|new| (new.name.as_str().to_owned(), new.parent.clone()));
        let changes = self.changes.iter();
        let changes = changes.map(|change| (change.id, change.name.clone(), change.parent.clone()));
        Outline { creates: creates.collect(), changes: changes.collect(), archives: self.archives.clone() }
    }
}

/// Whether a change concerns variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VariablesChange {
    /// They are those of the new definition.
    Changed,
    /// They stay what they are at the time of the change.
    AsBefore,
}
