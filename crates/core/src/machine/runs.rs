//! Runs from the first lock to the first instruction.

use super::draft::Draft;
use crate::decision::{Action, Change, Record, TakeoverEnd};
use crate::event::{Shim, StartFailure};
use crate::exit::{Ended, Exit, Verdict};
use crate::ids::RunNumber;
use crate::life::{
    BlockedOn, CannotStart, FailCause, Goal, HandBack, HolderSeen, Life, Process, Purpose, Stage,
};
use crate::session::Runs;
use crate::why::{TakeoverStep, Why};
use std::time::Duration;

impl Draft<'_> {
    pub(super) fn reserved(&mut self, run: RunNumber) -> Why {
        match self.session.life {
            // Whoever needed it has gone while the locks were taken: the follow-up calls the start off.
            Life::Starting { run: wanted, stage: Stage::Reserving, purpose: Purpose::Headless }
                if wanted == run && self.session.need(self.now.boot).is_none() =>
            {
                Why::NotNeeded
            }
            Life::Starting { run: wanted, stage: Stage::Reserving, purpose } if wanted == run => {
                self.record(Record::LockAcquired { run });
                self.set_life(Life::Starting { run, stage: Stage::Spawning, purpose });
                self.act(Action::Spawn { run, purpose });
                Why::LocksTaken
            }
            Life::Idle { .. }
            | Life::Backoff { .. }
            | Life::Blocked { .. }
            | Life::Stopped
            | Life::Failed { .. }
            | Life::Archived { .. } => {
                // Taken for a start that was called off meanwhile.
                self.act(Action::Release);
                Why::Stale
            }
            Life::Starting { .. } | Life::Running { .. } | Life::Held { .. } | Life::Stopping { .. } => {
                Why::Stale
            }
        }
    }

    pub(super) fn lock_busy(&mut self, run: RunNumber, holder: Option<&HolderSeen>) -> Why {
        let Life::Starting { run: wanted, stage: Stage::Reserving, purpose } = self.session.life else {
            return Why::Stale;
        };
        if wanted != run {
            return Why::Stale;
        }
        self.settle_number(run);
        self.record(Record::LockBusy { run });
        self.end_takeover(TakeoverEnd::Busy);
        match purpose {
            Purpose::Interactive(HandBack::ToStopped) => self.rest(Life::Stopped),
            Purpose::Headless | Purpose::Interactive(HandBack::ByNeed) => self.block_on_our_lock(holder),
        }
        Why::LockBusy
    }

    /// Nothing is started; the kernel wakes us when the lock is free.
    pub(super) fn block_on_our_lock(&mut self, holder: Option<&HolderSeen>) {
        self.release();
        let holder = holder.cloned().map(Box::new);
        self.set_life(Life::Blocked { holder, on: BlockedOn::OurLock });
        self.act(Action::AwaitHolder);
    }

    pub(super) fn started(&mut self, run: RunNumber, process: Process) -> Why {
        if let Life::Starting { run: wanted, stage: Stage::Spawning, purpose } = self.session.life
            && wanted == run
        {
            self.note_started(run, process, purpose);
            self.runs_now(run, process, purpose);
            return Why::Started;
        }
        // It was asked to end before it was seen to run: both are true.
        if let Life::Stopping { run: wanted, purpose, .. } = self.session.life
            && wanted == run
            && self.session.runs.seen < run
        {
            self.note_started(run, process, purpose);
            return Why::Started;
        }
        Why::Stale
    }

    fn note_started(&mut self, run: RunNumber, process: Process, purpose: Purpose) {
        let Process { pid, fence } = process;
        let count = self.session.runs.count + 1;
        self.change(Change::Runs(Runs { seen: run, count, ..self.session.runs }));
        self.record(Record::RunStarted { run, pid, fence, purpose });
        if self.session.shim == Shim::Standing {
            self.change(Change::Shim(Shim::Absent));
        }
    }

    fn runs_now(&mut self, run: RunNumber, process: Process, purpose: Purpose) {
        let since = self.now.moment();
        match purpose {
            Purpose::Headless => {
                self.set_life(Life::Running { run, since, process });
                if self.session.keep_until.is_some() {
                    let until = self.now.boot + self.session.spec.policy.idle_after;
                    self.change(Change::KeepUntil(Some(until)));
                }
                self.turn_is_over();
            }
            Purpose::Interactive(then) => {
                self.set_life(Life::Held { run, since, process, then });
                self.end_takeover(TakeoverEnd::Held);
            }
        }
    }

    pub(super) fn start_failed(&mut self, run: RunNumber, failure: &StartFailure) -> Why {
        if let Life::Starting { run: wanted, purpose, .. } = self.session.life
            && wanted == run
        {
            return self.start_came_to_nothing(run, purpose, failure);
        }
        if matches!(self.session.life, Life::Stopping { run: wanted, .. } if wanted == run) {
            let ended = Ended::new(Exit::NeverStarted, Duration::ZERO);
            return self.exited(run, &ended, Shim::Absent, None);
        }
        Why::Stale
    }

    fn start_came_to_nothing(&mut self, run: RunNumber, purpose: Purpose, failure: &StartFailure) -> Why {
        self.change(Change::Shim(Shim::Absent));
        match (failure, purpose) {
            (StartFailure::ShimGone, _) => {
                // Nothing runs yet: a terminal that waits for this run may as well have its place.
                let waiting = self.session.live.takeover.is_some() && purpose == Purpose::Headless;
                let purpose = if waiting { Purpose::Interactive(HandBack::ByNeed) } else { purpose };
                // A new number, so that this report, coming twice, is not about the new start.
                self.settle_number(run);
                self.begin(purpose);
                Why::ShimGone
            }
            (StartFailure::Hopeless(_) | StartFailure::Refused, Purpose::Interactive(then)) => {
                self.act(Action::Release);
                self.settle_unstarted(run, Verdict::Hopeless);
                self.end_takeover(TakeoverEnd::CannotStart);
                self.hand_back(then);
                Why::Takeover(TakeoverStep::Failed)
            }
            (StartFailure::Hopeless(cause), Purpose::Headless) => {
                self.act(Action::Release);
                self.settle_unstarted(run, Verdict::Hopeless);
                self.end_takeover(TakeoverEnd::CannotStart);
                self.cannot_start(cause)
            }
            (StartFailure::Refused, Purpose::Headless) => {
                self.act(Action::Release);
                let ended = Ended::new(Exit::NeverStarted, Duration::ZERO);
                self.exited(run, &ended, Shim::Absent, None)
            }
        }
    }

    fn cannot_start(&mut self, cause: &CannotStart) -> Why {
        self.fail(FailCause::CannotStart(cause.clone()));
        Why::CannotStart { cause: cause.clone() }
    }

    /// Every start has exactly one end, also one without a process.
    fn settle_unstarted(&mut self, run: RunNumber, verdict: Verdict) {
        self.settle_number(run);
        let ended = Ended::new(Exit::NeverStarted, Duration::ZERO);
        self.record_exit(run, &ended, verdict);
    }

    pub(super) fn settle_number(&mut self, run: RunNumber) {
        self.settle(Runs { settled: run, ..self.session.runs });
    }

    pub(super) fn vendor_busy(&mut self, run: RunNumber) -> Why {
        if !matches!(self.session.life, Life::Running { run: live, .. } if live == run) {
            return Why::Stale;
        }
        self.end_takeover(TakeoverEnd::Busy);
        self.end_run(Goal::Yield, None);
        Why::VendorSessionBusy
    }

    pub(super) fn shim_left(&mut self) -> Why {
        if self.session.shim == Shim::Absent {
            return Why::Stale;
        }
        self.change(Change::Shim(Shim::Absent));
        self.record(Record::LockReleased);
        Why::Noted
    }
}
