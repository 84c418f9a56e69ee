//! A child that waits at its gate: forked, tied to the shim, its streams in place, and told at the gate what
//! to become.
//!
//! Nothing of the agent has run yet, and nothing will if the shim dies. So one can be forked ahead: when a
//! run that is to be repeated ends, its successor waits at the gate while the end is being stored, and the
//! order to start finds it there.

use super::child;
use super::pty::Pty;
use super::raw::Forked;
use super::shape::ChildShape;
use crate::groups::group::Group;
use crate::protocol::start::{Start, Stdin};
use pinfold_lock::Identity;
use pinfold_terminal::Size;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Signal, WaitOptions};
use std::os::fd::OwnedFd;
use std::time::Instant;

/// A child that waits at its gate.
#[derive(Debug)]
pub(super) struct WaitingChild {
    pub(super) forked: Forked,
    pub(super) agent: Identity,
    pub(super) ends: ShimSide,
    pub(super) group: Option<Group>,
    pub(super) gate: OwnedFd,
    pub(super) shape: ChildShape,
}

/// A child that waits for an order that has not come yet.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) waiting: WaitingChild,
    pub(super) until: Instant,
}

/// The shim's ends of the pipes.
#[derive(Debug)]
pub(super) struct ShimSide {
    pub(super) failure: OwnedFd,
    pub(super) stdin: Option<OwnedFd>,
    /// `None` if the caller gave streams.
    pub(super) stdout: Option<OwnedFd>,
    /// `None` for a terminal, which has no separate one.
    pub(super) stderr: Option<OwnedFd>,
    pub(super) pty: Option<Box<Pty>>,
}

/// The agent's ends of the streams.
pub(super) struct AgentSide {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

impl WaitingChild {
    /// Tells the child what to become, and under which fence.
    pub(super) fn open_gate(&self, start: &Start, fence: u64) -> Result<(), Errno> {
        open_gate(&self.gate, start, fence)
    }

    /// Ends and reaps a child that is not let go.
    pub(super) fn discard(self) {
        end(&self.forked);
    }
}

/// Tells a child at its gate what to become, and under which fence.
pub(super) fn open_gate(gate: &OwnedFd, start: &Start, fence: u64) -> Result<(), Errno> {
    let mut order = fence.to_le_bytes().to_vec();
    start.encode(&mut order);
    let mut rest = order.as_slice();
    while !rest.is_empty() {
        match rustix::io::write(gate, rest) {
            Ok(count) => rest = &rest[count..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

pub(super) fn pipes(stdin: Stdin, failure: OwnedFd) -> Result<(AgentSide, ShimSide), Errno> {
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
    let ends = ShimSide { failure, stdin: stdin_end, stdout: stdout_end, stderr: stderr_end, pty: None };
    Ok((AgentSide { stdin, stdout, stderr }, ends))
}

/// Uses the streams of the process that started the shim.
pub(super) fn given(streams: &[OwnedFd; 3], failure: OwnedFd) -> Result<(AgentSide, ShimSide), Errno> {
    let copy = |stream: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(stream, 3);
    let [stdin, stdout, stderr] = streams;
    let streams = AgentSide { stdin: copy(stdin)?, stdout: copy(stdout)?, stderr: copy(stderr)? };
    Ok((streams, ShimSide { failure, stdin: None, stdout: None, stderr: None, pty: None }))
}

pub(super) fn terminal(size: Size, failure: OwnedFd) -> Result<(AgentSide, ShimSide), Errno> {
    let (pty, theirs) = Pty::open(size)?;
    let again = |descriptor| rustix::io::fcntl_dupfd_cloexec(descriptor, 3);
    let streams = AgentSide { stdout: again(&theirs)?, stderr: again(&theirs)?, stdin: theirs };
    let (stdin, stdout) = (Some(pty.master()?), Some(pty.master()?));
    Ok((streams, ShimSide { failure, stdin, stdout, stderr: None, pty: Some(Box::new(pty)) }))
}

/// Waits until the child is at its gate; `CHILD` if it ended before.
pub(super) fn await_child(failure: &OwnedFd) -> Result<(), Errno> {
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

pub(super) fn end(forked: &Forked) {
    let _ = rustix::process::pidfd_send_signal(&forked.pidfd, Signal::KILL);
    while let Err(Errno::INTR) = rustix::process::waitpid(Some(forked.pid), WaitOptions::empty()) {}
}

pub(super) fn pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
}
