//! What people ask for: start, stop, restart, interrupt. A stop outranks every rule.

use super::draft::Draft;
use crate::budgets::Budgets;
use crate::decision::{Action, Answer, Change, Record, Refusal, TakeoverEnd};
use crate::life::{Goal, Life, Purpose, StartStage};
use crate::why::{PersonAsked, Why};
use std::time::Duration;

impl Draft<'_> {
    pub(super) fn start_asked(&mut self) -> Why {
        if self.session.live.closing {
            return self.refuse(Refusal::GoingDown);
        }
        match self.session.life {
            Life::Archived { .. } => return self.refuse(Refusal::Archived),
            Life::Stopping { goal: Goal::Archive, .. } => return self.refuse(Refusal::BeingArchived),
            Life::Starting { .. } | Life::Running { .. } | Life::Held { .. } => {
                self.keep_for_a_while();
                self.answer(Answer::Already);
            }
            Life::Stopping { goal: Goal::Takeover, .. } => self.answer(Answer::Joined),
            Life::Stopping { .. } => self.change_goal(Goal::Restart),
            Life::Idle { .. }
            | Life::Backoff { .. }
            | Life::Blocked { .. }
            | Life::Stopped
            | Life::Failed { .. } => {
                self.start_afresh();
            }
        }
        Why::Person(PersonAsked::Started)
    }

    pub(super) fn restart_asked(&mut self) -> Why {
        if self.session.live.closing {
            return self.refuse(Refusal::GoingDown);
        }
        match self.session.life {
            Life::Archived { .. } => return self.refuse(Refusal::Archived),
            Life::Stopping { goal: Goal::Archive, .. } => return self.refuse(Refusal::BeingArchived),
            // A run that is just starting is as new as the one a restart would bring.
            Life::Starting { .. } | Life::Stopping { goal: Goal::Restart, .. } => self.answer(Answer::Joined),
            Life::Stopping { .. } => self.change_goal(Goal::Restart),
            Life::Running { .. } | Life::Held { .. } => {
                self.end_takeover(TakeoverEnd::Overruled);
                self.fresh_budgets();
                self.keep_for_a_while();
                self.end_run(Goal::Restart, None);
                self.answer(Answer::UnderWay);
            }
            Life::Idle { .. }
            | Life::Backoff { .. }
            | Life::Blocked { .. }
            | Life::Stopped
            | Life::Failed { .. } => {
                self.start_afresh();
            }
        }
        Why::Person(PersonAsked::Restarted)
    }

    fn start_afresh(&mut self) {
        self.fresh_budgets();
        if self.session.spec.run_per_message && self.session.need(self.now.boot).is_none() {
            // There is nothing to run until a message comes.
            if !matches!(self.session.life, Life::Idle { .. }) {
                self.not_needed();
            }
            return self.answer(Answer::Already);
        }
        self.keep_for_a_while();
        self.begin(Purpose::Headless);
        self.answer(Answer::UnderWay);
    }

    /// Changes what follows the run that is ending.
    fn change_goal(&mut self, wanted: Goal) {
        self.end_takeover(TakeoverEnd::Overruled);
        self.fresh_budgets();
        self.keep_for_a_while();
        self.aim(wanted);
        self.answer(Answer::UnderWay);
    }

    /// Resets streak and budgets, because a person asked.
    pub(super) fn fresh_budgets(&mut self) {
        if self.session.budgets != Budgets::default() {
            self.change(Change::Budgets(Box::default()));
        }
    }

    /// Keeps the session needed for one idle time after a person's `start`.
    pub(super) fn keep_for_a_while(&mut self) {
        let until = self.now.boot + self.session.spec.policy.idle_after;
        self.change(Change::KeepUntil(Some(until)));
    }

    pub(super) fn stop_asked(&mut self, grace: Option<Duration>) -> Why {
        self.end_takeover(TakeoverEnd::Overruled);
        if self.session.keep_until.is_some() {
            self.change(Change::KeepUntil(None));
        }
        match self.session.life {
            Life::Stopped | Life::Archived { .. } => {
                self.answer(Answer::Already);
                return Why::Person(PersonAsked::Stopped);
            }
            Life::Idle { .. } | Life::Backoff { .. } | Life::Blocked { .. } | Life::Failed { .. } => {
                self.stopped();
            }
            Life::Starting { run, stage: StartStage::Reserving, .. } => self.call_off(run, Draft::stopped),
            Life::Starting { .. } | Life::Running { .. } | Life::Held { .. } => {
                self.end_run(Goal::Stop, grace);
                self.answer(Answer::UnderWay);
                return Why::Person(PersonAsked::Stopped);
            }
            Life::Stopping { run, goal, .. } => {
                self.stop_harder(run, goal, grace);
                return Why::Person(PersonAsked::Stopped);
            }
        }
        self.answer(Answer::Done);
        Why::Person(PersonAsked::Stopped)
    }

    /// Calls off a start that has no process yet.
    pub(super) fn call_off(&mut self, run: crate::ids::RunNumber, then: fn(&mut Self)) {
        self.settle_number(run);
        self.act(Action::Release);
        then(self);
    }

    fn stop_harder(&mut self, run: crate::ids::RunNumber, goal: Goal, grace: Option<Duration>) {
        match goal {
            // Archiving and the daemon's own end leave no run either, and do more than a stop.
            Goal::Archive | Goal::Down | Goal::Stop => {}
            Goal::Restart
            | Goal::Park
            | Goal::Drain
            | Goal::Takeover
            | Goal::Watchdog
            | Goal::Yield
            | Goal::Lost => {
                self.aim(Goal::Stop);
            }
        }
        if let Some(grace) = grace {
            if self.session.live.leaving.is_some() {
                self.change(Change::Leaving(None));
            }
            self.act(Action::Stop { run, grace });
        }
        self.answer(Answer::UnderWay);
    }

    pub(super) fn stopped(&mut self) {
        self.rest(Life::Stopped);
        self.record(Record::Stopped);
    }

    pub(super) fn interrupt_asked(&mut self) -> Why {
        let Life::Running { run, .. } = self.session.life else { return self.refuse(Refusal::NoTurn) };
        if self.session.inbox.in_flight().is_none() {
            return self.refuse(Refusal::NoTurn);
        }
        self.change(Change::Interrupted(true));
        self.act(Action::Interrupt { run });
        self.answer(Answer::UnderWay);
        Why::Person(PersonAsked::Interrupted)
    }
}
