//! A child that waits at its gate: forked, tied to the shim, its streams in place, and told at the gate what to become.
//!
//! Nothing of the agent has run yet, and nothing will when the shim dies. So one can be made ahead: when a run that is to
//! be repeated ends, its successor waits at the gate while the end is being stored, and the order to start finds it there.

use super::child::{self, Child, Gate};
use super::group::Group;
use super::pty::Pty;
use super::raw::{self, Forked};
use super::shim::Shim;
use crate::command::{Contain, Start, Stdin};
use crate::crash;
use pinfold_lock::{Identity, process};
use pinfold_terminal::Size;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Signal, WaitOptions};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// An order to start at once comes within this; a successor that waited longer goes.
const SPARE: Duration = Duration::from_millis(250);

/// What a child has to be forked with; all the rest it is told at its gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    terminal: Option<Size>,
    stdin: Stdin,
    contain: Contain,
}

impl Shape {
    pub(super) fn of(start: &Start) -> Self {
        Self { terminal: start.terminal, stdin: start.stdin, contain: start.contain }
    }

    /// The shape of the run behind this one, where one is to follow at once. A terminal is made when it is asked for.
    pub(super) fn behind(start: &Start) -> Option<Self> {
        (start.repeats && start.terminal.is_none()).then(|| Self::of(start))
    }
}

/// A child that waits at its gate.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) forked: Forked,
    pub(super) agent: Identity,
    pub(super) ends: Ends,
    pub(super) group: Option<Group>,
    gate: OwnedFd,
    shape: Shape,
}

/// A child that waits for an order that has not come yet.
#[derive(Debug)]
pub(super) struct Spare {
    waiting: Waiting,
    pub(super) until: Instant,
}

/// The ends of the pipes that the shim keeps.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) failure: OwnedFd,
    pub(super) stdin: Option<OwnedFd>,
    /// Somebody else has it where streams were given.
    pub(super) stdout: Option<OwnedFd>,
    /// A terminal has none of its own.
    pub(super) stderr: Option<OwnedFd>,
    pub(super) pty: Option<Box<Pty>>,
}

/// The agent's sides.
struct Streams {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl Waiting {
    /// Tells the child what to become, and under which fence.
    pub(super) fn open_gate(&self, start: &Start, fence: u64) -> Result<(), Errno> {
        let mut order = fence.to_le_bytes().to_vec();
        start.encode(&mut order);
        let mut rest = order.as_slice();
        while !rest.is_empty() {
            match rustix::io::write(&self.gate, rest) {
                Ok(count) => rest = &rest[count..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Ends and reaps a child that is not let go.
    pub(super) fn discard(self) {
        end(&self.forked);
    }
}

impl Shim {
    /// Has a successor wait for the order to start.
    pub(super) fn prepare(&mut self, shape: Shape, group: Option<Group>) {
        // Without one the start makes its own, and tells what was wrong.
        let waiting = self.fork_in(shape, group).ok();
        self.spare = waiting.map(|waiting| Spare { waiting, until: Instant::now() + SPARE });
        crash::point("spare.waits");
    }

    /// The successor that waits, if it is of this shape.
    pub(super) fn take_spare(&mut self, shape: Shape) -> Option<Waiting> {
        let Spare { waiting, .. } = self.spare.take()?;
        if waiting.shape == shape {
            return Some(waiting);
        }
        waiting.discard();
        None
    }

    /// Ends a successor that nobody asked for.
    pub(super) fn drop_spare(&mut self) {
        if let Some(spare) = self.spare.take() {
            spare.waiting.discard();
        }
    }

    /// Forks a child that waits at its gate, in a group of its own.
    pub(super) fn fork(&self, shape: Shape) -> Result<Waiting, Errno> {
        self.fork_in(shape, None)
    }

    /// Forks a child that waits at its gate, in the empty group of the last run if there is one.
    fn fork_in(&self, shape: Shape, empty: Option<Group>) -> Result<Waiting, Errno> {
        let group = empty.or_else(|| Group::make(&self.keep.listen, shape.contain));
        let (forked, gate, ends) = self.fork_into(shape, group.as_ref())?;
        let pid = forked.pid.as_raw_nonzero().get().unsigned_abs();
        let Ok(agent) = process::identify(pid) else {
            end(&forked);
            return Err(Errno::SRCH);
        };
        if let Some(group) = &group {
            group.count_memory_of(pid);
        }
        Ok(Waiting { forked, agent, ends, group, gate, shape })
    }

    fn fork_into(&self, shape: Shape, group: Option<&Group>) -> Result<(Forked, OwnedFd, Ends), Errno> {
        let into_group = |child: &mut Child<'_>| raw::fork(group.map(Group::folder), &mut || child.live());
        match self.fork_by(shape, into_group) {
            // Kernels before 5.7, filters that know no clone3, and kernels that end what is forked into a
            // group: the child is moved while it waits.
            Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::OPNOTSUPP | Errno::CHILD) => {
                let waiting = self.fork_by(shape, |child| raw::plain_fork(&mut || child.live()))?;
                if let Some(group) = group {
                    group.take(waiting.0.pid.as_raw_nonzero().get().unsigned_abs());
                }
                Ok(waiting)
            }
            other => other,
        }
    }

    fn fork_by(
        &self,
        shape: Shape,
        fork: impl FnOnce(&mut Child<'_>) -> Result<Forked, Errno>,
    ) -> Result<(Forked, OwnedFd, Ends), Errno> {
        let (mut child, ends) = self.child(shape)?;
        let forked = fork(&mut child)?;
        let gate = child.gate.opener.take();
        drop(child);
        if let Err(errno) = await_child(&ends.failure) {
            end(&forked);
            return Err(errno);
        }
        rustix::io::ioctl_fionbio(&ends.failure, true)?;
        Ok((forked, gate.ok_or(Errno::BADF)?, ends))
    }

    fn child(&self, shape: Shape) -> Result<(Child<'_>, Ends), Errno> {
        let (waits, opener) = pipe()?;
        let (failure_end, failure) = pipe()?;
        let (streams, ends) = match (shape.terminal, &self.streams) {
            (Some(size), _) => terminal(size, failure_end)?,
            (None, Some(streams)) => given(streams, failure_end)?,
            (None, None) => pipes(shape.stdin, failure_end)?,
        };
        let Streams { stdin, stdout, stderr } = streams;
        let child = Child {
            session: &self.keep.session,
            notify: self.notify.name(),
            guards: &self.guards,
            umask: self.umask,
            shim: rustix::process::getpid(),
            directory: self.locked_directory(),
            has_terminal: shape.terminal.is_some(),
            gate: Gate { opener: Some(opener), waits },
            failure,
            stdin,
            stdout,
            stderr,
        };
        Ok((child, ends))
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

fn end(forked: &Forked) {
    let _ = rustix::process::pidfd_send_signal(&forked.pidfd, Signal::KILL);
    while let Err(Errno::INTR) = rustix::process::waitpid(Some(forked.pid), WaitOptions::empty()) {}
}

fn pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
}
