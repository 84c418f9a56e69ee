//! How far an attach has come, as far as the session alone decides it.

use crate::decision::Refusal;
use crate::event::Joins;
use crate::guest::GuestStage;
use crate::ids::RunNumber;
use crate::life::Life;
use crate::session::Session;

/// How far an attach has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// This run has the terminal.
    Terminal(RunNumber),
    /// Something else has to happen first.
    NotYet,
    /// The session will not get there by itself.
    Never(Refusal),
    /// The takeover it waited for is over, and there is no terminal.
    NoTakeover,
    /// The guest it waited for has ended or could not be started.
    NoGuest,
}

impl Session {
    /// Returns whether its agent has a terminal program that can take it over now.
    #[must_use]
    pub fn has_terminal(&self) -> bool {
        self.spec.interactive || self.spec.interactive_when_named && self.talk.vendor().is_some()
    }

    /// Returns how far an attach has come.
    #[must_use]
    pub fn reached(&self, joins: Joins) -> Reached {
        match (&self.life, joins) {
            (Life::Held { run, .. }, _) | (Life::Running { run, .. }, Joins::Terminal) => {
                return Reached::Terminal(*run);
            }
            (Life::Running { run, .. }, Joins::Guest) if self.has_guest() => return Reached::Terminal(*run),
            _ => {}
        }
        if let Some(refusal) = self.unattachable() {
            return Reached::Never(refusal);
        }
        // A run that ends for another reason is not handed over; the waiting client sees the state that follows.
        let moving = matches!(self.life, Life::Starting { .. } | Life::Stopping { .. });
        match joins {
            Joins::Takeover if !moving && self.live.takeover.is_none() => Reached::NoTakeover,
            Joins::Guest if self.guest_here().is_none() && !self.awaits_guest() => Reached::NoGuest,
            Joins::Takeover | Joins::Terminal | Joins::Guest | Joins::Output => Reached::NotYet,
        }
    }

    /// Whether the terminal program beside the run is known to be running.
    #[must_use]
    pub fn has_guest(&self) -> bool {
        self.guest_here().is_some_and(|guest| guest.stage != GuestStage::Asked)
    }

    /// Returns why an attach is refused, in the states that a session does not leave by itself.
    pub(crate) fn unattachable(&self) -> Option<Refusal> {
        match self.life {
            Life::Stopped => Some(Refusal::Stopped),
            Life::Failed { .. } => Some(Refusal::Failed),
            Life::Archived { .. } => Some(Refusal::Archived),
            Life::Blocked { .. } => Some(Refusal::Busy),
            Life::Idle { .. }
            | Life::Starting { .. }
            | Life::Running { .. }
            | Life::Held { .. }
            | Life::Stopping { .. }
            | Life::Backoff { .. } => None,
        }
    }
}
