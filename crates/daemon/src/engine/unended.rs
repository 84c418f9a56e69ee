//! A deadline on every stop: a running shim answers, and names what cannot be ended.

use super::Engine;
use super::stopping::{Overdue, ShimHeard, StopWatch};
use crate::engine::input::LoopInput;
use pinfold_core::unended::{Survivor, Unended};
use pinfold_core::{RunEvent, RunNumber, State};
use pinfold_shim::{Command, Report};
use pinfold_store::SessionId;
use std::time::Duration;

/// How long after the grace a live shim has answered.
pub(super) const NO_ANSWER: Duration = Duration::from_secs(2);
/// How long after the grace a shim that has not ended its run is asked for a sign of life.
const ASK: Duration = Duration::from_secs(1);
/// How long after the grace a shim that answers has ended its run or named the survivors. An older version
/// cannot name them.
const NO_END: Duration = Duration::from_secs(8);
/// No run has this number: a shim that is asked about it answers that it knows no such run.
pub(super) const NO_RUN: RunNumber = RunNumber(0);

impl Engine {
    /// Watches a stop that a shim was told. If it is asked for again, the earlier end of the grace counts.
    pub(super) fn watch_stop(&mut self, id: SessionId, run: RunNumber, grace: Duration) {
        let Some(live) = self.sessions.get_mut(&id).and_then(|tracked| tracked.live(run)) else { return };
        let Some(until) = self.ports.clock.awake().checked_add(grace) else { return };
        let watch = StopWatch { run, until };
        if live.watch.is_some_and(|known| known.until <= until) {
            return;
        }
        live.watch = Some(watch);
        for (after, overdue) in
            [(ASK, Overdue::ToAsk), (NO_ANSWER, Overdue::Unanswered), (NO_END, Overdue::Unended)]
        {
            let handle = self.handle.clone();
            let told = move |()| handle.tell(LoopInput::StopOverdue { id, watch, overdue });
            self.ports.clock.remind(until + after, Box::new(told));
        }
    }

    pub(super) fn stop_overdue(&mut self, id: SessionId, watch: StopWatch, overdue: Overdue) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        if tracked.session.state() != State::Stopping {
            return;
        }
        let Some(live) = tracked.run.as_mut().filter(|live| live.watch == Some(watch)) else { return };
        let shim = tracked.shim.as_ref().map(|shim| shim.pid);
        let ran = |shim: Option<u32>| shim.and_then(|shim| self.ports.shims.ran(shim));
        match overdue {
            Overdue::ToAsk => {
                live.heard = ShimHeard::NotSince { ran: ran(shim) };
                if let Some(shim) = &tracked.shim {
                    shim.send(&Command::Interrupt { run: NO_RUN });
                }
            }
            Overdue::Unanswered | Overdue::Unended => match live.heard {
                // A shim that gets little of a busy machine is slow, not mute: it has as much time as its
                // tree.
                ShimHeard::NotSince { ran: before }
                    if overdue == Overdue::Unanswered && ran(shim) > before => {}
                ShimHeard::NotSince { .. } => {
                    self.of_run(id, watch.run, RunEvent::Unended(Unended::Silent { shim }));
                }
                ShimHeard::Since if overdue == Overdue::Unended && tracked.session.unended().is_none() => {
                    self.look_for_survivors(id, watch.run);
                }
                ShimHeard::Since => {}
            },
        }
    }

    /// Looks for survivors below a shim of an older version, which does not name them.
    fn look_for_survivors(&self, id: SessionId, run: RunNumber) {
        let Some(shim) = self.sessions.get(&id).and_then(|tracked| tracked.shim.as_ref()) else { return };
        let (link, handle) = (shim.number, self.handle.clone());
        let found = move |left| {
            handle.tell(LoopInput::Shim { id, link, report: Some(Report::Survivors { run, left }) });
        };
        self.ports.shims.survivors(shim.pid, Box::new(found));
    }

    /// A shim that reports anything is running. If it was silent, its stop is still ahead of it and is
    /// watched again.
    pub(super) fn shim_speaks(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let Some(live) = &mut tracked.run else { return };
        live.heard = ShimHeard::Since;
        let Some(Unended::Silent { .. }) = tracked.session.unended() else { return };
        live.watch = None;
        let (run, asked) = (live.number, live.stop);
        let grace = asked.unwrap_or(tracked.session.spec().policy.stop_grace);
        self.of_run(id, run, RunEvent::ShimAnswered);
        self.watch_stop(id, run, grace);
    }

    /// A shim names the processes of its tree that it cannot end.
    pub(super) fn survivors(&mut self, id: SessionId, run: RunNumber, left: Vec<Survivor>) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let shim = tracked.shim.as_ref().map(|shim| shim.pid);
        self.of_run(id, run, RunEvent::Unended(Unended::Survivors { shim, left }));
    }

    /// Whether a report is only the answer to being asked for a sign of life.
    pub(super) fn is_sign_of_life(run: RunNumber) -> bool {
        run == NO_RUN
    }
}
