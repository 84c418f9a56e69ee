//! Blocks in flock(2) until the kernel grants, a deadline passes or the wait is cancelled. Nothing polls.
//!
//! A wait that can end early blocks in a small thread, which is ended by a signal. If a program has taken
//! that signal for itself, the thread is abandoned: it closes whatever it gets as soon as it gets it.

use crate::patience::{AcquirePatience, WaitLimit, Waited};
use crate::raw;
use crate::take::held;
use crate::want::directory::LockMode;
use pinfold_kernel::fault;
use pinfold_kernel::sys;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Waits for the flock on `file`.
pub(crate) fn lock(
    file: &Arc<OwnedFd>,
    mode: LockMode,
    patience: &AcquirePatience<'_>,
) -> Result<Waited, Errno> {
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

/// The waiting thread only makes system calls; 64 KiB is what musl and glibc accept everywhere.
const STACK: usize = 64 * 1024;
/// How long to wait before an interrupt is sent again: it may have come just before the system call.
const RESEND: Duration = Duration::from_millis(1);
/// A thread that does not react to this many interrupts has its signal blocked by the program.
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
                // Dropped before the end is reported, so that this thread's copy no longer counts.
                drop(file);
                sys::raise(&*finished);
                end
            });
        let thread =
            thread.map_err(|error| error.raw_os_error().map_or(Errno::AGAIN, Errno::from_raw_os_error))?;
        Ok(Self { thread, stop, done })
    }

    fn finish(self, patience: &AcquirePatience<'_>) -> Result<Waited, Errno> {
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
                let soon = AcquirePatience::new(WaitLimit::At(Instant::now() + RESEND), None);
                if soon.wait_for(&[&*self.done]) == Ok(Waited::Done) {
                    return self.join();
                }
            }
        }
        // The thread is abandoned: it drops its descriptor when the kernel answers.
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
