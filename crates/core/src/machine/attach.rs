//! Attach: one request, decided at once. The client is counted, and the session is woken or its headless run taken over.

use super::draft::Draft;
use crate::decision::{Answer, Refusal};
use crate::event::{ConsumerKind, Joins};
use crate::ids::ConsumerId;
use crate::life::Life;
use crate::why::Why;

impl Draft<'_> {
    pub(super) fn attach_asked(&mut self, consumer: ConsumerId, joins: Joins, urgent: bool) -> Why {
        let held = matches!(self.session.life, Life::Held { .. });
        match joins {
            Joins::Takeover if !held => self.attach_by_takeover(consumer, urgent),
            Joins::Guest if !held => self.attach_to_guest(consumer, urgent),
            Joins::Takeover | Joins::Terminal | Joins::Guest | Joins::Output => {
                self.attach_to_run(consumer, urgent)
            }
        }
    }

    fn attach_by_takeover(&mut self, consumer: ConsumerId, urgent: bool) -> Why {
        if self.session.live.mute {
            return self.refuse(Refusal::ShimMute);
        }
        if let Some(refusal) = self.takeover_refused() {
            return self.refuse(refusal);
        }
        let why = self.takeover_asked(consumer, urgent);
        self.consumer_joined(consumer, ConsumerKind::Attach);
        why
    }

    /// Leaves the run as it is: the client gets a terminal beside it as soon as the run is ready for one.
    fn attach_to_guest(&mut self, consumer: ConsumerId, urgent: bool) -> Why {
        if self.session.live.closing {
            return self.refuse(Refusal::GoingDown);
        }
        let before = self.session.live.awaiting_guest.len();
        if self.session.unattachable().is_none() {
            self.guest_wanted(consumer);
        }
        let waits = self.session.live.awaiting_guest.len() > before;
        let why = self.attach_to_run(consumer, urgent);
        // The client was counted already and now asks for a guest as well.
        if why == Why::Stale && waits { Why::Noted } else { why }
    }

    /// Counts the client, which is a need and wakes a parked session. A session in backoff goes on waiting
    /// unless the attach is urgent.
    fn attach_to_run(&mut self, consumer: ConsumerId, urgent: bool) -> Why {
        if let Some(refusal) = self.session.unattachable() {
            return self.refuse(refusal);
        }
        self.answer(Answer::Joined);
        let why = self.consumer_joined(consumer, ConsumerKind::Attach);
        let decides = !self.session.live.mute && !self.session.live.closing;
        match self.session.life {
            Life::Backoff { .. } if urgent && decides => self.start_asked(),
            Life::Backoff { .. }
            | Life::Idle { .. }
            | Life::Starting { .. }
            | Life::Running { .. }
            | Life::Held { .. }
            | Life::Stopping { .. }
            | Life::Blocked { .. }
            | Life::Stopped
            | Life::Failed { .. }
            | Life::Archived { .. } => why,
        }
    }
}
