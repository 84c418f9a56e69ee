//! How long an acquirer waits, and what ends the wait early. The clock starts when it is first asked.

use crate::cancel::Cancel;
use pinfold_kernel::sys;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::cell::Cell;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// A child that is being spawned holds a copy until its exec; this is long enough for any exec.
const SPAWNING_SIBLING: Duration = Duration::from_millis(20);

/// When the caller wants an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WaitLimit {
    /// As soon as a refusal can no longer be due to a spawning sibling.
    Spawning,
    /// At that moment, but not before `Spawning` would answer either.
    SpawningAnd(Instant),
    At(Instant),
    Never,
}

/// How long an acquire may wait. Its clock starts when it is first asked, so that an acquire that need not
/// wait does not read the time.
#[derive(Debug)]
pub(crate) struct AcquirePatience<'a> {
    limit: WaitLimit,
    began: Cell<Option<Instant>>,
    pub(crate) cancel: Option<&'a Cancel>,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    Done,
    TimeUp,
    Cancelled,
}

impl<'a> AcquirePatience<'a> {
    pub(crate) fn new(limit: WaitLimit, cancel: Option<&'a Cancel>) -> Self {
        Self { limit, began: Cell::new(None), cancel }
    }

    fn began(&self) -> Instant {
        let began = self.began.get().unwrap_or_else(Instant::now);
        self.began.set(Some(began));
        began
    }

    /// Returns how long it has waited.
    pub(crate) fn waited(&self) -> Duration {
        self.began().elapsed()
    }

    pub(crate) fn until(&self) -> Option<Instant> {
        let spawning = || self.began() + SPAWNING_SIBLING;
        match self.limit {
            WaitLimit::Spawning => Some(spawning()),
            WaitLimit::SpawningAnd(deadline) => Some(deadline.max(spawning())),
            WaitLimit::At(deadline) => Some(deadline),
            WaitLimit::Never => None,
        }
    }

    pub(crate) fn remaining(&self) -> Option<Duration> {
        self.until().map(|until| until.saturating_duration_since(Instant::now()))
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(Cancel::is_cancelled)
    }

    /// Waits until one of `events` is readable.
    pub(crate) fn wait_for<F: AsFd>(&self, events: &[F]) -> Result<Waited, Errno> {
        loop {
            if self.is_cancelled() {
                return Ok(Waited::Cancelled);
            }
            let mut fds: Vec<PollFd<'_>> = events.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
            let cancel = self.cancel.map(Cancel::event);
            fds.extend(cancel.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
            let remaining = self.remaining();
            match sys::poll(&mut fds, remaining) {
                Ok(0) if remaining.is_some() => return Ok(Waited::TimeUp),
                Ok(_) if self.is_cancelled() => return Ok(Waited::Cancelled),
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(Waited::Done),
                Err(errno) => return Err(errno),
            }
        }
    }
}
