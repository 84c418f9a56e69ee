//! Forks children that wait at their gates, for an order that has come or may come soon.

use super::child::{Child, ChildGate};
use super::gate::{AgentSide, ShimSide, Spare, WaitingChild, await_child, end, given, pipe, pipes, terminal};
use super::raw::{self, Forked};
use super::shape::ChildShape;
use super::shim::Shim;
use crate::crash;
use crate::groups::group::Group;
use pinfold_lock::process;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// An order to start at once comes within this time; a successor that waited longer is ended.
const SPARE: Duration = Duration::from_millis(250);

impl Shim {
    /// Forks a successor that waits for the order to start.
    pub(super) fn prepare(&mut self, shape: ChildShape, group: Option<Group>) {
        // Without a successor the start forks its own child, and reports what was wrong.
        let waiting = self.fork_in(shape, group).ok();
        self.spare = waiting.map(|waiting| Spare { waiting, until: Instant::now() + SPARE });
        crash::point("spare.waits");
    }

    /// Returns the waiting successor, if it has this shape.
    pub(super) fn take_spare(&mut self, shape: ChildShape) -> Option<WaitingChild> {
        let Spare { waiting, .. } = self.spare.take()?;
        if waiting.shape == shape {
            return Some(waiting);
        }
        waiting.discard();
        None
    }

    /// Ends a successor that was not needed.
    pub(super) fn drop_spare(&mut self) {
        if let Some(spare) = self.spare.take() {
            spare.waiting.discard();
        }
    }

    /// Forks a child that waits at its gate, in a group of its own.
    pub(super) fn fork(&self, shape: ChildShape) -> Result<WaitingChild, Errno> {
        self.fork_in(shape, None)
    }

    /// Forks a child that waits at its gate, in the empty group of the last run if there is one.
    fn fork_in(&self, shape: ChildShape, empty: Option<Group>) -> Result<WaitingChild, Errno> {
        let group = empty.or_else(|| Group::make(&self.keep.listen, shape.contain));
        let agent = |child: &mut Child<'_>, _: Option<&Group>| child.live();
        let (forked, gate, ends) = self.fork_into(shape, group.as_ref(), &agent)?;
        let pid = forked.pid.as_raw_nonzero().get().unsigned_abs();
        let Ok(agent) = process::identify(pid) else {
            end(&forked);
            return Err(Errno::SRCH);
        };
        if let Some(group) = &group {
            group.count_memory_of(pid);
        }
        Ok(WaitingChild { forked, agent, ends, group, gate, shape })
    }

    /// Forks a child that runs `life`, which is given the group that it was not forked into.
    pub(super) fn fork_into(
        &self,
        shape: ChildShape,
        group: Option<&Group>,
        life: &dyn Fn(&mut Child<'_>, Option<&Group>) -> i32,
    ) -> Result<(Forked, OwnedFd, ShimSide), Errno> {
        let into_group =
            |child: &mut Child<'_>| raw::fork(group.map(Group::folder), &mut || life(child, None));
        match self.fork_by(shape, into_group) {
            // Kernels before 5.7, filters that do not know clone3, and kernels that end what is forked into a
            // group: the child is moved while it waits.
            Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::OPNOTSUPP | Errno::CHILD) => {
                let waiting = self.fork_by(shape, |child| raw::plain_fork(&mut || life(child, group)))?;
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
        shape: ChildShape,
        fork: impl FnOnce(&mut Child<'_>) -> Result<Forked, Errno>,
    ) -> Result<(Forked, OwnedFd, ShimSide), Errno> {
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

    fn child(&self, shape: ChildShape) -> Result<(Child<'_>, ShimSide), Errno> {
        let (waits, opener) = pipe()?;
        let (failure_end, failure) = pipe()?;
        let (streams, ends) = match (shape.terminal, &self.streams) {
            (Some(size), _) => terminal(size, failure_end)?,
            (None, Some(streams)) => given(streams, failure_end)?,
            (None, None) => pipes(shape.stdin, failure_end)?,
        };
        let AgentSide { stdin, stdout, stderr } = streams;
        let child = Child {
            session: &self.keep.session,
            notify: Some(self.notify.name()),
            guards: &self.guards,
            umask: self.umask,
            shim: rustix::process::getpid(),
            directory: self.locked_directory(),
            has_terminal: shape.terminal.is_some(),
            gate: ChildGate { opener: Some(opener), waits },
            failure,
            stdin,
            stdout,
            stderr,
        };
        Ok((child, ends))
    }
}
