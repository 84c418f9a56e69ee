//! How much each session needs a person: it sets the order of the list and what calls for attention.

use super::known::Known;
use pinfold_api::word::{Activity, State};

/// What a session needs; those that need a person most come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// It asks a question, or waits for a person.
    Asks,
    /// It has failed, or its record is damaged.
    Failed,
    /// A usage limit, a login or another holder's lock keeps it.
    Held,
    /// It has done something that no person has looked at.
    Unseen,
    /// It crashed and will be restarted.
    ComesBack,
    /// It works.
    Works,
    /// It runs but does nothing.
    Runs,
    /// It is idle until it is needed.
    Sleeps,
    /// A person stopped it.
    Stopped,
    /// It is archived.
    Archived,
}

impl Need {
    /// The need of a session; `looked` is how many of its turns a person has looked at, as far as this UI knows.
    pub(crate) fn of(known: &Known, looked: Option<u64>) -> Need {
        let session = &known.told.session;
        let asks = session.request.is_some() || session.activity == Activity::Waiting;
        match session.state {
            State::Archived => Need::Archived,
            _ if asks => Need::Asks,
            State::Failed | State::Damaged | State::Unknown => Need::Failed,
            State::Blocked => Need::Held,
            _ if session.activity == Activity::Limited => Need::Held,
            _ if is_unseen(known, looked) => Need::Unseen,
            State::Backoff => Need::ComesBack,
            _ if session.activity == Activity::Working || session.inbox.in_flight > 0 => Need::Works,
            State::Running | State::Held | State::Starting | State::Stopping | State::Other(_) => Need::Runs,
            State::Idle => Need::Sleeps,
            State::Stopped => Need::Stopped,
        }
    }

    /// Whether a person should do something.
    pub(crate) fn is_for_person(self) -> bool {
        self <= Need::Unseen
    }

    /// The sign at the front of a row.
    pub(crate) fn mark(self) -> &'static str {
        match self {
            Need::Asks => "!",
            Need::Failed => "✗",
            Need::Held => "‖",
            Need::Unseen => "•",
            Need::ComesBack => "↻",
            Need::Works => "▸",
            Need::Runs | Need::Sleeps | Need::Stopped | Need::Archived => " ",
        }
    }
}

/// How many of its turns have ended, and so can have been looked at.
pub(crate) fn turns(known: &Known) -> u64 {
    let inbox = known.told.session.inbox;
    inbox.done + inbox.failed
}

/// Whether it has done something that no person has looked at: the daemon says so, or this UI noticed.
fn is_unseen(known: &Known, looked: Option<u64>) -> bool {
    known.told.seen.map_or_else(|| looked.is_some_and(|looked| turns(known) > looked), |seen| !seen)
}
