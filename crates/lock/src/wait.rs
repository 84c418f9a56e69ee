//! Blocks in flock(2) until the kernel grants, a deadline passes or somebody cancels. Nothing polls.
//!
//! A wait that can end early blocks in a small thread, which is ended by a signal. Where a program has taken
//! that signal for itself, the thread is left behind: it closes what it gets as soon as it gets it.

use crate::cancel::Cancel;
use crate::directory::Mode;
use crate::held;
use crate::raw;
use pinfold_kernel::fault;
use pinfold_kernel::sys;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::cell::Cell;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A child that is being spawned holds a copy until its exec; this is long enough for any exec.
const SPAWNING_SIBLING: Duration = Duration::from_millis(20);

/// When the caller wants to have an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    /// As soon as no spawning sibling can be the reason for a refusal.
    Spawning,
    /// Then, and not before that either.
    SpawningAnd(Instant),
    At(Instant),
    Never,
}

/// How long an acquire may wait. Its clock starts when it is first asked, so that an undisturbed acquire does
/// not ask the time.
#[derive(Debug)]
pub(crate) struct Patience<'a> {
    limit: Limit,
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

impl<'a> Patience<'a> {
    pub(crate) fn new(limit: Limit, cancel: Option<&'a Cancel>) -> Self {
        Self { limit, began: Cell::new(None), cancel }
    }

    fn began(&self) -> Instant {
        let began = self.began.get().unwrap_or_else(Instant::now);
        self.began.set(Some(began));
        began
    }

    /// How long it has waited.
    pub(crate) fn waited(&self) -> Duration {
        self.began().elapsed()
    }

    fn until(&self) -> Option<Instant> {
        let spawning = || self.began() + SPAWNING_SIBLING;
        match self.limit {
            Limit::Spawning => Some(spawning()),
            Limit::SpawningAnd(deadline) => Some(deadline.max(spawning())),
            Limit::At(deadline) => Some(deadline),
            Limit::Never => None,
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

/// Waits for the flock on `file`.
pub(crate) fn lock(file: &Arc<OwnedFd>, mode: Mode, patience: &Patience<'_>) -> Result<Waited, Errno> {
    if patience.is_cancelled() {
        return Ok(Waited::Cancelled);
    }
    // On a busy machine the waiting thread may not run before the time is up: a free file must not be refused.
    match sys::flock(file, held::without_waiting(mode)) {
        Err(Errno::WOULDBLOCK) => {}
        other => return other.map(|()| Waited::Done),
    }
    let mode = held::waiting(mode);
    if patience.until().is_none() && patience.cancel.is_none() {
        return sys::flock(file, mode).map(|()| Waited::Done);
    }
    Waiter::start(file.clone(), mode)?.finish(patience)
}

struct Waiter {
    thread: JoinHandle<Result<Waited, Errno>>,
    stop: Arc<AtomicBool>,
    done: Arc<OwnedFd>,
}

/// The waiting thread makes system calls only; 64 KiB is what musl and glibc accept everywhere.
const STACK: usize = 64 * 1024;
/// How long an interrupt is given before it is sent again: it may have come just before the system call.
const RESEND: Duration = Duration::from_millis(1);
/// A thread that does not answer this many interrupts has its signal blocked by the program.
const RESENDS: usize = 50;

impl Waiter {
    fn start(file: Arc<OwnedFd>, mode: FlockOperation) -> Result<Self, Errno> {
        let stop = Arc::new(AtomicBool::new(false));
        let done = Arc::new(sys::event()?);
        let plan = fault::inherit();
        let (stopped, finished) = (stop.clone(), done.clone());
        let thread =
            std::thread::Builder::new().name("pinfold-wait".into()).stack_size(STACK).spawn(move || {
                plan.adopt();
                raw::accept_wake();
                let end = block(&file, mode, &stopped);
                // Dropped before the end is told, so that nobody counts this thread's copy.
                drop(file);
                sys::raise(&*finished);
                end
            });
        let thread =
            thread.map_err(|error| error.raw_os_error().map_or(Errno::AGAIN, Errno::from_raw_os_error))?;
        Ok(Self { thread, stop, done })
    }

    fn finish(self, patience: &Patience<'_>) -> Result<Waited, Errno> {
        let waited = patience.wait_for(&[&*self.done]);
        match waited {
            Ok(Waited::Done) => self.join(),
            Ok(early @ (Waited::TimeUp | Waited::Cancelled)) => match (self.interrupt(), early) {
                // It came at the last moment: a late grant is a grant, a cancelled one is not.
                (Ok(Waited::Done), Waited::TimeUp) => Ok(Waited::Done),
                (_, early) => Ok(early),
            },
            Err(errno) => {
                let _ = self.interrupt();
                Err(errno)
            }
        }
    }

    fn interrupt(self) -> Result<Waited, Errno> {
        self.stop.store(true, Ordering::SeqCst);
        if raw::interruptible() {
            for _ in 0..RESENDS {
                raw::interrupt(&self.thread);
                let soon = Patience::new(Limit::At(Instant::now() + RESEND), None);
                if soon.wait_for(&[&*self.done]) == Ok(Waited::Done) {
                    return self.join();
                }
            }
        }
        // Left behind: it drops its descriptor when the kernel answers.
        Ok(Waited::TimeUp)
    }

    fn join(self) -> Result<Waited, Errno> {
        self.thread.join().unwrap_or(Err(Errno::IO))
    }
}

fn block(file: &OwnedFd, mode: FlockOperation, stop: &AtomicBool) -> Result<Waited, Errno> {
    loop {
        if stop.load(Ordering::SeqCst) {
            return Ok(Waited::TimeUp);
        }
        match sys::flock_once(file, mode) {
            Ok(()) => return Ok(Waited::Done),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}
