//! One run: an agent with its tree, from the fork until the tree is empty.

use super::guest::Visit;
use super::input::AgentInput;
use super::output::Outputs;
use super::pty::Pty;
use super::shape::ChildShape;
use super::taping::Taping;
use super::tree::Met;
use super::turns::Turns;
use super::{child, reaping, survivors, tree};
use crate::groups::group::Group;
use crate::protocol::exited::StartFailure;
use pinfold_core::exit::Exit;
use pinfold_core::ids::RunNumber;
use pinfold_core::life::Process;
use pinfold_core::time::Wall;
use pinfold_core::unended::Survivor;
use pinfold_lock::Guard;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Survivors of a SIGKILL depend on the kernel: the signal is repeated, less and less often.
const FIRST_RETRY: Duration = Duration::from_millis(10);
const LAST_RETRY: Duration = Duration::from_secs(1);
/// For this long at a stretch, new processes are killed as fast as they are forked; then other events are
/// handled.
const BURST: Duration = Duration::from_millis(500);
/// After this, the survivors belong to another user, and we cannot end their children.
const CHASE: Duration = Duration::from_secs(10);
/// Most ended processes that are reaped at a stretch.
const REAPED: usize = 128;

/// A run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) number: RunNumber,
    pub(super) process: Process,
    pub(super) pid: Pid,
    pub(super) pidfd: OwnedFd,
    pub(super) stage: RunStage,
    pub(super) failure: Option<StartFailure>,
    pub(super) outputs: Outputs,
    pub(super) input: AgentInput,
    pub(super) pty: Option<Box<Pty>>,
    pub(super) turns: Turns,
    /// How it uses the tape, if it has one; then there is no input and no turn here.
    pub(super) taping: Option<Box<Taping>>,
    /// Locks that were taken during the run.
    pub(super) held: Vec<Guard>,
    /// Its latest guest, if it had one.
    pub(super) visit: Option<Visit>,
    pub(super) group: Option<Group>,
    pub(super) began: Instant,
    pub(super) at: Wall,
    pub(super) lived: Duration,
    pub(super) grace: Duration,
    pub(super) stopping: Option<Stopping>,
    pub(super) again: Option<(Instant, Duration)>,
    /// When the tree was first killed, and the survivors that were reported.
    pub(super) killing: Option<Instant>,
    pub(super) left: Vec<Survivor>,
    /// Whether more processes may have ended than were reaped.
    pub(super) unreaped: bool,
    /// Until when the shim does not check whether the child has become the agent, because the check would
    /// take the processor from it.
    pub(super) undisturbed: Option<Instant>,
    /// Whether the agent was reaped just now, so that its last words have not been read.
    pub(super) just_ended: bool,
    /// Whether the daemon was told that it runs.
    pub(super) announced: bool,
    /// The shape of the run that is to follow at once, if any.
    pub(super) next: Option<ChildShape>,
}

/// How far a run has come.
#[derive(Debug)]
pub(super) enum RunStage {
    /// The child has not become the agent yet; the pipe closes when it has, and carries the reason if it
    /// cannot.
    Starting(OwnedFd),
    /// The agent is alive.
    Running,
    /// The agent has ended; the rest of its tree is being ended.
    Ending(Exit),
}

/// A run that was asked to end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stopping {
    pub(super) until: Instant,
    pub(super) forced: bool,
}

/// Whether anything lives below the shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TreeState {
    Empty,
    Populated,
}

impl Run {
    /// Asks the whole tree to end, the agent first. If asked again, the earlier deadline counts.
    pub(super) fn stop(&mut self, grace: Duration, now: Instant) {
        let until = now.checked_add(grace).unwrap_or(now + Duration::from_secs(1 << 30));
        match &mut self.stopping {
            Some(stopping) => stopping.until = stopping.until.min(until),
            None => {
                self.stopping = Some(Stopping { until, forced: false });
                self.signal(Signal::TERM);
                let _ = tree::signal_below(Signal::TERM, Some(self.pid));
                // Interactive shells ignore SIGTERM, and end when their terminal goes.
                if self.pty.is_some() {
                    self.signal(Signal::HUP);
                }
                if let Some(guest) = self.visit.as_ref().and_then(Visit::here) {
                    guest.hang_up();
                }
            }
        }
    }

    /// Returns whether it was asked to end, or has ended and its tree follows.
    pub(super) fn is_being_ended(&self) -> bool {
        self.stopping.is_some() || matches!(self.stage, RunStage::Ending(_))
    }

