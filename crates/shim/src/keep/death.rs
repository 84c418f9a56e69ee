//! The moment at which a tree has to end, come what may.

use pinfold_core::time::Boot;
use rustix::event::Timespec;
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// A moment of the boot clock, with the grace that the tree has then.
#[derive(Debug)]
pub(super) struct Death {
    timer: OwnedFd,
    pub(super) grace: Duration,
}

impl Death {
    /// Sets the moment; one that has passed is now.
    pub(super) fn at(at: Boot, grace: Duration) -> Result<Self, Errno> {
        // Time asleep counts: only this clock goes on meanwhile.
        let timer = rustix::time::timerfd_create(
            TimerfdClockId::Boottime,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        let value = Timespec {
            tv_sec: i64::try_from(at.0 / 1000).unwrap_or(i64::MAX),
            // All zeroes would disarm it.
            tv_nsec: i64::try_from(at.0 % 1000 * 1_000_000).unwrap_or(0) + 1,
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        rustix::time::timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &once)?;
        Ok(Death { timer, grace })
    }
}

impl AsFd for Death {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
