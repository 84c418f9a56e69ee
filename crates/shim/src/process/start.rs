//! Starts an agent: takes a waiting child, records its identity under a new fence, and lets it go.

use super::gate::WaitingChild;
use super::input::AgentInput;
use super::output::Outputs;
use super::run::{Run, RunStage};
use super::shape::ChildShape;
use super::shim::{Phase, Shim};
use super::turns::Turns;
use crate::crash;
use crate::protocol::exited::{Exited, StartFailure};
use crate::protocol::report::Report;
use crate::protocol::start::{Directory, Start};
use pinfold_core::exit::{Ended, Exit};
use pinfold_core::ids::RunNumber;
use pinfold_core::life::Process;
use pinfold_lock::{Request, RunName, Survivors};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// The time an agent needs to be loaded, on most machines.
const FIRST_STEPS: Duration = Duration::from_millis(2);

impl Shim {
    /// Starts an agent, once for each run number.
    pub(super) fn start(&mut self, start: &Start) {
        if let Some(answer) = self.not_to_be_started(start.run) {
            self.links.report(&answer);
            return;
        }
        self.store_end();
        match self.try_start(start) {
            Ok(run) => self.run(run),
            Err(why) => self.start_failed(start.run, why),
        }
    }

    fn run(&mut self, mut run: Run) {
        // Clients that wait for a terminal have it from the first instruction on.
        self.viewers.follow_typist(run.shown_mut());
        self.phase = Phase::Running(Box::new(run));
    }

    /// Returns the answer to a start that is not to be tried.
    fn not_to_be_started(&self, number: RunNumber) -> Option<Report> {
        let failed = |why| Some(Report::StartFailed { run: number, why });
        match &self.phase {
            Phase::Running(run) if run.number == number => Some(self.started(run)),
            Phase::Running(run) if run.number > number => failed(StartFailure::Outdated { last: run.number }),
            Phase::Running(run) => failed(StartFailure::Occupied { run: run.number }),
            Phase::Waiting | Phase::Gone => failed(refused(Errno::PROTO)),
            Phase::Standing { .. } => match self.records.last() {
                Some(last) if number <= last => Some(self.ended_before(number, last)),
                Some(_) | None if self.records.is_full() => failed(StartFailure::RecordsFull),
                Some(_) | None => None,
            },
        }
    }

    fn ended_before(&self, number: RunNumber, last: RunNumber) -> Report {
        match self.records.of(number) {
            Ok(Some(exited)) => told(exited),
            Ok(None) | Err(_) => Report::StartFailed { run: number, why: StartFailure::Outdated { last } },
        }
    }

    fn try_start(&mut self, start: &Start) -> Result<Run, StartFailure> {
        let name = RunName::new(start.run_id.as_str()).map_err(|_| refused(Errno::INVAL))?;
        check(start, self.locked_directory())?;
        self.notify.begin();
        self.log.limit(start.log);
        let unheard = self.ready_tape(start).map_err(refused)?;
        let shape = ChildShape::of(start);
        if start.terminal.is_some() {
            self.links.listen(&self.keep).map_err(refused)?;
        }
        if let Some(spare) = self.take_spare(shape)
            && let Ok(run) = self.release_child(start, &name, spare)
        {
            return Ok(run.with_tape(unheard));
        }
        crash::point("start.unforked");
        let waiting = self.fork(shape).map_err(refused)?;
        crash::point("start.forked");
        let run = self.release_child(start, &name, waiting).map_err(refused)?;
        Ok(run.with_tape(unheard))
    }