    /// Sends a signal to the agent itself.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, signal);
    }

    /// Kills the whole tree when its time is up, again and again until nothing is left.
    pub(super) fn force(&mut self, now: Instant) {
        let time_up = match (&self.stage, self.stopping) {
            (RunStage::Ending(_), _) => true,
            (RunStage::Starting(_) | RunStage::Running, Some(stopping)) => now >= stopping.until,
            (RunStage::Starting(_) | RunStage::Running, None) => false,
        };
        if !time_up || self.again.is_some_and(|(at, _)| now < at) {
            return;
        }
        if let (RunStage::Starting(_) | RunStage::Running, Some(stopping)) = (&self.stage, &mut self.stopping)
        {
            stopping.forced = true;
        }
        if let Some(group) = &self.group {
            group.kill();
        }
        let chase = now.saturating_duration_since(*self.killing.get_or_insert(now)) < CHASE;
        let wait = match self.kill(chase.then(|| now + BURST)) {
            Met::New if chase => FIRST_RETRY,
            Met::New | Met::Known => self.again.map_or(FIRST_RETRY, |(_, wait)| (wait * 2).min(LAST_RETRY)),
        };
        self.again = Some((now + wait, wait));
    }

    /// Kills the tree, and whatever it forks meanwhile as fast as it is forked: processes that live for less
    /// than a millisecond, each the child of the last one, are missed by looking now and then.
    fn kill(&mut self, chase: Option<Instant>) -> Met {
        let mut met = BTreeSet::new();
        // Children first, which all orphans become: looking below all of them takes long if there are many.
        if self.kill_children(chase, &mut met) == Met::New && chase.is_some() {
            return Met::New;
        }
        met.extend(tree::signal_below(Signal::KILL, None));
        self.kill_children(chase, &mut met)
    }

    /// Kills children until there are only those that were killed before. The living come before the ended: a
    /// chain of forks goes on while the dead are reaped.
    fn kill_children(&mut self, chase: Option<Instant>, met: &mut BTreeSet<u32>) -> Met {
        let mut left = tree::kill_children(met);
        while left == Met::New && chase.is_some_and(|until| Instant::now() < until) {
            left = tree::kill_children(met);
        }
        match self.reap() {
            TreeState::Empty => Met::Known,
            TreeState::Populated => left,
        }
    }

    /// Returns the processes that cannot be ended, if that is known and was not reported yet; checked with
    /// every new try to end them.
    pub(super) fn new_survivors(&mut self, now: Instant) -> Option<&Vec<Survivor>> {
        let (since, (next, wait)) = (self.killing?, self.again?);
        let just_tried = next == now + wait;
        if !just_tried {
            return None;
        }
        let left = survivors::after(now.saturating_duration_since(since));
        if left == self.left {
            return None;
        }
        self.left = left;
        // If all of them are gone, the end of the run says so.
        (!self.left.is_empty()).then_some(&self.left)
    }

    /// Makes a new daemon hear of the current survivors too.
    pub(super) fn tell_survivors_again(&mut self, now: Instant) {
        self.left.clear();
        if let Some((at, _)) = &mut self.again {
            *at = now;
        }
    }

    /// Returns when [`Run::force`] or [`Run::reap`] has something to do next.
    pub(super) fn next_force(&self) -> Option<Instant> {
        if self.unreaped {
            return Some(Instant::now());
        }
        match (&self.stage, self.stopping, self.again) {
            (_, _, Some((at, _))) => Some(at),
            (RunStage::Starting(_) | RunStage::Running, Some(stopping), None) => Some(stopping.until),
            (_, _, None) => None,
        }
    }

    /// Reaps ended processes, and records how the agent ended. There may be more: a tree can fork as fast as
    /// it is reaped.
    pub(super) fn reap(&mut self) -> TreeState {
        self.unreaped = false;
        for _ in 0..REAPED {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.pid => self.ended(status),
                Ok(Some((pid, _))) => self.note_usher(pid),
                Err(Errno::INTR) => {}
                Ok(None) => return TreeState::Populated,
                Err(_) => return TreeState::Empty,
            }
        }
        self.unreaped = true;
        TreeState::Populated
    }

    /// If the guest's usher was reaped, nothing of the guest is left.
    fn note_usher(&mut self, reaped: Pid) {
        let guest = self.visit.as_mut().and_then(Visit::here_mut);
        if let Some(guest) = guest.filter(|guest| guest.usher.pid == reaped) {
            guest.gone = true;
        }
    }

    /// Checks whether the child has become the agent.
    pub(super) fn confirm(&mut self) {
        let RunStage::Starting(pipe) = &self.stage else { return };
        let mut saying = [0; child::SAYING];
        match rustix::io::read(pipe, &mut saying) {
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(0) | Err(_) => self.stage = RunStage::Running,
            Ok(length) => {
                self.failure = Some(child::failure(&saying[..length]));
                self.stage = RunStage::Running;
            }
        }
    }

    /// Returns whether exec succeeded and that was not reported yet.
    pub(super) fn is_news(&self) -> bool {
        let known = !matches!(self.stage, RunStage::Starting(_));
        known && self.failure.is_none() && !self.announced
    }

    fn ended(&mut self, status: WaitStatus) {
        // A child that ended has said all it had to say.
        self.confirm();
        let Some(exit) = reaping::exit(status) else { return };
        self.lived = self.began.elapsed();
        self.again = None;
        self.just_ended = true;
        self.stage = RunStage::Ending(exit);
    }
}

/// Reaps processes that were reparented to a shim without a run.
pub(super) fn reap_strays() {
    while let Ok(Some(_)) | Err(Errno::INTR) = rustix::process::wait(WaitOptions::NOHANG) {}
}
