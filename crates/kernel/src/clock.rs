//! The clocks: the wall's, which people set, and the one that counts from boot, also while the machine sleeps.

use rustix::event::Timespec;
use rustix::io::Errno;
use rustix::time::{ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, clock_gettime};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time on the wall since 1970.
#[must_use]
pub fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The time on the wall in milliseconds since 1970.
#[must_use]
pub fn wall_ms() -> u64 {
    u64::try_from(wall().as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds since the machine was started, time asleep included.
#[must_use]
pub fn boot_ms() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000
}

/// A span of time as the kernel takes it; one that is too long is as long as it can be.
#[must_use]
pub fn timespec(span: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(span.subsec_nanos()),
    }
}

/// A descriptor that is readable once a moment of the boot clock has come: only this clock goes on while the machine sleeps.
#[derive(Debug)]
pub struct Timer(OwnedFd);

impl Timer {
    /// Makes one that is not set.
    ///
    /// # Errors
    /// There is no descriptor or memory left.
    pub fn new() -> Result<Self, Errno> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        rustix::time::timerfd_create(TimerfdClockId::Boottime, flags).map(Self)
    }

    /// Sets it to so many milliseconds since boot; a moment that has passed is now, and none disarms it.
    ///
    /// # Errors
    /// The kernel does not know such a moment.
    pub fn set(&self, boot_ms: Option<u64>) -> Result<(), Errno> {
        set_timer(&self.0, boot_ms)
    }
}

/// As [`Timer::set`], for a timer that somebody else keeps as a descriptor.
///
/// # Errors
/// The kernel does not know such a moment.
pub fn set_timer(timer: impl AsFd, boot_ms: Option<u64>) -> Result<(), Errno> {
    let it_value = boot_ms.map_or(Timespec { tv_sec: 0, tv_nsec: 0 }, |at| Timespec {
        tv_sec: i64::try_from(at / 1000).unwrap_or(i64::MAX),
        // All zeroes would disarm it.
        tv_nsec: i64::try_from(at % 1000 * 1_000_000).unwrap_or(0) + 1,
    });
    let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
    rustix::time::timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once).map(drop)
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<Timer> for OwnedFd {
    fn from(timer: Timer) -> Self {
        timer.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    #[test]
    fn a_timer_is_readable_from_its_moment_on() {
        let timer = Timer::new().unwrap();
        let readable = |wait: Duration| {
            poll(&mut [PollFd::new(&timer, PollFlags::IN)], Some(&timespec(wait))).unwrap() == 1
        };
        assert!(!readable(Duration::ZERO), "it is not set");
        timer.set(Some(0)).unwrap();
        assert!(readable(Duration::from_secs(20)), "the moment has passed");
        timer.set(Some(boot_ms() + 3_600_000)).unwrap();
        assert!(!readable(Duration::ZERO), "it is an hour away");
        timer.set(Some(boot_ms() + 1)).unwrap();
        assert!(readable(Duration::from_secs(20)));
        timer.set(None).unwrap();
        assert!(!readable(Duration::ZERO), "it was disarmed");
    }
}
