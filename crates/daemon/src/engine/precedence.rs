//! When the loop goes ahead of the agents that it serves: while they keep it from running.
//!
//! Where a thousand agents talk at once, the one thread that hears them all must not wait for each of them. It
//! is not always ahead: a loop that hears every line before the agent can say the next one slows the agent.

use pinfold_kernel::priority;
use pinfold_kernel::proc::schedule::Schedule;
use std::time::{Duration, Instant};
use tracing::info;

/// How often the loop checks whether it is kept from running.
const CHECK: Duration = Duration::from_secs(1);
/// A loop that has no processor for more than this part of the time goes ahead.
const MUCH: f64 = 0.2;
/// A loop that is ahead and has no processor for less than this part of the time may go back.
const LITTLE: f64 = 0.05;
/// How long it stays ahead at least: being ahead is the reason that it does not wait.
const STAY: Duration = Duration::from_secs(30);

/// Whether the loop is ahead, and what that depends on.
pub(super) struct Precedence {
    /// How long it had waited at the last check, in nanoseconds; `None` if its priority is not ours to change.
    waited: Option<u64>,
    checked: Instant,
    /// Since when it is ahead.
    ahead: Option<Instant>,
}

impl Precedence {
    /// For the thread that calls it. A priority that somebody chose for the daemon is kept.
    pub(super) fn of_this_thread() -> Self {
        let waited = if priority::is_chosen() { None } else { waited() };
        Self { waited, checked: Instant::now(), ahead: None }
    }

    /// Goes ahead, or back, by how long the loop waited for a processor since the last check. Nearly free if that
    /// was less than a second ago.
    pub(super) fn check(&mut self) {
        let (Some(before), now) = (self.waited, Instant::now()) else { return };
        let time = now - self.checked;
        if time < CHECK {
            return;
        }
        (self.waited, self.checked) = (waited(), now);
        let lately = Duration::from_nanos(self.waited.unwrap_or(before).saturating_sub(before));
        let part = lately.div_duration_f64(time);
        match (self.ahead, is_wanted(self.ahead.map(|since| now - since), part)) {
            (None, true) => self.go_ahead(now, part),
            (Some(_), false) => self.go_back(),
            (None, false) | (Some(_), true) => {}
        }
    }

    fn go_ahead(&mut self, now: Instant, part: f64) {
        if priority::go_ahead() {
            info!("goes ahead of its agents: it had no processor for {:.0} % of the time", part * 100.0);
            self.ahead = Some(now);
        } else {
            self.waited = None;
        }
    }

    fn go_back(&mut self) {
        priority::go_back();
        info!("no longer goes ahead of its agents");
        self.ahead = None;
    }
}

fn waited() -> Option<u64> {
    Schedule::of_this_thread().map(|schedule| schedule.waited)
}

/// Whether a loop should be ahead that had no processor for this part of the time, and has been ahead for so
/// long.
fn is_wanted(ahead: Option<Duration>, part: f64) -> bool {
    ahead.map_or(part > MUCH, |ahead| part > LITTLE || ahead < STAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_waits_much_goes_ahead_and_one_that_then_waits_little_goes_back_after_a_while() {
        let (just, long) = (Some(Duration::from_secs(1)), Some(STAY));
        for (ahead, part, wanted) in [
            (None, 0.0, false),
            (None, 0.2, false),
            (None, 0.21, true),
            (just, 0.0, true),
            (long, 0.06, true),
            (long, 0.05, false),
        ] {
            assert_eq!(is_wanted(ahead, part), wanted, "{ahead:?} {part}");
        }
    }
}
