//! Runs, from the first lock to the first instruction.

use super::draft::Draft;
use crate::budgets::Budgets;
use crate::decision::{Action, Change, Record, TakeoverEnd};
use crate::event::{Shim, StartFailure};
use crate::ids::RunNumber;
use crate::life::{
    BlockedOn, CannotStart, FailCause, Goal, HandBack, HolderSeen, Life, Process, Purpose, StartRefused,
    StartStage,
};
use crate::rules::WaitReason;
use crate::rules::start::{self, Prospect};
use crate::session::Runs;
use crate::why::{TakeoverStep, Why};

impl Draft<'_> {
    pub(super) fn reserved(&mut self, run: RunNumber) -> Why {
        match self.session.life {
            // The client that needed it has gone while the locks were taken: `follow_up` calls the start off.
            Life::Starting { run: wanted, stage: StartStage::Reserving, purpose: Purpose::Headless }
                if wanted == run && self.session.need(self.now.boot).is_none() =>
            {
                Why::NotNeeded
            }
            Life::Starting { run: wanted, stage: StartStage::Reserving, purpose } if wanted == run => {
                self.record(Record::LockAcquired { run });
                if !self.session.fits_shim() {
                    self.change(Change::Opened(self.session.spec.setup));
                }
                self.set_life(Life::Starting { run, stage: StartStage::Spawning, purpose });
                self.act(Action::Spawn { run, purpose });
                Why::LocksTaken
            }
            Life::Idle { .. }
            | Life::Backoff { .. }
            | Life::Blocked { .. }
            | Life::Stopped
            | Life::Failed { .. }
            | Life::Archived { .. } => {
                // Taken for a start that has been called off since.
                self.act(Action::Release);
                Why::Stale
            }
            Life::Starting { .. } | Life::Running { .. } | Life::Held { .. } | Life::Stopping { .. } => {
                Why::Stale
            }
        }
    }

    pub(super) fn lock_busy(&mut self, run: RunNumber, holder: Option<&HolderSeen>) -> Why {
        let Life::Starting { run: wanted, stage, purpose } = self.session.life else {
            return Why::Stale;
        };
        if wanted != run {
            return Why::Stale;
        }
        // We hold our own locks, so a program outside of pinfold has the vendor session. Give ours back.
        if stage == StartStage::Spawning {
            self.give_back();
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

    fn give_back(&mut self) {
        if self.session.shim == Shim::Standing {
            return self.release();
        }
        self.act(Action::Release);
        self.record(Record::LockReleased);
    }

    /// Waits for one of our locks: nothing is started until the kernel reports that it is free.
    pub(super) fn block_on_our_lock(&mut self, holder: Option<&HolderSeen>) {
        self.release();
        let holder = holder.cloned().map(Box::new);
        self.set_life(Life::Blocked { holder, on: BlockedOn::OurLock });
        self.act(Action::AwaitHolder);
    }

    pub(super) fn started(&mut self, run: RunNumber, process: Process) -> Why {
        if let Life::Starting { run: wanted, stage: StartStage::Spawning, purpose } = self.session.life
            && wanted == run
        {
            self.note_started(run, process, purpose);
            self.runs_now(run, process, purpose);
            return Why::Started;
        }
        // It was asked to end before it was known to run: both are true.
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
        let budgets = &self.session.budgets;
        if budgets.refused > 0 || budgets.pause.is_some() {
            let budgets = Budgets { refused: 0, pause: None, ..budgets.clone() };
            self.change(Change::Budgets(Box::new(budgets)));
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
            if self.session.shim != Shim::Absent {
                self.change(Change::Shim(Shim::Absent));
            }
            self.record_start_failed(run, failure);
            return self.ended_unstarted(run);
        }
        Why::Stale
    }

    fn start_came_to_nothing(&mut self, run: RunNumber, purpose: Purpose, failure: &StartFailure) -> Why {
        self.change(Change::Shim(Shim::Absent));
        let later = match failure {
            StartFailure::ShimGone => return self.start_again(run, purpose),
            StartFailure::Hopeless(cause) => Err(cause.clone()),
            StartFailure::Refused(refused) => match start::prospect(refused.errno) {
                Prospect::Better => Ok(refused),
                Prospect::Never => Err(CannotStart::Refused(refused.clone())),
            },
        };
        self.act(Action::Release);
        self.settle_number(run);
        self.record_start_failed(run, failure);
        self.end_takeover(TakeoverEnd::CannotStart);
        match (purpose, later) {
            (Purpose::Interactive(then), _) => {
                self.hand_back(then);
                Why::Takeover(TakeoverStep::Failed)
            }
            (Purpose::Headless, Ok(refused)) => self.start_later(refused),
            (Purpose::Headless, Err(cause)) => self.cannot_start(cause),
        }
    }

    /// Takes the locks again, because the shim had left before it heard of the start.
    fn start_again(&mut self, run: RunNumber, purpose: Purpose) -> Why {
        // Nothing runs yet, so a terminal that waits for this run can take its place right away.
        let waiting = self.session.live.takeover.is_some() && purpose == Purpose::Headless;
        let purpose = if waiting { Purpose::Interactive(HandBack::ByNeed) } else { purpose };
        // A new number, so that this report, coming twice, is not about the new start.
        self.settle_number(run);
        self.begin(purpose);
        Why::ShimGone
    }

    /// Waits and tries again after a refusal by the system; this does not count as a crash.
    fn start_later(&mut self, refused: &StartRefused) -> Why {
        if self.session.live.closing {
            self.down();
            return Why::GoingDown;
        }
        if self.session.need(self.now.boot).is_none() {
            self.not_needed();
            return Why::NotNeeded;
        }
        let mut budgets = self.session.budgets.clone();
        budgets.refused = budgets.refused.saturating_add(1);
        let wait = start::wait(budgets.refused, &self.session.spec.policy, self.now);
        self.change(Change::Budgets(Box::new(budgets)));
        let reason = WaitReason::StartFailed;
        self.record(Record::Backoff { wait, reason });
        let (until, refused) = (self.now.after(wait), refused.clone());
        let text = refused.text.clone();
        self.set_life(Life::Backoff { until, reason, refused: Some(Box::new(refused)), holder: None });
        Why::StartRefused { text, wait }
    }

    fn cannot_start(&mut self, cause: CannotStart) -> Why {
        self.fail(FailCause::CannotStart(cause.clone()));
        Why::CannotStart { cause }
    }

    /// Records a refused start. It is not a run, so it has an event of its own and no end.
    fn record_start_failed(&mut self, run: RunNumber, failure: &StartFailure) {
        let (errno, text) = match failure {
            StartFailure::ShimGone => return,
            StartFailure::Hopeless(cause) => (cause.errno(), cause.to_string()),
            StartFailure::Refused(refused) => (refused.errno, refused.text.clone()),
        };
        self.record(Record::StartFailed { run, errno, text });
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
