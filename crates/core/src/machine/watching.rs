//! What is watched while a run lives: deadlines, memory, the watchdog.

use super::draft::Draft;
use crate::decision::{Action, Change, Record};
use crate::ids::RunNumber;
use crate::life::{BlockedOn, Goal, Life, Purpose};
use crate::rules::Warning;
use crate::rules::memory::{self, MemoryCall, Reading, ReadingSource};
use crate::time::Boot;
use crate::why::{MemorySeen, Why};

impl Draft<'_> {
    /// Handles a deadline that may have passed; the state alone tells which one.
    pub(super) fn ticked(&mut self) -> Why {
        let now = self.now.boot;
        if let Some(leaving) = self.session.live.leaving.filter(|leaving| leaving.until <= now) {
            return self.part_further(leaving);
        }
        match self.session.life {
            _ if self.session.live.closing => Why::GoingDown,
            Life::Backoff { until, .. } if until.boot <= now => self.try_again(Why::WaitOver),
            Life::Blocked { on: BlockedOn::VendorLock { retry }, .. } if retry.boot <= now => {
                self.try_again(Why::WaitOver)
            }
            Life::Running { since, .. } => self.tick_running(since.boot),
            Life::Idle { .. }
            | Life::Starting { .. }
            | Life::Held { .. }
            | Life::Stopping { .. }
            | Life::Backoff { .. }
            | Life::Blocked { .. }
            | Life::Stopped
            | Life::Failed { .. }
            | Life::Archived { .. } => Why::NothingDue,
        }
    }

    fn try_again(&mut self, why: Why) -> Why {
        // If the session is no longer needed, its wait ends at rest, not in a run.
        if self.session.need(self.now.boot).is_none() {
            return Why::NotNeeded;
        }
        // If it has to wait again, that is another wait.
        if matches!(self.session.life, Life::Blocked { .. }) {
            self.note_hurry(self.session.budgets.hurried, false);
        }
        self.begin(Purpose::Headless);
        why
    }

    fn tick_running(&mut self, since: Boot) -> Why {
        let now = self.now.boot;
        let takeover = self.session.live.takeover.filter(|takeover| takeover.until.boot <= now);
        if let Some(takeover) = takeover {
            return self.takeover_due(takeover);
        }
        if self.session.watchdog_due(since).is_some_and(|due| due.at <= now) {
            self.end_run(Goal::Watchdog, None);
            return Why::WatchdogSilent;
        }
        if self.session.park_due().is_some_and(|due| due.at <= now) {
            self.end_run(Goal::Park, None);
            return Why::Parking;
        }
        Why::NothingDue
    }

    pub(super) fn sign_of_life(&mut self, run: RunNumber) -> Why {
        if !self.watched(run) {
            return Why::Stale;
        }
        self.change(Change::SignOfLife(Some(self.now.boot)));
        Why::Noted
    }

    pub(super) fn memory_read(&mut self, run: RunNumber, reading: Reading, source: ReadingSource) -> Why {
        let Some(limit) = self.session.spec.memory_limit.filter(|_| self.watched(run)) else {
            return Why::Stale;
        };
        let part = self.session.spec.policy.memory_warn;
        let (watch, call) = memory::judge(self.session.live.memory, reading, source, limit, part);
        if watch != self.session.live.memory {
            self.change(Change::Memory(watch));
        }
        let bytes = watch.bytes.unwrap_or(0);
        match call {
            MemoryCall::Nothing => Why::Noted,
            MemoryCall::Warn => {
                self.record(Record::MemoryWarn { bytes, limit });
                Why::Memory(MemorySeen::High)
            }
            MemoryCall::WarnUnreadable => {
                self.record(Record::HealthWarn { reason: Warning::MemoryUnreadable });
                Why::Memory(MemorySeen::Unreadable)
            }
            MemoryCall::Confirm => {
                self.act(Action::ConfirmMemory { run });
                Why::Memory(MemorySeen::ToConfirm)
            }
            MemoryCall::Drain => {
                self.record(Record::Drained { bytes, limit });
                self.end_run(Goal::Drain, None);
                Why::OverMemoryLimit { bytes, limit }
            }
        }
    }

    /// Whether this is the run at work; one that is ending is left alone.
    fn watched(&self, run: RunNumber) -> bool {
        matches!(self.session.life, Life::Running { run: live, .. } | Life::Held { run: live, .. } if live == run)
    }
}
