//! Starts an agent: forks a child that waits, writes down who it is under a new fence, and lets it go.

use super::child::{self, Child, Gate};
use super::group::Group;
use super::input::Input;
use super::output::Outputs;
use super::pty::Pty;
use super::raw::{self, Forked};
use super::run::{Run, Stage};
use super::shim::{Phase, Shim};
use super::turns::Turns;
use crate::command::{Directory, Start, Stdin};
use crate::crash;
use crate::exited::{Exited, StartFailure};
use crate::report::Report;
use pinfold_core::exit::{Ended, Exit};
use pinfold_core::ids::RunNumber;
use pinfold_core::life::Process;
use pinfold_lock::{Request, Run as RunName, Survivors, process};
use pinfold_terminal::Size;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Signal, WaitOptions};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// The ends of the pipes that the shim keeps.
struct Ends {
    failure: OwnedFd,
    stdin: Option<OwnedFd>,
    /// Somebody else has it where streams were given.
    stdout: Option<OwnedFd>,
    /// A terminal has none of its own.
    stderr: Option<OwnedFd>,
    pty: Option<Box<Pty>>,
}

/// The agent's sides.
struct Streams {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// A child that waits at its gate.
struct Waiting {
    forked: Forked,
    gate: OwnedFd,
    ends: Ends,
}

impl Shim {
    /// Starts an agent, once for each number.
    pub(super) fn start(&mut self, start: &Start) {
        if let Some(answer) = self.not_to_be_started(start.run) {
            self.links.report(&answer);
            return;
        }
        match self.try_start(start) {
            Ok(run) => self.run(run),
            Err(why) => self.start_failed(start.run, why),
        }
    }

    fn run(&mut self, mut run: Run) {
        // Whoever waits for a terminal has it from the first instruction on.
        self.viewers.follow_typist(run.pty.as_deref_mut());
        self.phase = Phase::Running(Box::new(run));
    }

    /// The answer to a start that is not to be tried.
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
        let run_name = RunName::new(start.run_id.as_str()).map_err(|_| refused(Errno::INVAL))?;
        check(start, self.locked_directory())?;
        self.notify.begin();
        self.log.limit(start.log);
        crash::point("start.unforked");
        let group = Group::make(&self.keep.listen, start.contain);
        let Waiting { forked, gate, ends } = self.fork(start, group.as_ref()).map_err(refused)?;
        crash::point("start.forked");
        let fence = self.write_down(start, run_name, group.as_ref(), &forked);
        let fence = fence.and_then(|fence| open_gate(&gate, fence));
        let fence = fence.map_err(|errno| {
            end(&forked);
            refused(errno)
        })?;
        crash::point("start.released");
        Ok(Run {
            number: start.run,
            process: Process { pid: number(&forked), fence },
            pid: forked.pid,
            pidfd: forked.pidfd,
            stage: Stage::Starting(ends.failure),
            failure: None,
            outputs: Outputs::new(ends.stdout, ends.stderr),
            input: Input::new(start.run, ends.stdin),
            pty: ends.pty,
            turns: Turns::new(&self.keep.records),
            group,
            began: Instant::now(),
            at: super::shim::wall(),
            lived: Duration::ZERO,
            grace: start.grace,
            stopping: None,
            again: None,
            announced: false,
        })
    }

