//! How often each run is read, so that all reading together stays within a budget. Pure.

use std::time::Duration;

/// CPU time that reading may take, as a fraction of a core: half of what DESIGN allows the idle daemon, since
/// waking up for it costs about as much.
const BUDGET: f64 = 0.0005;
/// However many runs have a limit, each is read at least this often.
const LONGEST: Duration = Duration::from_secs(20);

/// One run that is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Load {
    /// How often its owner wants it read.
    pub(super) sample: Duration,
    /// What a reading of it costs.
    pub(super) cost: Duration,
    /// Whether it is close to its limit: those are stretched last.
    pub(super) near: bool,
}

impl Load {
    fn share(self) -> f64 {
        self.cost.as_secs_f64() / self.sample.as_secs_f64()
    }
}

/// By how much the intervals between readings are stretched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PaceStretch {
    near: f64,
    far: f64,
}

impl PaceStretch {
    /// Runs near their limit are read as often as wanted while the budget allows it; the others get the rest.
    pub(super) fn of(loads: impl Iterator<Item = Load>) -> PaceStretch {
        let (mut near, mut far) = (0.0, 0.0);
        for load in loads {
            *(if load.near { &mut near } else { &mut far }) += load.share();
        }
        let near_stretch = (near / BUDGET).max(1.0);
        // Runs near the limit leave at least a part of the budget: otherwise the others would never be read.
        let left = (BUDGET - near).max(BUDGET / 4.0);
        PaceStretch { near: near_stretch, far: (far / left).max(near_stretch) }
    }

    /// The time until a run is read again.
    pub(super) fn interval(self, load: Load) -> Duration {
        let longest = load.sample.max(LONGEST);
        let factor = if load.near { self.near } else { self.far };
        load.sample.mul_f64(factor.min(1e6)).min(longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Duration = Duration::from_secs(5);

    fn load(cost_us: u64, near: bool) -> Load {
        Load { sample: SAMPLE, cost: Duration::from_micros(cost_us), near }
    }

    fn cost_of(loads: &[Load]) -> f64 {
        let stretch = PaceStretch::of(loads.iter().copied());
        loads.iter().map(|load| load.cost.as_secs_f64() / stretch.interval(*load).as_secs_f64()).sum()
    }

    #[test]
    fn few_runs_are_read_as_often_as_wanted() {
        let loads = [load(20, false); 100];
        assert_eq!(PaceStretch::of(loads.into_iter()).interval(loads[0]), SAMPLE);
    }

    #[test]
    fn many_runs_stay_within_the_budget_and_are_read_every_20_s_at_the_least() {
        let loads = vec![load(20, false); 400];
        assert!(cost_of(&loads) <= BUDGET * 1.001, "{}", cost_of(&loads));
        assert_eq!(PaceStretch::of(loads.iter().copied()).interval(loads[0]), Duration::from_secs(16));
        let loads = vec![load(20, false); 10_000];
        assert_eq!(PaceStretch::of(loads.iter().copied()).interval(loads[0]), LONGEST);
    }

    #[test]
    fn runs_near_their_limit_are_stretched_last() {
        let mut loads = vec![load(20, false); 400];
        loads.extend([load(20, true); 50]);
        let stretch = PaceStretch::of(loads.iter().copied());
        assert_eq!(stretch.interval(loads[400]), SAMPLE);
        assert!(stretch.interval(loads[0]) > Duration::from_secs(19));
        let all_near = [load(20, true); 250];
        assert_eq!(PaceStretch::of(all_near.into_iter()).interval(all_near[0]), Duration::from_secs(10));
    }

    #[test]
    fn one_that_is_dear_to_read_is_read_rarely() {
        let loads = [load(20_000, true)];
        assert_eq!(PaceStretch::of(loads.into_iter()).interval(loads[0]), LONGEST);
    }

    #[test]
    fn a_sample_longer_than_20_s_is_kept() {
        let slow = Load { sample: Duration::from_secs(60), ..load(20, false) };
        assert_eq!(PaceStretch::of([slow].into_iter()).interval(slow), Duration::from_secs(60));
    }
}
