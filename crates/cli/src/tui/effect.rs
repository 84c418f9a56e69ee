//! Inputs and effects: what goes into `update` and what comes out of it, as data.

use super::model::SessionDetails;
use super::sessions::SessionsNews;
use super::typed::Typed;
use pinfold_api::object::{Hit, Lock, Purged};
use pinfold_api::request::{NewSession, Permission};
use pinfold_terminal::Looks;

/// Something that happened.
#[derive(Debug)]
pub(crate) enum UiInput {
    Typed(Typed),
    /// The terminal now has this many columns and rows.
    Resized(u16, u16),
    Feed(SessionsNews),
    Answered(UiReply),
    /// The contents of a watched session's terminal, or why it cannot be seen.
    Screen {
        of: String,
        shown: Result<Vec<Vec<(String, Looks)>>, String>,
    },
    /// Output of a followed session, or why no more will arrive.
    Followed {
        of: String,
        lines: Result<Vec<String>, String>,
    },
    /// An attach has ended; with the last thing it said.
    Back(Result<String, String>),
    /// Enough time has passed for something shown to be out of date.
    Tick,
}

/// Something for the shell to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    Quit,
    /// Attach to the session of this id.
    Attach {
        id: String,
    },
    Ask(UiRequest),
    /// Watch this terminal, or stop watching.
    Watch(Option<WatchTarget>),
    /// Follow this session's output, or stop following.
    Follow(Option<String>),
    /// Save what survives a restart of the UI.
    Keep,
    /// Call the user's attention with this text.
    Call(String),
    /// The user is looking: take back the call for attention.
    Calm,
    /// Capture the mouse, or leave it to the terminal.
    Mouse(bool),
    /// Repaint everything.
    Redraw,
}

/// A terminal to watch, and the size to show it in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WatchTarget {
    pub(crate) id: String,
    pub(crate) rows: u16,
    pub(crate) columns: u16,
}

/// A request to the daemon or the file system.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum UiRequest {
    Detail {
        id: String,
    },
    /// Tells the daemon that the user has looked at a session.
    Look {
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
    /// Lists the directories that a path may be completed to.
    Complete {
        path: String,
    },
}

impl UiRequest {
    /// Whether something is different afterwards.
    pub(crate) fn changes_something(&self) -> bool {
        match self {
            UiRequest::Detail { .. }
            | UiRequest::Search { .. }
            | UiRequest::Locks
            | UiRequest::Complete { .. } => false,
            UiRequest::Purge { dry } => !dry,
            UiRequest::Look { .. }
            | UiRequest::Send { .. }
            | UiRequest::Answer { .. }
            | UiRequest::Interrupt { .. }
            | UiRequest::Start { .. }
            | UiRequest::Stop { .. }
            | UiRequest::Restart { .. }
            | UiRequest::Archive { .. }
            | UiRequest::Restore { .. }
            | UiRequest::Tags { .. }
            | UiRequest::New(_) => true,
        }
    }
}

/// The result of a request.
#[derive(Debug)]
pub(crate) enum UiReply {
    Detail {
        id: String,
        gathered: Result<Box<SessionDetails>, String>,
    },
    Found {
        text: String,
        hits: Result<Vec<Hit>, String>,
    },
    /// Nothing to tell.
    Nothing,
    /// Done, with what to tell the user.
    Done(String),
    /// A message is durable, with what to tell the user.
    Sent {
        id: String,
        said: String,
    },
    /// A session was archived.
    Archived {
        id: String,
        name: String,
    },
    /// A session was created: its id and name.
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
