//! The end of a run: the verdict, the record, the counters, the message in flight, and what comes next.

use super::draft::Draft;
use crate::budgets::{Pause, PauseAfter};
use crate::decision::{Action, Change, Record, RunExited, TakeoverEnd};
use crate::event::{Shim, StartFailure};
use crate::exit::{Ended, Exit, Recognised, Verdict};
use crate::ids::RunNumber;
use crate::inbox::Cost;
use crate::last_exit::LastExit;
use crate::life::{BlockedOn, FailCause, Goal, HandBack, HolderSeen, IdleSince, Life, Purpose, StartRefused};
use crate::policy::Mode;
use crate::rules::verdict::{self, Asked};
use crate::rules::{self, BLOCKED_RETRY, LONGEST_GAP, RestartDecision, WaitReason};
use crate::session::Runs;
use crate::why::{TakeoverStep, Why};
use std::time::Duration;

/// What was known about a run when it ended.
#[derive(Clone, Copy)]
struct Ending {
    purpose: Purpose,
    asked: Asked,
    /// What comes next, if the run was asked to end.
    goal: Option<Goal>,
    /// Whether a turn was under way.
    in_turn: bool,
}

impl Draft<'_> {
    pub(super) fn exited(
        &mut self,
        run: RunNumber,
        ended: &Ended,
        shim: Shim,
        holder: Option<&HolderSeen>,
    ) -> Why {
        let Some(ending) = self.ending_of(run, ended) else { return Why::Stale };
        if ended.exit == Exit::NeverStarted && self.session.runs.seen < run {
            return self.start_failed(run, &StartFailure::Refused(unknown_refusal()));
        }
        let verdict = verdict::judge(ending.asked, ended);
        self.keep_or_lose_locks(shim, ended.exit);
        self.turn_cut_short(cost(ending.asked, verdict), ended.read);
        let next = self.charge(ending, verdict, ended);
        self.settle_run(run, ended.exit);
        self.record_exit(run, ended, verdict);
        self.note_last_exit(ending.asked, ended, verdict);
        self.guest_ends_with_run(ended.exit);
        self.forget_run();
        self.what_comes_next(ending, verdict, next, ended, holder)
    }

    /// Returns what is known about the run that ended; for any other run than the live one the event is stale.
    fn ending_of(&self, run: RunNumber, ended: &Ended) -> Option<Ending> {
        self.session.live_run().filter(|live| *live == run)?;
        // A run that dies of our interrupt was asked to end; so was one that a person ended through its lock.
        let interrupted =
            self.session.interrupted || self.session.live.takeover.is_some_and(|takeover| takeover.urgent);
        let own = if interrupted || is_unlocked(ended) { Asked::ToEnd } else { Asked::Nothing };
        let (asked, goal) = match self.session.life {
            Life::Stopping { asked, goal, .. } => (asked, Some(goal)),
            Life::Starting { .. } | Life::Running { .. } | Life::Held { .. } => (own, None),
            Life::Idle { .. }
            | Life::Backoff { .. }
            | Life::Blocked { .. }
            | Life::Stopped
            | Life::Failed { .. }
            | Life::Archived { .. } => return None,
        };
        let in_turn = self.session.inbox.in_flight().is_some();
        Some(Ending { purpose: self.session.purpose(), asked, goal, in_turn })
    }

    fn keep_or_lose_locks(&mut self, shim: Shim, exit: Exit) {
        if self.session.shim != shim {
            self.change(Change::Shim(shim));
        }
        if shim == Shim::Absent && exit != Exit::NeverStarted {
            self.record(Record::LockReleased);
        }
    }

    /// Updates the counters for an end that was the run's own; an end that we asked for costs nothing.
    fn charge(&mut self, ending: Ending, verdict: Verdict, ended: &Ended) -> RestartDecision {
        if ended.lived > self.session.spec.policy.stable_after {
            self.let_messages_hurry();
        }
        let own_end = match ending.goal {
            None => ending.asked == Asked::Nothing,
            Some(Goal::Drain | Goal::Watchdog | Goal::Yield) => true,
            Some(
                Goal::Lost
                | Goal::Stop
                | Goal::Restart
                | Goal::Park
                | Goal::Takeover
                | Goal::Archive
                | Goal::Down,
            ) => false,
        };
        // Interactive runs are not restarted, and a restart of the machine is not the agent's fault.
        if !own_end || ending.purpose != Purpose::Headless || ended.exit.is_another_life() {
            return RestartDecision::AtOnce;
        }
        if self.ended_its_turn(ending, verdict, ended.exit) {
            return RestartDecision::AtOnce;
        }
        let policy = &self.session.spec.policy;
        let mut outcome = rules::after(verdict, ended, &self.session.budgets, policy, self.now);
        outcome.budgets.pause = self.pause(outcome.next);
        if outcome.budgets != self.session.budgets {
            self.change(Change::Budgets(Box::new(outcome.budgets)));
        }
        if let Some(reason) = outcome.warn {
            self.record(Record::HealthWarn { reason });
        }
        outcome.next
    }

    /// Returns the wait that messages keep to even if nothing needs the session when its run ends.
    fn pause(&self, next: RestartDecision) -> Option<Pause> {
        let (wait, after) = match next {
            RestartDecision::Wait { wait, reason: WaitReason::Crash } => (wait, PauseAfter::Crash),
            RestartDecision::Wait { wait, reason: WaitReason::OutOfMemory } => {
                (wait, PauseAfter::OutOfMemory)
            }
            RestartDecision::Wait { wait, reason: WaitReason::Contended } => (wait, PauseAfter::Contended),
            RestartDecision::Block { retry } => (retry, PauseAfter::Blocked),
            RestartDecision::Wait { .. } | RestartDecision::AtOnce | RestartDecision::Fail(_) => return None,
        };
        Some(Pause { until: self.now.after(wait), after })
    }

    /// Whether a run was for one message and that turn was over, well or badly. Then the run has ended as it should.
    fn ended_its_turn(&self, ending: Ending, verdict: Verdict, exit: Exit) -> bool {
        let over = self.session.spec.run_per_message && !ending.in_turn;
        match verdict {
            Verdict::Clean => over,
            Verdict::Crash => over && matches!(exit, Exit::Code(_)),
            Verdict::Drained
            | Verdict::Contended
            | Verdict::Hopeless
            | Verdict::Limited
            | Verdict::OutOfMemory => false,
        }
    }

    fn settle_run(&mut self, run: RunNumber, exit: Exit) {
        let Runs { seen, count, .. } = self.session.runs;
        // A daemon that died between start and exit learns about both from the exit record.
        let unseen = seen < run && exit != Exit::NeverStarted;
        let (seen, count) = if unseen { (run, count + 1) } else { (seen, count) };
        self.settle(Runs { settled: run, seen, count, ..self.session.runs });
    }

    fn note_last_exit(&mut self, asked: Asked, ended: &Ended, verdict: Verdict) {
        let at = ended.at.unwrap_or(self.now.wall);
        // In whole milliseconds, as it is stored.
        let lived = Duration::from_millis(crate::time::whole_millis(ended.lived));
        let (exit, last_line, recognised) = (ended.exit, ended.last_line.clone(), ended.recognised);
        let last = LastExit { exit, verdict, asked, at, lived, last_line, recognised };
        self.change(Change::LastExit(Box::new(last)));
    }

    /// Ends a run that was asked to end before it began and then did not begin: what was planned comes next.
    pub(super) fn ended_unstarted(&mut self, run: RunNumber) -> Why {
        let ended = Ended::new(Exit::NeverStarted, Duration::ZERO);
        let Some(ending) = self.ending_of(run, &ended) else { return Why::Stale };
        self.settle_number(run);
        self.forget_run();
        self.what_comes_next(ending, Verdict::Clean, RestartDecision::AtOnce, &ended, None)
    }

    fn record_exit(&mut self, run: RunNumber, ended: &Ended, verdict: Verdict) {
        self.record(Record::RunExited(Box::new(RunExited {
            run,
            exit: ended.exit,
            verdict,
            lived: ended.lived,
            crashes: self.session.budgets.crashes,
            forced: ended.forced,
        })));
    }

    fn what_comes_next(
        &mut self,
        ending: Ending,
        verdict: Verdict,
        next: RestartDecision,
        ended: &Ended,
        holder: Option<&HolderSeen>,
    ) -> Why {
        let exit = ended.exit;
        match ending.goal {
            Some(Goal::Stop) => self.stopped(),
            Some(Goal::Archive) => self.archived(),
            Some(Goal::Down) => self.down(),
            Some(Goal::Park) => {
                self.record(Record::Parked);
                self.rest(Life::Idle { since: IdleSince::Parked });
            }
            // A request from before the machine restarted no longer counts.
            Some(Goal::Restart) if exit.is_another_life() => self.hand_back(HandBack::ByNeed),
            Some(Goal::Restart) => {
                // The old run may have taken longer to end than the idle time that the request was good for.
                self.keep_for_a_while();
                self.begin(Purpose::Headless);
            }
            Some(Goal::Takeover) => self.take_over_or_back(ending.purpose),
            Some(Goal::Yield) => self.yielded(next, exit, holder),
            Some(Goal::Lost) => return self.failed(verdict, exit),
            Some(Goal::Drain | Goal::Watchdog) | None => {
                let why = match ending.purpose {
                    Purpose::Interactive(then) => self.handed_back(then),
                    Purpose::Headless => self.by_mode(verdict, next, exit, holder),
                };
                return if is_unlocked(ended) { Why::Unlocked { exit } } else { why };
            }
        }
        Why::EndedAsAsked { exit }
    }

    /// Another process holds the conversation. If it holds one of our locks, the kernel tells when it is
    /// free; if only the vendor said so, it is tried again later.
    fn yielded(&mut self, next: RestartDecision, exit: Exit, holder: Option<&HolderSeen>) {
        match (holder, next) {
            (Some(_), _) => self.block_on_our_lock(holder),
            (None, RestartDecision::Wait { wait, reason }) => _ = self.wait(wait, reason, exit, None),
            (None, RestartDecision::Block { retry }) => _ = self.block_on_vendor(retry, exit, None),
            (None, RestartDecision::AtOnce | RestartDecision::Fail(_)) => {
                _ = self.block_on_vendor(BLOCKED_RETRY, exit, None);
            }
        }
    }

    fn take_over_or_back(&mut self, purpose: Purpose) {
        match (self.session.live.takeover, purpose) {
            (Some(_), Purpose::Headless) => self.begin(Purpose::Interactive(HandBack::ByNeed)),
            (_, Purpose::Interactive(then)) => self.hand_back(then),
            (None, Purpose::Headless) => self.hand_back(HandBack::ByNeed),
        }
    }

    fn handed_back(&mut self, then: HandBack) -> Why {
        self.end_takeover(TakeoverEnd::CannotStart);
        self.hand_back(then);
        Why::Takeover(TakeoverStep::Ended)
    }

    /// Leaves an interactive run that has ended or that was never started.
    pub(super) fn hand_back(&mut self, then: HandBack) {
        let needed = self.session.need(self.now.boot).is_some() && !self.session.live.closing;
        match then {
            HandBack::ToStopped => self.stopped(),
            HandBack::ByNeed if needed => self.begin(Purpose::Headless),
            HandBack::ByNeed => self.not_needed(),
        }
    }

    fn by_mode(
        &mut self,
        verdict: Verdict,
        next: RestartDecision,
        exit: Exit,
        holder: Option<&HolderSeen>,
    ) -> Why {
        if self.session.spec.mode == Mode::Once {
            return self.ran_once(verdict);
        }
        if self.session.live.takeover.is_some() {
            self.begin(Purpose::Interactive(HandBack::ByNeed));
            return Why::Takeover(TakeoverStep::Begins);
        }
        if let RestartDecision::Fail(_) = next {
            return self.failed(verdict, exit);
        }
        if self.session.live.closing {
            self.down();
            return Why::GoingDown;
        }
        if self.session.need(self.now.boot).is_none() {
            self.not_needed();
            return Why::EndedUnneeded { verdict, exit };
        }
        match next {
            RestartDecision::AtOnce => {
                self.begin(Purpose::Headless);
                Why::RestartAtOnce { verdict, exit }
            }
            RestartDecision::Wait { wait, reason } => self.wait(wait, reason, exit, holder),
            RestartDecision::Block { retry } => self.block_on_vendor(retry, exit, holder),
            RestartDecision::Fail(_) => self.failed(verdict, exit),
        }
    }

    fn ran_once(&mut self, verdict: Verdict) -> Why {
        match verdict {
            Verdict::Clean => self.stopped(),
            Verdict::Drained
            | Verdict::Contended
            | Verdict::Hopeless
            | Verdict::Limited
            | Verdict::OutOfMemory
            | Verdict::Crash => {
                let lost = self.session.talk.lost_in(self.session.runs.last);
                self.fail(if lost { FailCause::ConversationLost } else { FailCause::Ended(verdict) });
            }
        }
        Why::RanOnce { verdict }
    }

    fn failed(&mut self, verdict: Verdict, exit: Exit) -> Why {
        // The run that ended is settled by now; none was decided since.
        if self.session.talk.lost_in(self.session.runs.last) {
            self.fail(FailCause::ConversationLost);
            return Why::ConversationLost;
        }
        let crashes = self.session.budgets.crashes;
        self.fail(match verdict {
            Verdict::Crash | Verdict::OutOfMemory => FailCause::CrashHardLimit { crashes },
            Verdict::Clean | Verdict::Drained | Verdict::Contended | Verdict::Hopeless | Verdict::Limited => {
                FailCause::Ended(verdict)
            }
        });
        Why::Failed { verdict, exit }
    }

    pub(super) fn fail(&mut self, cause: FailCause) {
        self.rest(Life::Failed { cause });
        self.record(Record::Failed);
    }

    fn wait(&mut self, wait: Duration, reason: WaitReason, exit: Exit, holder: Option<&HolderSeen>) -> Why {
        self.record(Record::Backoff { wait, reason });
        if wait > LONGEST_GAP {
            self.release();
        }
        self.release_unfit();
        let seen = holder.filter(|_| reason == WaitReason::Contended).cloned().map(Box::new);
        self.set_life(Life::Backoff { until: self.now.after(wait), reason, refused: None, holder: seen });
        if reason == WaitReason::Contended && holder.is_some() {
            self.act(Action::AwaitHolder);
        }
        Why::Waiting { reason, exit, crashes: self.session.budgets.crashes, wait }
    }

    fn block_on_vendor(&mut self, retry: Duration, exit: Exit, holder: Option<&HolderSeen>) -> Why {
        self.release();
        let on = BlockedOn::VendorLock { retry: self.now.after(retry) };
        self.set_life(Life::Blocked { holder: holder.cloned().map(Box::new), on });
        if holder.is_some() {
            self.act(Action::AwaitHolder);
        }
        Why::Blocked { exit }
    }
}

fn is_unlocked(ended: &Ended) -> bool {
    ended.recognised == Some(Recognised::Unlocked)
}

/// A refusal of which nothing more is known.
fn unknown_refusal() -> StartRefused {
    StartRefused { errno: None, text: "it never began".into() }
}

/// Whether a turn that ended with its run costs a try: not if we cut it short, nor if something else kept the
/// agent from it.
fn cost(asked: Asked, verdict: Verdict) -> Cost {
    match (asked, verdict) {
        (Asked::ToEnd | Asked::ToDrain | Asked::ToYield, _) => Cost::Nothing,
        (
            Asked::Nothing | Asked::ToRevive,
            Verdict::Drained | Verdict::Contended | Verdict::Limited | Verdict::Hopeless,
        ) => Cost::Nothing,
        (Asked::Nothing | Asked::ToRevive, Verdict::Clean | Verdict::OutOfMemory | Verdict::Crash) => {
            Cost::OneTry
        }
    }
}
