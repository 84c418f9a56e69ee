//! Usage limits: each change is reported once.

use super::wire::RateLimit;
use crate::observation::{LimitReach, LimitStatus};
use pinfold_core::Wall;
use serde::{Deserialize, Serialize};

/// What was last reported.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct KnownLimits(Option<Told>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Told {
    reach: LimitReach,
    until: Option<i64>,
    window: Option<String>,
    used: Option<f64>,
}

impl KnownLimits {
    /// Claude Code says how near a limit is.
    pub(crate) fn heard(&mut self, info: &RateLimit) -> Option<LimitStatus> {
        let reach = reach(info)?;
        let until = info.resets_at.map(|seconds| seconds.saturating_mul(1000));
        let window = info.rate_limit_type.clone().filter(|window| window.len() <= 100);
        let of_window = || info.unified_windows.as_ref()?.get(window.as_ref()?)?.utilization;
        let used = info.utilization.or_else(of_window);
        self.tell(Told { reach, until, window, used })
    }

    /// A turn failed because of a limit.
    pub(crate) fn hit(&mut self) -> Option<LimitStatus> {
        let known = self.0.as_ref().is_some_and(|told| told.reach == LimitReach::Reached);
        let hit = Told { reach: LimitReach::Reached, until: None, window: None, used: None };
        if known { None } else { self.tell(hit) }
    }

    /// A turn went well, so the next refused one is reported again.
    pub(crate) fn passed(&mut self) {
        self.0.take_if(|told| told.reach == LimitReach::Reached);
    }

    fn tell(&mut self, now: Told) -> Option<LimitStatus> {
        let quiet = self.0.is_none() && now.reach == LimitReach::Off;
        if quiet || self.0.as_ref() == Some(&now) {
            return None;
        }
        self.0 = Some(now.clone());
        let Told { reach, until, window, used } = now;
        Some(LimitStatus { reach, until: until.map(Wall), window, used })
    }
}

fn reach(info: &RateLimit) -> Option<LimitReach> {
    match info.status.as_deref()? {
        // Usage over the limit is paid for.
        "rejected" if info.is_using_overage == Some(true) => Some(LimitReach::Near),
        "rejected" => Some(LimitReach::Reached),
        "allowed_warning" => Some(LimitReach::Near),
        "allowed" => Some(LimitReach::Off),
        _ => None,
    }
}
