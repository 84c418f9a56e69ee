//! The clocks: the wall clock, which people can set, and the boot clock, which also counts while the machine sleeps.

use rustix::event::Timespec;
use rustix::io::Errno;
use rustix::time::{ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, clock_gettime};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the wall-clock time since 1970.
#[must_use]
pub fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns the wall-clock time in milliseconds since 1970.
#[must_use]
pub fn wall_ms() -> u64 {
    u64::try_from(wall().as_millis()).unwrap_or(u64::MAX)
}

/// Returns the milliseconds since boot, including time asleep.
#[must_use]
pub fn boot_ms() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000
}

/// Converts a span of time for the kernel; one that is too long becomes the longest there is.
#[must_use]
pub fn timespec(span: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(span.subsec_nanos()),
    }
}

/// A descriptor that becomes readable at a moment of the boot clock: only that clock goes on while the machine sleeps.
#[derive(Debug)]
pub struct BootTimer(OwnedFd);

impl BootTimer {
    /// Creates a timer that is not set.
    ///
    /// # Errors
    /// No descriptor or memory is left.
    pub fn new() -> Result<Self, Errno> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        rustix::time::timerfd_create(TimerfdClockId::Boottime, flags).map(Self)
    }

    /// Sets it to a number of milliseconds since boot. A moment in the past is due now; `None` disarms it.
    ///
    /// # Errors
    /// The kernel does not accept the moment.
    pub fn set(&self, boot_ms: Option<u64>) -> Result<(), Errno> {
        set_timer(&self.0, boot_ms)
    }
}

/// Does the same as [`BootTimer::set`] for a timer that is known only by its descriptor.
///
/// # Errors
/// The kernel does not accept the moment.
pub fn set_timer(timer: impl AsFd, boot_ms: Option<u64>) -> Result<(), Errno> {
    let it_value = boot_ms.map_or(Timespec { tv_sec: 0, tv_nsec: 0 }, |at| Timespec {
        tv_sec: i64::try_from(at / 1000).unwrap_or(i64::MAX),
        // All zeroes would disarm it.
        tv_nsec: i64::try_from(at % 1000 * 1_000_000).unwrap_or(0) + 1,
    });
    let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
    rustix::time::timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once).map(drop)
}

impl AsFd for BootTimer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<BootTimer> for OwnedFd {
    fn from(timer: BootTimer) -> Self {
        timer.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    #[test]
    fn a_timer_is_readable_from_its_moment_on() {
        let timer = BootTimer::new().unwrap();
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
