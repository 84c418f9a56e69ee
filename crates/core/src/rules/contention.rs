//! After a run that could not get what another process holds: growing waits, then blocked. Never a crash.

use super::{BLOCKED_RETRY, RestartDecision, RuleOutcome, WaitReason};
use crate::budgets::Budgets;
use crate::policy::Policy;

pub(super) fn after(mut budgets: Budgets, policy: &Policy) -> RuleOutcome {
    budgets.contended = budgets.contended.saturating_add(1);
    let next = if policy.contention_limit > 0 && budgets.contended >= policy.contention_limit {
        RestartDecision::Block { retry: BLOCKED_RETRY }
    } else {
        let wait = policy.contention_step.saturating_mul(budgets.contended).min(policy.contention_max);
        RestartDecision::Wait { wait, reason: WaitReason::Contended }
    };
    RuleOutcome { budgets, next, warn: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn row(policy: &Policy, count: usize) -> Vec<RestartDecision> {
        let mut budgets = Budgets::default();
        (0..count)
            .map(|_| {
                let outcome = after(budgets.clone(), policy);
                budgets = outcome.budgets;
                outcome.next
            })
            .collect()
    }

    fn wait(seconds: u64) -> RestartDecision {
        RestartDecision::Wait { wait: Duration::from_secs(seconds), reason: WaitReason::Contended }
    }

    #[test]
    fn waits_grow_by_a_step_and_the_sixth_in_a_row_is_blocked() {
        let blocked = RestartDecision::Block { retry: Duration::from_secs(600) };
        let expected = [wait(10), wait(20), wait(30), wait(40), wait(50), blocked, blocked];
        assert_eq!(row(&Policy::default(), 7), expected);
    }

    #[test]
    fn a_limit_of_zero_never_blocks_and_waits_keep_to_the_ceiling() {
        let patient = Policy { contention_limit: 0, ..Policy::default() };
        assert_eq!(row(&patient, 8)[5..], [wait(60), wait(60), wait(60)]);
    }
}
