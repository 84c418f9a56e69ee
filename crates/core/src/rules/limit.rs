//! After a usage limit: no restart, unless the user asked for one; then at the reset time.

use super::{BLOCKED_RETRY, RestartDecision, RuleOutcome, WaitReason};
use crate::budgets::Budgets;
use crate::exit::Verdict;
use crate::policy::Policy;
use crate::time::{Now, Wall};

pub(super) fn after(budgets: Budgets, resets: Option<Wall>, policy: &Policy, now: Now) -> RuleOutcome {
    let next = if policy.limit_resume {
        let wait = resets.map_or(BLOCKED_RETRY, |at| now.wall.until(at).max(policy.backoff_initial));
        RestartDecision::Wait { wait, reason: WaitReason::UsageLimit }
    } else {
        RestartDecision::Fail(Verdict::Limited)
    };
    RuleOutcome { budgets, next, warn: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn next(policy: &Policy, resets: Option<i64>) -> RestartDecision {
        let now = Now { wall: Wall(1_000_000), ..Now::default() };
        after(Budgets::default(), resets.map(Wall), policy, now).next
    }

    #[test]
    fn nobody_is_resumed_after_a_limit_who_did_not_ask_for_it() {
        assert_eq!(next(&Policy::default(), Some(1_060_000)), RestartDecision::Fail(Verdict::Limited));
    }

    #[test]
    fn whoever_asked_is_resumed_at_the_reset_and_never_in_a_tight_loop() {
        let policy = Policy { limit_resume: true, ..Policy::default() };
        let wait = |seconds| RestartDecision::Wait {
            wait: Duration::from_secs(seconds),
            reason: WaitReason::UsageLimit,
        };
        assert_eq!(next(&policy, Some(1_060_000)), wait(60));
        assert_eq!(next(&policy, Some(0)), wait(1), "a reset time in the past still waits");
        assert_eq!(next(&policy, None), wait(600));
    }
}
