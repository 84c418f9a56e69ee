//! Why the engine does not do what was asked of it: facts; `show/why_not.rs` has the words.

use pinfold_store::Trouble;
use std::path::PathBuf;

/// A refusal of the engine itself. What a session refuses is the core's `Refusal`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WhyNot {
    /// The session has been removed.
    Gone,
    /// No session has this name or id.
    Unknown { wanted: String },
    /// No session that can be read has this name or id; it may be one of those that cannot.
    PerhapsDamaged { wanted: String, damaged: Vec<String>, state: PathBuf },
    /// Several ids begin so.
    Ambiguous { wanted: String },
    /// The record of the session is damaged.
    Damaged { name: String, id: String, problem: String, state: PathBuf },
    /// The parent that a session is to have was not found.
    NoParent(Box<WhyNot>),
    /// The parent that a session is to have is the session itself, or below it.
    ParentBelow { wanted: String },
    /// A session of this name exists.
    Exists { name: String },
    /// Another session took the name while this one was archived.
    NameTaken { name: String },
    /// There are as many sessions as there may be.
    TooMany { there: usize },
    /// A folder could not be made.
    NoFolder { what: &'static str, full: bool, problem: String },
    /// Only an archived session can be removed.
    NotArchived { name: String, state: &'static str },
    /// Only a session of which nothing runs can have another name.
    NotAtRest { name: String, state: &'static str },
    /// Children of the session run.
    ChildrenRun { name: String, running: Vec<String> },
    /// The files of the session could not be deleted.
    NotDeleted { problem: String },
    /// Nothing can be recorded now.
    Unrecordable(Trouble),
    /// It was on its way to the disk when nothing could be recorded any more: it may still come true.
    PerhapsRecorded { trouble: Trouble, what: String },
    /// A new session could not be recorded.
    NotRecorded { name: String, problem: String },
    /// What is stored contradicts what was decided.
    Contradicted { name: String, problem: String, goes_on: GoesOn },
    /// The daemon is going down.
    GoingDown,
}

/// What becomes of a session whose decision contradicts what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GoesOn {
    /// It begins again from what is stored.
    Again,
    /// It is left alone.
    LeftAlone,
}
