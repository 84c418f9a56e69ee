//! Takeover: the vendor's own terminal program takes the place of the headless run, under the same locks.

use super::draft::Draft;
use crate::decision::{Action, Answer, Change, Record, Refusal, TakeoverEnd};
use crate::ids::ConsumerId;
use crate::life::{BlockedOn, Goal, HandBack, Life, Purpose, StartStage};
use crate::policy::Mode;
use crate::session::Takeover;
use crate::why::{TakeoverStep, Why};

impl Draft<'_> {
    pub(super) fn takeover_asked(&mut self, consumer: ConsumerId, urgent: bool) -> Why {
        if let Some(refusal) = self.takeover_refused() {
            return self.refuse(refusal);
        }
        let same_asker = self.session.live.takeover.is_none_or(|takeover| takeover.consumer == consumer);
        match self.session.life {
            Life::Held { .. } => self.join_takeover(),
            Life::Starting { purpose: Purpose::Interactive(_), .. } => self.join_takeover(),
            Life::Running { .. } | Life::Starting { .. } | Life::Stopping { .. } if !same_asker => {
                self.join_takeover()
            }
            Life::Running { .. } => {
                self.request_takeover(consumer, urgent);
                self.turn_is_over_or_interrupted()
            }
            // Nothing runs yet: the locks being taken serve the terminal as well.
            Life::Starting { run, stage: StartStage::Reserving, .. } => {
                self.settle_number(run);
                self.take_over_now(consumer, urgent, HandBack::ByNeed)
            }
            Life::Starting { .. } => {
                self.request_takeover(consumer, urgent);
                Why::Takeover(TakeoverStep::Waits)
            }
            Life::Stopping { .. } => {
                self.request_takeover(consumer, urgent);
                self.aim(Goal::Takeover);
                Why::Takeover(TakeoverStep::Waits)
            }
            Life::Stopped => self.take_over_now(consumer, urgent, HandBack::ToStopped),
            Life::Idle { .. } | Life::Backoff { .. } | Life::Blocked { .. } | Life::Failed { .. } => {
                self.take_over_now(consumer, urgent, HandBack::ByNeed)
            }
            Life::Archived { .. } => self.refuse(Refusal::Archived),
        }
    }

    pub(super) fn takeover_refused(&self) -> Option<Refusal> {
        if self.session.live.closing {
            return Some(Refusal::GoingDown);
        }
        match self.session.life {
            Life::Archived { .. } => return Some(Refusal::Archived),
            Life::Stopping { goal: Goal::Archive, .. } => return Some(Refusal::BeingArchived),
            Life::Stopping { goal: Goal::Stop, .. } => return Some(Refusal::BeingStopped),
            Life::Blocked { on: BlockedOn::OurLock, .. } => return Some(Refusal::Busy),
            Life::Stopping { goal: Goal::Yield, .. } => return Some(Refusal::Busy),
            Life::Idle { .. }
            | Life::Starting { .. }
            | Life::Running { .. }
            | Life::Held { .. }
            | Life::Stopping { .. }
            | Life::Backoff { .. }
            | Life::Blocked { .. }
            | Life::Stopped
            | Life::Failed { .. } => {}
        }
        if !self.session.has_terminal() {
            return Some(Refusal::NoTerminal);
        }
        // A `once` run is never repeated, so there would be nothing to hand back to.
        (self.session.spec.mode == Mode::Once).then_some(Refusal::RunsOnce)
    }

    fn join_takeover(&mut self) -> Why {
        self.answer(Answer::Joined);
        Why::Takeover(TakeoverStep::Joins)
    }

    fn request_takeover(&mut self, consumer: ConsumerId, urgent: bool) {
        let patience = match urgent {
            true => self.session.spec.policy.stop_grace,
            false => self.session.spec.policy.takeover_deadline,
        };
        // If the same client asks again, the deadline starts anew, but only the first request is an event.
        if self.session.live.takeover.is_none() {
            self.record(Record::TakeoverRequested { consumer, urgent });
        }
        self.change(Change::Takeover(Some(Takeover { consumer, urgent, until: self.now.after(patience) })));
        self.answer(Answer::UnderWay);
    }

    fn take_over_now(&mut self, consumer: ConsumerId, urgent: bool, then: HandBack) -> Why {
        self.request_takeover(consumer, urgent);
        self.begin(Purpose::Interactive(then));
        Why::Takeover(TakeoverStep::Begins)
    }

    fn turn_is_over_or_interrupted(&mut self) -> Why {
        let urgent = self.session.live.takeover.is_some_and(|takeover| takeover.urgent);
        match (self.session.inbox.in_flight(), &self.session.life) {
            (Some(_), Life::Running { run, .. }) if urgent => {
                let run = *run;
                self.act(Action::Interrupt { run });
                Why::Takeover(TakeoverStep::Waits)
            }
            (Some(_), _) => Why::Takeover(TakeoverStep::Waits),
            (None, _) => {
                self.turn_is_over();
                Why::Takeover(TakeoverStep::Begins)
            }
        }
    }

    /// Gives a waiting takeover its chance between two turns.
    pub(super) fn turn_is_over(&mut self) {
        let running = matches!(self.session.life, Life::Running { .. });
        let between_turns = self.session.inbox.in_flight().is_none();
        if running && between_turns && self.session.live.takeover.is_some() {
            self.end_run(Goal::Takeover, None);
        }
    }

    /// Whether an interrupted turn was cut short for a takeover and so costs no try.
    pub(super) fn taking_over(&self) -> bool {
        self.session.live.takeover.is_some()
    }

    /// The turn under way did not end in time: an urgent takeover ends the run, any other is called off.
    pub(super) fn takeover_due(&mut self, takeover: Takeover) -> Why {
        if takeover.urgent {
            self.end_run(Goal::Takeover, None);
            return Why::Takeover(TakeoverStep::Begins);
        }
        self.end_takeover(TakeoverEnd::DeadlinePassed);
        Why::Takeover(TakeoverStep::TimedOut)
    }

    /// Ends the takeover that is under way, if there is one.
    pub(super) fn end_takeover(&mut self, how: TakeoverEnd) {
        if self.session.live.takeover.is_some() {
            self.change(Change::Takeover(None));
            self.record(Record::TakeoverDone { how });
        }
    }
}
