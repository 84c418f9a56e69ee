//! Attach: one wish, decided at once. Somebody is counted, a session is woken, or its headless run is taken over.

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

    /// The run goes on as it is: whoever comes gets a terminal beside it, as soon as it is ready for that.
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
        // Somebody who is counted already, and asks for more now.
        if why == Why::Stale && waits { Why::Noted } else { why }
    }

    /// Being counted is a need: a session that sleeps wakes by it. One that waits goes on waiting, unless that is urgent.
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
