//! Usage limits: each change is reported once. A failing turn says that a limit is reached; when it resets
//! was said before.

use super::wire::{RateLimits, Window};
use crate::observation::{LimitReach, LimitStatus};
use pinfold_core::Wall;
use serde::{Deserialize, Serialize};

/// From here on, Codex's own terminal program always warns.
const NEAR: f64 = 90.0;
/// The limit is used up.
const FULL: f64 = 100.0;

/// The windows as last reported, and what we passed on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct KnownLimits {
    fullest: Option<Known>,
    told: Option<LimitReach>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Known {
    used: f64,
    minutes: Option<u64>,
    until: Option<i64>,
}

impl KnownLimits {
    /// Codex reports how much of its limits is used. An update without windows says nothing.
    pub(crate) fn heard(&mut self, limits: &RateLimits) -> Option<LimitStatus> {
        let windows = [&limits.primary, &limits.secondary].into_iter().flatten().filter_map(known);
        let fullest = windows.max_by(|one, other| one.used.total_cmp(&other.used))?;
        let reach = if fullest.used >= NEAR { LimitReach::Near } else { LimitReach::Off };
        self.fullest = Some(fullest);
        // Only a turn shows that the limit is reached, or no longer is.
        if self.told == Some(LimitReach::Reached) {
            return None;
        }
        let quiet = self.told.is_none() && reach == LimitReach::Off;
        if quiet || self.told == Some(reach) {
            return None;
        }
        Some(self.tell(reach))
    }

    /// A turn failed because of a limit.
    pub(crate) fn hit(&mut self) -> Option<LimitStatus> {
        (self.told != Some(LimitReach::Reached)).then(|| self.tell(LimitReach::Reached))
    }

    /// A turn went well, so the next refused one is reported again.
    pub(crate) fn passed(&mut self) {
        self.told.take_if(|told| *told == LimitReach::Reached);
    }

    fn tell(&mut self, reach: LimitReach) -> LimitStatus {
        self.told = Some(reach);
        // A window that is not full is not the limit that was reached.
        let known = self.fullest.as_ref().filter(|known| reach != LimitReach::Reached || known.used >= FULL);
        LimitStatus {
            reach,
            until: known.and_then(|known| known.until).map(|seconds| Wall(seconds.saturating_mul(1000))),
            window: known.and_then(|known| known.minutes).map(word),
            used: known.map(|known| known.used / FULL),
        }
    }
}

fn known(window: &Window) -> Option<Known> {
    let used = window.used_percent?;
    Some(Known { used, minutes: window.window_duration_mins, until: window.resets_at })
}

/// Names a window by its length; the known ones are 5 hours and a week.
fn word(minutes: u64) -> String {
    match minutes {
        300 => "five_hour".to_owned(),
        10_080 => "weekly".to_owned(),
        minutes => format!("{minutes}_minutes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(used: [Option<f64>; 2]) -> RateLimits {
        let window = |used: Option<f64>, minutes, resets_at| {
            let window_duration_mins = Some(minutes);
            used.map(|_| Window { used_percent: used, window_duration_mins, resets_at: Some(resets_at) })
        };
        RateLimits { primary: window(used[0], 300, 7), secondary: window(used[1], 10_080, 9) }
    }

    #[test]
    fn each_change_is_told_once_and_of_the_fullest_window() {
        let mut all = KnownLimits::default();
        assert_eq!(all.heard(&limits([None, None])), None);
        assert_eq!(all.heard(&limits([Some(10.0), Some(20.0)])), None, "far from any");
        let near = all.heard(&limits([Some(91.0), Some(95.0)])).unwrap();
        assert_eq!(
            (near.reach, near.until, near.window.as_deref()),
            (LimitReach::Near, Some(Wall(9000)), Some("weekly"))
        );
        assert_eq!(all.heard(&limits([Some(92.0), None])), None, "told");
        let off = all.heard(&limits([Some(3.0), Some(50.0)])).unwrap();
        assert_eq!((off.reach, off.used), (LimitReach::Off, Some(0.5)));
    }

    #[test]
    fn a_limit_that_a_turn_met_has_the_time_of_the_window_that_is_full() {
        let mut all = KnownLimits::default();
        assert_eq!(all.heard(&limits([Some(100.0), Some(20.0)])).unwrap().reach, LimitReach::Near);
        let hit = all.hit().unwrap();
        assert_eq!(
            (hit.reach, hit.until, hit.window.as_deref()),
            (LimitReach::Reached, Some(Wall(7000)), Some("five_hour"))
        );
        assert_eq!((all.hit(), all.heard(&limits([Some(1.0), None]))), (None, None));
        all.passed();
        let unknown = all.hit().unwrap();
        assert_eq!((unknown.reach, unknown.until), (LimitReach::Reached, None), "no window is full");
    }
}
