//! What comes in, and what is to be done: the two ends of `update`, as data.

use super::known::News;
use super::model::Gathered;
use super::typed::Typed;
use pinfold_api::object::{Hit, Lock, Purged};
use pinfold_api::request::{NewSession, Permission};
use pinfold_terminal::Looks;

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Input {
    Typed(Typed),
    /// The terminal has so many columns and rows.
    Resized(u16, u16),
    Feed(News),
    Answered(Answer),
    /// The terminal of a session that is looked at; or why it is not seen.
    Screen {
        of: String,
        shown: Result<Vec<Vec<(String, Looks)>>, String>,
    },
    /// Output of a session that is followed; or why no more comes.
    Followed {
        of: String,
        lines: Result<Vec<String>, String>,
    },
    /// Back from an attach, with what it said last.
    Back(Result<String, String>),
    /// Time has passed that is shown.
    Tick,
}

/// Something to be done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    Quit,
    /// Attach to the session of this id.
    Attach {
        id: String,
    },
    Ask(Request),
    /// Look at this terminal, or at none any more.
    Watch(Option<Watch>),
    /// Follow this output, or none any more.
    Follow(Option<String>),
    /// Keep what is kept over runs of the UI.
    Keep,
    /// Call for a person.
    Call(String),
    /// Somebody looks: nobody has to be called any more.
    Calm,
    /// Take the mouse, or leave it to the terminal.
    Mouse(bool),
    /// Paint everything anew.
    Redraw,
}

/// A terminal that is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Watch {
    pub(crate) id: String,
    pub(crate) rows: u16,
    pub(crate) columns: u16,
}

/// What the daemon, or the file system, is asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Request {
    Detail {
        id: String,
    },
    Search {
        text: String,
    },
    Send {
        id: String,
        name: String,
        text: String,
    },
    Answer {
        id: String,
        name: String,
        permission: Permission,
    },
    Interrupt {
        id: String,
        name: String,
    },
    Start {
        id: String,
        name: String,
    },
    Stop {
        id: String,
        name: String,
    },
    Restart {
        id: String,
        name: String,
    },
    Archive {
        id: String,
        name: String,
    },
    Restore {
        id: String,
        name: String,
    },
    Tags {
        id: String,
        name: String,
        tags: Vec<String>,
    },
    New(Box<NewSession>),
    Purge {
        dry: bool,
    },
    Locks,
    /// The directories that a path may be completed to.
    Complete {
        path: String,
    },
}

impl Request {
    /// Whether something is different afterwards.
    pub(crate) fn changes_something(&self) -> bool {
        match self {
            Request::Detail { .. } | Request::Search { .. } | Request::Locks | Request::Complete { .. } => {
                false
            }
            Request::Purge { dry } => !dry,
            Request::Send { .. }
            | Request::Answer { .. }
            | Request::Interrupt { .. }
            | Request::Start { .. }
            | Request::Stop { .. }
            | Request::Restart { .. }
            | Request::Archive { .. }
            | Request::Restore { .. }
            | Request::Tags { .. }
            | Request::New(_) => true,
        }
    }
}

/// What came of a request.
#[derive(Debug)]
pub(crate) enum Answer {
    Detail {
        id: String,
        gathered: Result<Box<Gathered>, String>,
    },
    Found {
        text: String,
        hits: Result<Vec<Hit>, String>,
    },
    /// It is done; what is said of it.
    Done(String),
    /// A message is durable; what is said of it.
    Sent {
        id: String,
        said: String,
    },
    /// It was archived.
    Archived {
        id: String,
        name: String,
    },
    /// A session was made: its id and name.
    Made(Result<(String, String), String>),
    Purged {
        dry: bool,
        purged: Result<Purged, String>,
    },
    Locks(Result<Vec<Lock>, String>),
    Completed {
        path: String,
        found: Vec<String>,
    },
    Failed(String),
}
