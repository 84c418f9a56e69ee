//! After a clean exit: the next run at once, until there are too many in a window; then waits as after
//! crashes, until one run outlives the window. The crash streak is left alone, however long the run was.

use super::{RestartDecision, RuleOutcome, WaitReason, Warning, growing_wait};
use crate::budgets::Budgets;
use crate::policy::Policy;
use crate::time::Now;
use std::time::Duration;

pub(super) fn after(mut budgets: Budgets, lived: Duration, policy: &Policy, now: Now) -> RuleOutcome {
    if lived > policy.clean_window {
        budgets.clean.clear();
        budgets.clean_waits = 0;
    }
    let count = budgets.clean.note(now.boot, policy.clean_window, policy.clean_limit);
    // The waits themselves thin out the window, so an episode is not over because it looks quiet.
    let in_episode = budgets.clean_waits > 0;
    if !in_episode && count <= usize::try_from(policy.clean_limit).unwrap_or(usize::MAX) {
        budgets.tried = false;
        return RuleOutcome { budgets, next: RestartDecision::AtOnce, warn: None };
    }
    budgets.clean_waits = budgets.clean_waits.saturating_add(1);
    let wait = growing_wait(budgets.clean_waits, policy, now);
    let next = RestartDecision::Wait { wait, reason: WaitReason::CleanRestartBudgetExceeded };
    RuleOutcome { budgets, next, warn: (!in_episode).then_some(Warning::CleanRestartBudgetExceeded) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Boot;

    /// Plays exits given as (moment, lifetime) in ms; returns the waits in seconds and the number of warnings.
    fn play(exits: &[(u64, u64)]) -> (Vec<u64>, usize) {
        let policy = Policy::default();
        let mut budgets = Budgets { crashes: 4, ..Budgets::default() };
        let mut warnings = 0;
        let waits = exits
            .iter()
            .map(|(at, lived)| {
                let now = Now { boot: Boot(*at), ..Now::default() };
                let outcome = after(budgets.clone(), Duration::from_millis(*lived), &policy, now);
                budgets = outcome.budgets;
                warnings += usize::from(outcome.warn.is_some());
                match outcome.next {
                    RestartDecision::AtOnce => 0,
                    RestartDecision::Wait { wait, .. } => wait.as_secs(),
                    RestartDecision::Block { .. } | RestartDecision::Fail(_) => {
                        panic!("a clean exit never fails")
                    }
                }
            })
            .collect();
        assert_eq!(budgets.crashes, 4, "a clean exit does not touch the streak");
        (waits, warnings)
    }

    #[test]
    fn ten_in_a_minute_are_at_once_and_the_eleventh_begins_to_wait() {
        let exits: Vec<(u64, u64)> = (0..13).map(|n| (n * 100, 50)).collect();
        assert_eq!(play(&exits[..10]), (vec![0; 10], 0));
        assert_eq!(play(&exits), ([vec![0; 10], vec![1, 2, 4]].concat(), 1));
    }

    #[test]
    fn the_window_slides() {
        let mut exits: Vec<(u64, u64)> = (0..10).map(|n| (n * 100, 50)).collect();
        exits.push((60_001, 50));
        assert_eq!(play(&exits), (vec![0; 11], 0));
    }

    #[test]
    fn an_episode_ends_only_with_a_run_that_outlives_the_window() {
        let mut exits: Vec<(u64, u64)> = (0..11).map(|n| (n * 100, 50)).collect();
        // Quiet for two minutes, but only because of the waits: still the same episode.
        exits.push((120_000, 60_000));
        assert_eq!(play(&exits), ([vec![0; 10], vec![1, 2]].concat(), 1));
        exits.push((240_000, 60_001));
        assert_eq!(play(&exits), ([vec![0; 10], vec![1, 2, 0]].concat(), 1));
        exits.extend((1..11).map(|n| (240_000 + n * 100, 50)));
        assert_eq!(play(&exits).1, 2, "a second episode warns again");
    }
}
