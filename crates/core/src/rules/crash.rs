//! After a crash: a streak that only crashes extend, waits that double, two limits.

use super::{RestartDecision, RuleOutcome, WaitReason, Warning, growing_wait};
use crate::budgets::Budgets;
use crate::exit::Verdict;
use crate::policy::Policy;
use crate::time::Now;
use std::time::Duration;

/// A first crash is restarted at once only if the run lived this long: a program that dies on start will most
/// likely do so again.
const WORTH_TRYING_AT_ONCE: Duration = Duration::from_secs(1);

/// The kind of crash.
#[derive(Debug, Clone, Copy)]
pub(super) enum CrashKind {
    /// It ended by itself.
    Crash,
    /// The kernel killed it for memory.
    OutOfMemory,
}

impl CrashKind {
    fn reason(self) -> WaitReason {
        match self {
            CrashKind::Crash => WaitReason::Crash,
            CrashKind::OutOfMemory => WaitReason::OutOfMemory,
        }
    }

    fn verdict(self) -> Verdict {
        match self {
            CrashKind::Crash => Verdict::Crash,
            CrashKind::OutOfMemory => Verdict::OutOfMemory,
        }
    }
}

pub(super) fn after(
    mut budgets: Budgets,
    kind: CrashKind,
    lived: Duration,
    policy: &Policy,
    now: Now,
) -> RuleOutcome {
    if lived > policy.stable_after {
        budgets.crashes = 0;
        budgets.crash_warned = false;
    }
    budgets.crashes = budgets.crashes.saturating_add(1);
    let warn = soft_limit(&mut budgets, policy);
    let next = next(budgets.crashes, kind, lived, policy, now);
    RuleOutcome { budgets, next, warn }
}

fn soft_limit(budgets: &mut Budgets, policy: &Policy) -> Option<Warning> {
    let reached = policy.crash_soft_limit > 0 && budgets.crashes >= policy.crash_soft_limit;
    if !reached || budgets.crash_warned {
        return None;
    }
    budgets.crash_warned = true;
    Some(Warning::CrashSoftLimit)
}

fn next(crashes: u32, kind: CrashKind, lived: Duration, policy: &Policy, now: Now) -> RestartDecision {
    if policy.crash_hard_limit > 0 && crashes >= policy.crash_hard_limit {
        return RestartDecision::Fail(kind.verdict());
    }
    let reason = kind.reason();
    match crashes {
        1 if lived >= WORTH_TRYING_AT_ONCE => RestartDecision::AtOnce,
        1 => RestartDecision::Wait { wait: growing_wait(1, policy, now), reason },
        n => RestartDecision::Wait { wait: growing_wait(n - 1, policy, now), reason },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crash(budgets: Budgets, lived_ms: u64, policy: &Policy) -> RuleOutcome {
        after(budgets, CrashKind::Crash, Duration::from_millis(lived_ms), policy, Now::default())
    }

    fn seconds(next: RestartDecision) -> Option<u64> {
        match next {
            RestartDecision::AtOnce => Some(0),
            RestartDecision::Wait { wait, .. } => Some(wait.as_secs()),
            RestartDecision::Block { .. } | RestartDecision::Fail(_) => None,
        }
    }

    fn waits(first_lived_ms: u64, lived_ms: u64, count: usize) -> Vec<Option<u64>> {
        let policy = Policy::default();
        let mut budgets = Budgets::default();
        (0..count)
            .map(|n| {
                let outcome = crash(budgets.clone(), if n == 0 { first_lived_ms } else { lived_ms }, &policy);
                budgets = outcome.budgets;
                seconds(outcome.next)
            })
            .collect()
    }

    #[test]
    fn a_first_crash_is_restarted_at_once_if_it_lived_a_second_and_waits_one_if_not() {
        let row = |first| waits(first, 500, 9).into_iter().map(Option::unwrap).collect::<Vec<_>>();
        assert_eq!(row(1000), [0, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(row(300_001), [0, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(row(999), [1, 1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn only_a_run_strictly_longer_than_stable_after_starts_a_new_streak() {
        let seven = Budgets { crashes: 7, ..Budgets::default() };
        assert_eq!(crash(seven.clone(), 300_000, &Policy::default()).budgets.crashes, 8);
        assert_eq!(crash(seven, 300_001, &Policy::default()).budgets.crashes, 1);
    }

    #[test]
    fn the_hard_limit_fails_and_zero_is_never() {
        let nearly = Budgets { crashes: 99, ..Budgets::default() };
        assert_eq!(crash(nearly.clone(), 1, &Policy::default()).next, RestartDecision::Fail(Verdict::Crash));
        let never = Policy { crash_hard_limit: 0, ..Policy::default() };
        assert_eq!(seconds(crash(nearly.clone(), 1, &never).next), Some(60));
        let oom = after(nearly, CrashKind::OutOfMemory, Duration::ZERO, &Policy::default(), Now::default());
        assert_eq!(oom.next, RestartDecision::Fail(Verdict::OutOfMemory));
    }

    #[test]
    fn the_soft_limit_warns_once_in_a_streak_and_again_in_the_next() {
        let policy = Policy { crash_soft_limit: 3, ..Policy::default() };
        let mut budgets = Budgets::default();
        let mut warned_at = Vec::new();
        for (n, lived) in [1, 1, 1, 1, 300_001, 1, 1, 1].into_iter().enumerate() {
            let outcome = crash(budgets, lived, &policy);
            if outcome.warn == Some(Warning::CrashSoftLimit) {
                warned_at.push(n + 1);
            }
            budgets = outcome.budgets;
        }
        assert_eq!(warned_at, [3, 7]);
    }

    #[test]
    fn a_soft_limit_of_zero_never_warns() {
        let policy = Policy { crash_soft_limit: 0, ..Policy::default() };
        assert_eq!(crash(Budgets::default(), 1, &policy).warn, None);
    }
}