    /// Records the child's identity, and lets it become the agent.
    fn release_child(&mut self, start: &Start, name: &RunName, waiting: WaitingChild) -> Result<Run, Errno> {
        let fence = self.write_down(start, name, &waiting);
        let fence = match fence.and_then(|fence| waiting.open_gate(start, fence).map(|()| fence)) {
            Ok(fence) => fence,
            Err(errno) => {
                waiting.discard();
                return Err(errno);
            }
        };
        crash::point("start.released");
        self.links.joins = start.joins;
        let WaitingChild { forked, agent, ends, group, .. } = waiting;
        Ok(Run {
            number: start.run,
            process: Process { pid: agent.pid, fence },
            pid: forked.pid,
            pidfd: forked.pidfd,
            stage: RunStage::Starting(ends.failure),
            failure: None,
            outputs: Outputs::new(ends.stdout, ends.stderr),
            input: AgentInput::new(start.run, ends.stdin),
            pty: ends.pty,
            turns: Turns::new(&self.keep.records, start.says_done),
            taping: None,
            held: Vec::new(),
            visit: None,
            group,
            began: Instant::now(),
            // A client that waits for an agent on demand wants to know at once.
            undisturbed: start.repeats.then(|| Instant::now() + FIRST_STEPS),
            at: super::shim::wall(),
            lived: Duration::ZERO,
            grace: start.grace,
            stopping: None,
            again: None,
            killing: None,
            left: Vec::new(),
            unreaped: false,
            just_ended: false,
            announced: false,
            next: ChildShape::behind(start),
        })
    }

    pub(super) fn locked_directory(&self) -> Option<BorrowedFd<'_>> {
        self.guards.iter().find_map(pinfold_lock::Guard::directory)
    }

    /// Writes into every lock for which process it is held now; returns the fence of the session's own.
    fn write_down(&mut self, start: &Start, run: &RunName, waiting: &WaitingChild) -> Result<u64, Errno> {
        let words = start.arguments.iter().map(|word| word.to_string_lossy());
        let request = Request {
            session: Some(self.keep.session.clone()),
            command: words.collect::<Vec<_>>().join(" "),
            run: Some(run.clone()),
            agent: Some(waiting.agent),
            cgroup: waiting.group.as_ref().map(|group| group.path().to_owned()),
            survivors: Survivors::End,
            ..Request::default()
        };
        let mut first = 0;
        for (number, guard) in self.guards.iter_mut().enumerate() {
            let fence = guard.new_fence(&request).map_err(|trouble| trouble.source)?;
            if number == 0 {
                first = fence.0;
            }
        }
        crash::point("start.fenced");
        Ok(first)
    }

    /// Records, then reports a failed start, which is an end like any other.
    pub(super) fn start_failed(&mut self, run: RunNumber, why: StartFailure) {
        let exited = Exited {
            run,
            ended: Ended::new(Exit::NeverStarted, Duration::ZERO),
            failure: Some(why),
            pid: 0,
            fence: self.guards.first().map_or(0, |guard| guard.fence().0),
            at: super::shim::wall(),
            log: self.log.end(),
            tape: None,
        };
        self.tell_end(exited, Vec::new());
        self.go_on(None, None);
    }
}

/// Returns the report on a recorded end.
pub(super) fn told(exited: Exited) -> Report {
    match exited.failure {
        Some(why) => Report::StartFailed { run: exited.run, why },
        None => Report::Exited(exited),
    }
}

/// Checks the directory: a removed one can still be entered, but that is never wanted.
pub(super) fn check(start: &Start, locked: Option<BorrowedFd<'_>>) -> Result<(), StartFailure> {
    match (&start.directory, locked) {
        (Directory::Path(_), _) => Ok(()),
        (Directory::Locked, None) => Err(StartFailure::DirectoryMissing),
        (Directory::Locked, Some(directory)) => match rustix::fs::fstat(directory) {
            Ok(facts) if facts.st_nlink == 0 => Err(StartFailure::DirectoryMissing),
            Ok(_) => Ok(()),
            Err(errno) => Err(refused(errno)),
        },
    }
}

pub(super) fn refused(errno: Errno) -> StartFailure {
    StartFailure::Refused { errno: errno.raw_os_error() }
}
