//! Archive, restore, purge, and the daemon's own end.

use super::draft::Draft;
use crate::decision::{Answer, Change, Record, Refusal, TakeoverEnd};
use crate::life::{FailCause, Goal, IdleSince, Life, StartStage};
use crate::policy::Mode;
use crate::session::Session;
use crate::why::{PersonAsked, Why};

impl Draft<'_> {
    pub(super) fn archive_asked(&mut self) -> Why {
        if matches!(self.session.life, Life::Archived { .. }) {
            self.answer(Answer::Already);
        } else {
            self.archive();
        }
        Why::Person(PersonAsked::Archived)
    }

    /// Stops the process tree first, then archives; inbox, history and ids stay.
    fn archive(&mut self) {
        self.end_takeover(TakeoverEnd::Overruled);
        self.answer(Answer::UnderWay);
        match self.session.life {
            Life::Starting { run, stage: StartStage::Reserving, .. } => self.call_off(run, Draft::archived),
            Life::Starting { .. } | Life::Running { .. } | Life::Held { .. } => {
                self.end_run(Goal::Archive, None);
            }
            Life::Stopping { .. } => self.aim(Goal::Archive),
            Life::Idle { .. }
            | Life::Backoff { .. }
            | Life::Blocked { .. }
            | Life::Stopped
            | Life::Failed { .. }
            | Life::Archived { .. } => {
                self.archived();
                self.answer(Answer::Done);
            }
        }
    }

    pub(super) fn archived(&mut self) {
        if self.session.keep_until.is_some() {
            self.change(Change::KeepUntil(None));
        }
        self.rest(Life::Archived { at: self.now.wall });
        self.record(Record::Archived);
    }

    pub(super) fn restore_asked(&mut self) -> Why {
        if matches!(self.session.life, Life::Stopping { goal: Goal::Archive, .. }) {
            return self.refuse(Refusal::BeingArchived);
        }
        if !self.session.life.is_retired() {
            return self.refuse(Refusal::NotArchived);
        }
        self.fresh_budgets();
        self.set_life(Life::Idle { since: IdleSince::Restored });
        self.record(Record::Restored);
        self.answer(Answer::Done);
        Why::Person(PersonAsked::Restored)
    }

    pub(super) fn purge_asked(&mut self, include_active: bool, own: bool) -> Why {
        if let Some(refusal) = self.session.spared_by_purge(include_active, own) {
            self.answer(Answer::Refused(refusal));
            return Why::Person(PersonAsked::PurgedOthers);
        }
        if matches!(self.session.life, Life::Archived { .. }) {
            self.answer(Answer::Already);
        } else if self.session.life.is_retired() {
            self.answer(Answer::Joined);
        } else {
            self.record(Record::Purged);
            self.archive();
        }
        Why::Person(PersonAsked::Purged)
    }

    /// Prepares for the daemon's end: nothing starts any more, runs end, waits are given up.
    pub(super) fn going_down(&mut self) -> Why {
        self.change(Change::Closing(true));
        self.end_takeover(TakeoverEnd::Overruled);
        match self.session.life {
            Life::Starting { run, stage: StartStage::Reserving, .. } => self.call_off(run, Draft::down),
            Life::Starting { .. } | Life::Running { .. } | Life::Held { .. } => {
                self.end_run(Goal::Down, None);
            }
            Life::Stopping { goal: Goal::Stop | Goal::Archive | Goal::Down, .. } => {}
            Life::Stopping { .. } => self.aim(Goal::Down),
            Life::Backoff { .. } | Life::Blocked { .. } => self.rest_while_down(),
            Life::Idle { .. } | Life::Stopped | Life::Failed { .. } | Life::Archived { .. } => {}
        }
        Why::GoingDown
    }

    /// Rests a session while the daemon is away. A `once` run that was cut short has failed.
    pub(super) fn down(&mut self) {
        if self.session.spec.mode == Mode::Once && self.session.runs.count > 0 {
            self.fail(FailCause::Interrupted);
        } else {
            self.rest_while_down();
        }
    }

    fn rest_while_down(&mut self) {
        // A person's `start` does not count twice: a client that wants a run asks the next daemon.
        if self.session.keep_until.is_some() {
            self.change(Change::KeepUntil(None));
        }
        self.rest(Life::Idle { since: IdleSince::DaemonDown });
    }
}

impl Session {
    /// Returns why purge would leave this session alone, if it would.
    #[must_use]
    pub fn spared_by_purge(&self, include_active: bool, own: bool) -> Option<Refusal> {
        if self.life.is_retired() || include_active {
            return None;
        }
        if own {
            return Some(Refusal::Own);
        }
        if !self.live.consumers.is_empty() {
            return Some(Refusal::Connected);
        }
        if self.inbox.in_flight().is_some() {
            return Some(Refusal::TurnUnderWay);
        }
        (self.inbox.queued() > 0).then_some(Refusal::MessageQueued)
    }
}
