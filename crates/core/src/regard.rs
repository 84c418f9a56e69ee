//! Whether a person has looked at what a session did last: a turn that ended, or the run of a `once` session.

use crate::decision::Change;
use crate::event::ConsumerKind;
use crate::inbox::{MessageChange, MessageFailure};
use crate::policy::Mode;
use serde::{Deserialize, Serialize};

/// Whether there is something that no person has looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Regard {
    /// A person has looked since, or nothing has happened yet.
    #[default]
    Seen,
    /// No person has looked since.
    Unseen,
}

impl Regard {
    /// Whether a person has looked.
    #[must_use]
    pub fn is_seen(&self) -> bool {
        *self == Regard::Seen
    }

    /// What it is after a change of a session in this mode; `watched` says whether a person is connected and sees it happen.
    #[must_use]
    pub(crate) fn after(self, change: &Change, mode: Mode, watched: bool) -> Regard {
        if looks(change) {
            return Regard::Seen;
        }
        let turn = matches!(change, Change::Message(step) if ends_turn(step));
        let did = turn || (mode == Mode::Once && matches!(change, Change::LastExit(_)));
        if did && !watched { Regard::Unseen } else { self }
    }
}

/// Whether a person looks by this change.
fn looks(change: &Change) -> bool {
    matches!(change, Change::Looked | Change::Joined(_, ConsumerKind::Attach | ConsumerKind::Watch))
}

/// Whether the agent ended a turn; what a person ended is known to that person.
fn ends_turn(step: &MessageChange) -> bool {
    match step {
        MessageChange::Done { .. } => true,
        MessageChange::Failed { why, .. } => match why {
            MessageFailure::TriesUsedUp | MessageFailure::TurnFailed => true,
            MessageFailure::Interrupted | MessageFailure::Cancelled => false,
        },
        MessageChange::Queued { .. }
        | MessageChange::Delivering { .. }
        | MessageChange::Taken { .. }
        | MessageChange::Requeued { .. }
        | MessageChange::Retried { .. } => false,
    }
}
