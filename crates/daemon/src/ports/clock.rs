//! Time for the loop: clocks to measure by, when to wake up, and reminders.

use super::Then;
use pinfold_core::{Boot, Jitter, Now, Wall};
use pinfold_kernel::clock::{BootTimer, set_timer};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::unix::AsyncFd;

/// The clocks, the randomness and the alarm of a loop.
pub(crate) trait Clock {
    /// The time on people's clocks.
    fn wall(&self) -> Wall;

    /// The clock that the core measures by: it includes the time the machine slept.
    fn boot(&self) -> Boot;

    /// The clock for graces: it stands still while the machine sleeps, as do the processes that have the
    /// grace.
    fn awake(&self) -> Instant;

    /// Randomness that spreads restarts.
    fn jitter(&mut self) -> Jitter;

    /// The random part of an id.
    fn dice(&mut self) -> u128;

    /// Wakes the loop at this moment; replaces an earlier one.
    fn wake_at(&self, at: Option<Boot>);

    /// Calls back at a moment; once, and never before it.
    fn remind(&self, at: Instant, then: Then<()>);

    /// The present, for the core.
    fn now(&mut self) -> Now {
        Now { wall: self.wall(), boot: self.boot(), jitter: self.jitter() }
    }
}

/// The machine's own clocks.
pub(crate) struct MachineClock {
    jitter: crate::clock::NowSource,
    alarm: Arc<Alarm>,
}

impl MachineClock {
    pub(crate) fn new(alarm: Arc<Alarm>) -> MachineClock {
        MachineClock { jitter: crate::clock::NowSource::new(), alarm }
    }
}

impl Clock for MachineClock {
    fn wall(&self) -> Wall {
        crate::clock::wall()
    }

    fn boot(&self) -> Boot {
        crate::clock::boot()
    }

    fn awake(&self) -> Instant {
        Instant::now()
    }

    fn jitter(&mut self) -> Jitter {
        self.jitter.now().jitter
    }

    fn dice(&mut self) -> u128 {
        crate::clock::dice()
    }

    fn wake_at(&self, at: Option<Boot>) {
        self.alarm.set(at);
    }

    fn remind(&self, at: Instant, then: Then<()>) {
        tokio::spawn(async move {
            tokio::time::sleep_until(at.into()).await;
            then(());
        });
    }
}

/// One timer for a whole loop, on the clock that includes the time the machine slept.
pub(crate) struct Alarm(AsyncFd<OwnedFd>);

impl Alarm {
    pub(crate) fn new() -> io::Result<Alarm> {
        Ok(Alarm(super::async_fd::watch(BootTimer::new()?.into())?))
    }

    /// Waits until it rings; forever if it is not set.
    pub(crate) async fn rang(&self) -> io::Result<()> {
        let mut guard = self.0.readable().await?;
        let mut count = [0_u8; 8];
        match rustix::io::read(&self.0, &mut count) {
            Ok(_) | Err(Errno::AGAIN) => guard.clear_ready(),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn set(&self, at: Option<Boot>) {
        // Only a bad descriptor or a bad time can fail here, and we make both.
        _ = set_timer(&self.0, at.map(|at| at.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn an_alarm_rings_at_its_moment_and_at_once_when_that_has_passed() {
        let alarm = Alarm::new().unwrap();
        let now = crate::clock::boot();
        alarm.set(Some(now + Duration::from_millis(20)));
        alarm.rang().await.unwrap();
        assert!(crate::clock::boot() >= now + Duration::from_millis(20));
        alarm.set(Some(now));
        alarm.rang().await.unwrap();
    }
}
