//! After a drain: the next run at once; after too many in a window, each waits. Never fails.

use super::{RestartDecision, RuleOutcome, WaitReason, Warning};
use crate::budgets::Budgets;
use crate::policy::Policy;
use crate::time::Now;

pub(super) fn after(mut budgets: Budgets, policy: &Policy, now: Now) -> RuleOutcome {
    let count = budgets.drains.note(now.boot, policy.drain_window, policy.drain_limit);
    if count <= usize::try_from(policy.drain_limit).unwrap_or(usize::MAX) {
        budgets.drain_warned = false;
        return RuleOutcome { budgets, next: RestartDecision::AtOnce, warn: None };
    }
    let warn = (!budgets.drain_warned).then_some(Warning::MemoryDrainLoop);
    budgets.drain_warned = true;
    let next = RestartDecision::Wait { wait: policy.drain_backoff, reason: WaitReason::MemoryDrainLoop };
    RuleOutcome { budgets, next, warn }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Boot;
    use std::time::Duration;

    #[test]
    fn three_in_ten_minutes_are_at_once_then_each_waits_and_one_warning_is_given_per_episode() {
        let policy = Policy::default();
        let mut budgets = Budgets::default();
        let mut seen = Vec::new();
        for minute in [0, 1, 2, 3, 4, 30, 31, 32, 33] {
            let now = Now { boot: Boot(minute * 60_000), ..Now::default() };
            let outcome = after(budgets, &policy, now);
            budgets = outcome.budgets;
            seen.push((outcome.next != RestartDecision::AtOnce, outcome.warn.is_some()));
            if let RestartDecision::Wait { wait, reason } = outcome.next {
                assert_eq!((wait, reason), (Duration::from_secs(30), WaitReason::MemoryDrainLoop));
            }
        }
        let at_once = (false, false);
        assert_eq!(
            seen,
            [at_once, at_once, at_once, (true, true), (true, false), at_once, at_once, at_once, (true, true)]
        );
        assert_eq!(budgets.crashes, 0);
    }
}
