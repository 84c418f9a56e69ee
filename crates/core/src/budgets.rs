//! What a session remembers about how its runs ended; the restart rules have no other memory.

use crate::time::{Boot, Moment};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The counters of one session; a person's `start` or `restart` resets them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Budgets {
    /// Crashes in the current streak.
    pub crashes: u32,
    /// Whether the soft limit was already warned about in this streak.
    pub crash_warned: bool,
    /// Clean exits, the newest last.
    pub clean: RecentExits,
    /// Waits in the current episode of too many clean exits; 0 outside an episode.
    pub clean_waits: u32,
    /// Drains, the newest last.
    pub drains: RecentExits,
    /// Whether the drain loop was already warned about in this episode.
    pub drain_warned: bool,
    /// Contended exits in a row.
    pub contended: u32,
    /// Starts in a row that the system refused for the time being.
    #[serde(default)]
    pub refused: u32,
    /// Whether a message has already ended a wait of this streak. Later messages wait like everything else: a
    /// chatty sender must not turn a crash loop into a tight loop.
    #[serde(default)]
    pub hurried: bool,
    /// Whether a message has already had the one try of the failed session, or of the one that is blocked by a
    /// lock of the vendor's.
    #[serde(default)]
    pub tried: bool,
    /// The wait that the last run calls for, even if the session was not needed then.
    #[serde(default)]
    pub pause: Option<Pause>,
}

/// A wait before the next run for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// When it is over.
    pub until: Moment,
    /// What the last run called for.
    pub after: PauseAfter,
}

/// What calls for a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseAfter {
    /// A crash.
    Crash,
    /// The kernel killed it for memory.
    OutOfMemory,
    /// Another process held what it needed.
    Contended,
    /// The same, so often that it is blocked.
    Blocked,
}

impl Budgets {
    /// Forgets times measured by the clock of another boot; the streak stays.
    pub fn forget_clock(&mut self) {
        self.clean = RecentExits::default();
        self.drains = RecentExits::default();
        self.pause = None;
    }
}

/// The moments of the latest exits of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecentExits(Vec<Boot>);

impl RecentExits {
    /// Notes an exit at `now`, drops those older than `span`, and returns how many are left.
    ///
    /// Never keeps more than `limit + 1` entries: that is enough to see that the limit is exceeded.
    pub fn note(&mut self, now: Boot, span: Duration, limit: u32) -> usize {
        self.0.retain(|at| now.since(*at) <= span);
        let room = usize::try_from(limit).unwrap_or(usize::MAX);
        if self.0.len() > room {
            self.0.remove(0);
        }
        self.0.push(now);
        self.0.len()
    }

    /// Forgets all exits.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Duration = Duration::from_millis(60);

    #[test]
    fn a_window_slides_and_its_edge_still_counts() {
        let mut window = RecentExits::default();
        assert_eq!(window.note(Boot(0), SPAN, 10), 1);
        assert_eq!(window.note(Boot(60), SPAN, 10), 2);
        assert_eq!(window.note(Boot(61), SPAN, 10), 2);
        assert_eq!(window.note(Boot(200), SPAN, 10), 1);
    }

    #[test]
    fn a_window_keeps_one_more_than_its_limit_and_no_more() {
        let mut window = RecentExits::default();
        let counts: Vec<usize> = (0..6).map(|at| window.note(Boot(at), SPAN, 2)).collect();
        assert_eq!(counts, [1, 2, 3, 3, 3, 3]);
        window.clear();
        assert_eq!(window.note(Boot(7), SPAN, 2), 1);
    }
}