    /// Forks a child that waits at its gate.
    fn fork(&self, start: &Start, group: Option<&Group>) -> Result<Waiting, Errno> {
        let into_group = |child: &mut Child<'_>| raw::fork(group.map(Group::folder), &mut || child.live());
        match self.fork_by(start, into_group) {
            // Kernels before 5.7, filters that know no clone3, and kernels that end what is forked into a
            // group: the child is moved while it waits.
            Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::OPNOTSUPP | Errno::CHILD) => {
                let waiting = self.fork_by(start, |child| raw::plain_fork(&mut || child.live()))?;
                if let Some(group) = group {
                    group.take(number(&waiting.forked));
                }
                Ok(waiting)
            }
            other => other,
        }
    }

    fn fork_by(
        &self,
        start: &Start,
        fork: impl FnOnce(&mut Child<'_>) -> Result<Forked, Errno>,
    ) -> Result<Waiting, Errno> {
        let (mut child, ends) = self.child(start)?;
        let forked = fork(&mut child)?;
        let gate = child.gate.opener.take();
        drop(child);
        if let Err(errno) = await_child(&ends.failure) {
            end(&forked);
            return Err(errno);
        }
        rustix::io::ioctl_fionbio(&ends.failure, true)?;
        Ok(Waiting { forked, gate: gate.ok_or(Errno::BADF)?, ends })
    }

    fn locked_directory(&self) -> Option<BorrowedFd<'_>> {
        self.guards.iter().find_map(pinfold_lock::Guard::directory)
    }

    fn child<'a>(&'a self, start: &'a Start) -> Result<(Child<'a>, Ends), Errno> {
        let (waits, opener) = pipe()?;
        let (failure_end, failure) = pipe()?;
        let (streams, ends) = match (start.terminal, &self.streams) {
            (Some(size), _) => terminal(size, failure_end)?,
            (None, Some(streams)) => given(streams, failure_end)?,
            (None, None) => pipes(start.stdin, failure_end)?,
        };
        let Streams { stdin, stdout, stderr } = streams;
        let child = Child {
            start,
            guards: &self.guards,
            environment: child::environment(start, &self.keep.session, self.notify.name()),
            umask: self.umask,
            shim: rustix::process::getpid(),
            directory: self.locked_directory(),
            gate: Gate { opener: Some(opener), waits },
            failure,
            stdin,
            stdout,
            stderr,
        };
        Ok((child, ends))
    }

    /// Writes into every lock which process it is held for now; returns the fence of the session's own.
    fn write_down(
        &mut self,
        start: &Start,
        run: RunName,
        group: Option<&Group>,
        forked: &Forked,
    ) -> Result<u64, Errno> {
        let pid = number(forked);
        let agent = process::identify(pid).map_err(|_| Errno::SRCH)?;
        if let Some(group) = group {
            group.count_memory_of(pid);
        }
        let words = start.arguments.iter().map(|word| word.to_string_lossy());
        let request = Request {
            session: Some(self.keep.session.clone()),
            command: words.collect::<Vec<_>>().join(" "),
            run: Some(run),
            agent: Some(agent),
            cgroup: group.map(|group| group.path().to_owned()),
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

    /// A start that came to nothing is an end like others: recorded, then told.
    pub(super) fn start_failed(&mut self, run: RunNumber, why: StartFailure) {
        let exited = Exited {
            run,
            ended: Ended {
                exit: Exit::NeverStarted,
                said: None,
                recognised: None,
                oom_killed: false,
                forced: false,
                lived: Duration::ZERO,
            },
            failure: Some(why),
            pid: 0,
            fence: self.guards.first().map_or(0, |guard| guard.fence().0),
            at: super::shim::wall(),
            log: self.log.end(),
        };
        self.settle_end(exited);
    }
}

fn pipes(stdin: Stdin, failure: OwnedFd) -> Result<(Streams, Ends), Errno> {
    let (stdin, stdin_end) = match stdin {
        Stdin::Pipe => pipe().map(|(theirs, ours)| (theirs, Some(ours)))?,
        Stdin::Null => {
            let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
            (null, None)
        }
    };
    let (stdout_end, stdout) = pipe()?;
    let (stderr_end, stderr) = pipe()?;
    for ours in [&stdout_end, &stderr_end].into_iter().chain(&stdin_end) {
        rustix::io::ioctl_fionbio(ours, true)?;
    }
    let (stdout_end, stderr_end) = (Some(stdout_end), Some(stderr_end));
    let ends = Ends { failure, stdin: stdin_end, stdout: stdout_end, stderr: stderr_end, pty: None };
    Ok((Streams { stdin, stdout, stderr }, ends))
}

/// The streams of whoever started the shim, as they are.
fn given(streams: &[OwnedFd; 3], failure: OwnedFd) -> Result<(Streams, Ends), Errno> {
    let copy = |stream: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(stream, 3);
    let [stdin, stdout, stderr] = streams;
    let streams = Streams { stdin: copy(stdin)?, stdout: copy(stdout)?, stderr: copy(stderr)? };
    Ok((streams, Ends { failure, stdin: None, stdout: None, stderr: None, pty: None }))
}

fn terminal(size: Size, failure: OwnedFd) -> Result<(Streams, Ends), Errno> {
    let (pty, theirs) = Pty::open(size)?;
    let again = |descriptor| rustix::io::fcntl_dupfd_cloexec(descriptor, 3);
    let streams = Streams { stdout: again(&theirs)?, stderr: again(&theirs)?, stdin: theirs };
    let (stdin, stdout) = (Some(pty.master()?), Some(pty.master()?));
    Ok((streams, Ends { failure, stdin, stdout, stderr: None, pty: Some(Box::new(pty)) }))
}

/// What is told of an end that was recorded.
pub(super) fn told(exited: Exited) -> Report {
    match exited.failure {
        Some(why) => Report::StartFailed { run: exited.run, why },
        None => Report::Exited(exited),
    }
}

/// A directory that has been removed can still be entered, but nobody wants that.
fn check(start: &Start, locked: Option<BorrowedFd<'_>>) -> Result<(), StartFailure> {
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

/// Waits until the child stands at its gate; `CHILD` when it ended before.
fn await_child(failure: &OwnedFd) -> Result<(), Errno> {
    let mut word = [0];
    loop {
        match rustix::io::read(failure, &mut word) {
            Ok(1) if word == [child::HERE] => return Ok(()),
            Ok(_) => return Err(Errno::CHILD),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

fn open_gate(gate: &OwnedFd, fence: u64) -> Result<u64, Errno> {
    // Eight bytes are written to an empty pipe at once or not at all.
    rustix::io::write(gate, &fence.to_le_bytes()).map(|_| fence)
}

/// Ends and reaps a child that was not let go.
fn end(forked: &Forked) {
    let _ = rustix::process::pidfd_send_signal(&forked.pidfd, Signal::KILL);
    while let Err(Errno::INTR) = rustix::process::waitpid(Some(forked.pid), WaitOptions::empty()) {}
}

fn number(forked: &Forked) -> u32 {
    forked.pid.as_raw_nonzero().get().unsigned_abs()
}

fn pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
}

fn refused(errno: Errno) -> StartFailure {
    StartFailure::Refused { errno: errno.raw_os_error() }
}
