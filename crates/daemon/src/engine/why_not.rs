//! Why the engine does not do what it was asked: facts; `show/why_not.rs` has the wording.

use pinfold_store::Trouble;
use std::path::PathBuf;

/// A refusal by the engine itself. A session's refusal is the core's `Refusal`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WhyNot {
    /// The session has been removed.
    Gone,
    /// No session has this name or id.
    Unknown { wanted: String },
    /// No readable session has this name or id; it may be one of those that cannot be read.
    PerhapsDamaged { wanted: String, damaged: Vec<String>, state: PathBuf },
    /// Several ids begin with this.
    Ambiguous { wanted: String },
    /// The record of the session is damaged.
    Damaged { name: String, id: String, problem: String, state: PathBuf },
    /// The requested parent was not found.
    NoParent(Box<WhyNot>),
    /// The requested parent is the session itself or one of its descendants.
    ParentBelow { wanted: String },
    /// The requested parent is archived by the same request.
    ParentPruned { wanted: String },
    /// A session of this name exists.
    Exists { name: String },
    /// Another session took the name while this one was archived.
    NameTaken { name: String },
    /// There are as many sessions as allowed.
    TooMany { there: usize },
    /// A folder could not be made.
    NoFolder { what: &'static str, full: bool, problem: String },
    /// Only an archived session can be removed.
    NotArchived { name: String, state: &'static str },
    /// Only a session with nothing running can be renamed.
    NotAtRest { name: String, state: &'static str },
    /// Children of the session are running.
    ChildrenRun { name: String, running: Vec<String> },
    /// The files of the session could not be deleted.
    NotDeleted { problem: String },
    /// Nothing can be recorded now.
    Unrecordable(Trouble),
    /// It was being committed when recording became impossible: it may still take effect.
    PerhapsRecorded { trouble: Trouble, what: String },
    /// A new session could not be recorded.
    NotRecorded { name: String, problem: String },
    /// A change of several sessions could not be recorded.
    NothingRecorded { problem: String },
    /// What is stored contradicts what was decided.
    Contradicted { name: String, problem: String, goes_on: GoesOn },
    /// The daemon is going down.
    GoingDown,
}

/// What happens to a session whose decision contradicts what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GoesOn {
    /// It begins again from what is stored.
    Again,
    /// It is set aside.
    LeftAlone,
}
