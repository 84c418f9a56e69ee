//! One timer for all sessions, on the clock that the core measures by: it counts the time a machine slept.

use pinfold_core::Boot;
use pinfold_store::SessionId;
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::unix::AsyncFd;

/// The deadlines of all sessions, and the timer that fires at the first.
pub(crate) struct Timer {
    fd: AsyncFd<OwnedFd>,
    due: BTreeSet<(Boot, SessionId)>,
    of: BTreeMap<SessionId, Boot>,
}

impl Timer {
    pub(crate) fn new() -> io::Result<Timer> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let fd = rustix::time::timerfd_create(TimerfdClockId::Boottime, flags)?;
        Ok(Timer { fd: crate::ports::async_fd::watch(fd)?, due: BTreeSet::new(), of: BTreeMap::new() })
    }

    /// Sets or clears the deadline of a session.
    pub(crate) fn set(&mut self, session: SessionId, at: Option<Boot>) {
        let first = self.due.first().copied();
        if let Some(old) = self.of.remove(&session) {
            self.due.remove(&(old, session));
        }
        if let Some(at) = at {
            self.of.insert(session, at);
            self.due.insert((at, session));
        }
        if self.due.first().copied() != first {
            self.arm();
        }
    }

    /// Takes the sessions whose deadline has passed.
    pub(crate) fn take_due(&mut self, now: Boot) -> Vec<SessionId> {
        let mut taken = Vec::new();
        while let Some((at, session)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.due.remove(&(at, session));
            self.of.remove(&session);
            taken.push(session);
        }
        self.arm();
        taken
    }

    /// Waits until the first deadline; for ever when there is none.
    pub(crate) async fn fired(&self) -> io::Result<()> {
        let mut guard = self.fd.readable().await?;
        let mut count = [0_u8; 8];
        match rustix::io::read(&self.fd, &mut count) {
            Ok(_) | Err(Errno::AGAIN) => guard.clear_ready(),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn arm(&self) {
        // Zero would disarm it: a deadline in the past fires a nanosecond after boot, that is at once.
        let value = self.due.first().map_or(Timespec { tv_sec: 0, tv_nsec: 0 }, |(at, _)| Timespec {
            tv_sec: i64::try_from(at.0 / 1000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(at.0 % 1000 * 1_000_000).unwrap_or(0) + 1,
        });
        let spec = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        // Only a bad descriptor or a bad time can fail here, and both are made by us.
        _ = rustix::time::timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &spec);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use pinfold_store::Ulid;
    use std::time::Duration;

    fn session(n: u64) -> SessionId {
        SessionId(Ulid::new(n, 0))
    }

    #[tokio::test]
    async fn the_earliest_deadline_fires_and_only_what_is_due_is_taken() {
        let mut timer = Timer::new().unwrap();
        let now = clock::boot();
        timer.set(session(1), Some(now + Duration::from_secs(3600)));
        timer.set(session(2), Some(now + Duration::from_millis(20)));
        timer.set(session(3), Some(now));
        timer.set(session(3), None);
        timer.fired().await.unwrap();
        assert_eq!(timer.take_due(clock::boot()), [session(2)]);
        timer.set(session(1), Some(now));
        timer.fired().await.unwrap();
        assert_eq!(timer.take_due(clock::boot()), [session(1)]);
    }
}
