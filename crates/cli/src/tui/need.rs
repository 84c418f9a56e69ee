//! How much each session needs a person: it sets the order of the list and what calls for attention.

use super::sessions::KnownSession;
use pinfold_api::word::{Activity, State};

/// What a session needs; those that need a person most come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PersonNeed {
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

impl PersonNeed {
    /// The need of a session; `looked` is how many of its turns a person has looked at, as far as this UI knows.
    pub(crate) fn of(known: &KnownSession, looked: Option<u64>) -> PersonNeed {
        let session = &known.told.session;
        let asks = session.request.is_some() || session.activity == Activity::Waiting;
        match session.state {
            State::Archived => PersonNeed::Archived,
            _ if asks => PersonNeed::Asks,
            State::Failed | State::Damaged | State::Unknown => PersonNeed::Failed,
            State::Blocked => PersonNeed::Held,
            _ if session.activity == Activity::Limited => PersonNeed::Held,
            _ if is_unseen(known, looked) => PersonNeed::Unseen,
            State::Backoff => PersonNeed::ComesBack,
            _ if session.activity == Activity::Working || session.inbox.in_flight > 0 => PersonNeed::Works,
            State::Running | State::Held | State::Starting | State::Stopping | State::Other(_) => {
                PersonNeed::Runs
            }
            State::Idle => PersonNeed::Sleeps,
            State::Stopped => PersonNeed::Stopped,
        }
    }

    /// Whether a person should do something.
    pub(crate) fn is_for_person(self) -> bool {
        self <= PersonNeed::Unseen
    }

    /// The sign at the front of a row.
    pub(crate) fn mark(self) -> &'static str {
        match self {
            PersonNeed::Asks => "!",
            PersonNeed::Failed => "✗",
            PersonNeed::Held => "‖",
            PersonNeed::Unseen => "•",
            PersonNeed::ComesBack => "↻",
            PersonNeed::Works => "▸",
            PersonNeed::Runs | PersonNeed::Sleeps | PersonNeed::Stopped | PersonNeed::Archived => " ",
        }
    }
}

/// How many of its turns have ended, and so can have been looked at.
pub(crate) fn turns(known: &KnownSession) -> u64 {
    let inbox = known.told.session.inbox;
    inbox.done + inbox.failed
}

/// Whether it has done something that no person has looked at: the daemon says so, or this UI noticed.
fn is_unseen(known: &KnownSession, looked: Option<u64>) -> bool {
    known.told.seen.map_or_else(|| looked.is_some_and(|looked| turns(known) > looked), |seen| !seen)
}
