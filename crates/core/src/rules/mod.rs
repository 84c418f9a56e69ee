//! The rules, one per file: each takes facts and numbers, returns what follows, and knows nothing about
//! sessions. To add one: a file with a table test, one arm here, one [`crate::why::Why`].

mod clean;
mod contention;
mod crash;
mod drain;
mod limit;
pub mod memory;
pub mod parting;
pub mod refused;
pub mod spending;
pub mod start;
pub mod verdict;

use crate::budgets::Budgets;
use crate::exit::{Ended, Recognised, Verdict};
use crate::policy::Policy;
use crate::time::Now;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a shim keeps the locks while nothing runs; for a longer wait they are given back.
pub const LONGEST_GAP: Duration = Duration::from_secs(2);

/// How often to retry a session that an unknown holder keeps from running.
pub const BLOCKED_RETRY: Duration = Duration::from_secs(600);

/// What a rule decides after an end.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleOutcome {
    /// The counters from now on.
    pub budgets: Budgets,
    /// What comes next, if the session is needed.
    pub next: RestartDecision,
    /// A warning that is due now.
    pub warn: Option<Warning>,
}

/// What comes after the end of a run, for a session that is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartDecision {
    /// The next run at once.
    AtOnce,
    /// The next run after a wait.
    Wait {
        /// How long to wait.
        wait: Duration,
        /// Why to wait.
        reason: WaitReason,
    },
    /// No run until another process lets go, with a try after this long all the same.
    Block {
        /// The time until the next try.
        retry: Duration,
    },
    /// No run: a person must look at it.
    Fail(Verdict),
}

/// Why a session waits before its next run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// It crashed.
    Crash,
    /// The kernel killed it for memory.
    OutOfMemory,
    /// It ended cleanly too often.
    CleanRestartBudgetExceeded,
    /// It was drained too often.
    MemoryDrainLoop,
    /// Another process holds what it needs.
    Contended,
    /// It reached a usage limit.
    UsageLimit,
    /// The system refused to start it.
    StartFailed,
}

impl WaitReason {
    /// Returns its word in events.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            WaitReason::Crash => "crash",
            WaitReason::OutOfMemory => "out_of_memory",
            WaitReason::CleanRestartBudgetExceeded => "clean_restart_budget_exceeded",
            WaitReason::MemoryDrainLoop => "memory_drain_loop",
            WaitReason::Contended => "contended",
            WaitReason::UsageLimit => "usage_limit",
            WaitReason::StartFailed => "start_failed",
        }
    }
}

/// Something a person should know, reported once per episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warning {
    /// Too many clean restarts; waits begin.
    CleanRestartBudgetExceeded,
    /// The streak reached the soft limit.
    CrashSoftLimit,
    /// Too many drains; waits begin.
    MemoryDrainLoop,
    /// The memory of a run with a limit cannot be read.
    MemoryUnreadable,
    /// A run was asked to end, and its shim does not answer.
    ShimSilent,
    /// A process that a run started cannot be ended.
    Survivors,
    /// The agent has answered, and has not saved that.
    ConversationUnsaved,
}

impl Warning {
    /// Returns the `reason` of a `health_warn` event.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Warning::CleanRestartBudgetExceeded => "clean_restart_budget_exceeded",
            Warning::CrashSoftLimit => "crash_soft_limit",
            Warning::MemoryDrainLoop => "memory_drain_loop",
            Warning::MemoryUnreadable => "memory_unreadable",
            Warning::ShimSilent => "shim_silent",
            Warning::Survivors => "survivors",
            Warning::ConversationUnsaved => "conversation_unsaved",
        }
    }
}

/// Decides what follows an end that was not asked for, or that our memory limit asked for.
#[must_use]
pub fn after(verdict: Verdict, ended: &Ended, before: &Budgets, policy: &Policy, now: Now) -> RuleOutcome {
    let mut budgets = before.clone();
    if verdict != Verdict::Contended {
        budgets.contended = 0;
    }
    match verdict {
        Verdict::Clean => clean::after(budgets, ended.lived, policy, now),
        Verdict::Drained => drain::after(budgets, policy, now),
        Verdict::Contended => contention::after(budgets, policy),
        Verdict::Limited => limit::after(budgets, resets(ended), policy, now),
        Verdict::Hopeless => RuleOutcome { budgets, next: RestartDecision::Fail(verdict), warn: None },
        Verdict::OutOfMemory => {
            crash::after(budgets, crash::CrashKind::OutOfMemory, ended.lived, policy, now)
        }
        Verdict::Crash => crash::after(budgets, crash::CrashKind::Crash, ended.lived, policy, now),
    }
}

fn resets(ended: &Ended) -> Option<crate::time::Wall> {
    match ended.recognised {
        Some(Recognised::UsageLimit { resets }) => resets,
        Some(
            Recognised::VendorLock
            | Recognised::StaleId
            | Recognised::BeginsAnother
            | Recognised::LoginNeeded
            | Recognised::NoHandshake
            | Recognised::Unlocked,
        )
        | None => None,
    }
}

/// Returns the n-th wait of a growing series: the initial one, twice that, and so on up to the ceiling, less the jitter.
fn growing_wait(n: u32, policy: &Policy, now: Now) -> Duration {
    let doubled = policy.backoff_initial.saturating_mul(1_u32.checked_shl(n - 1).unwrap_or(u32::MAX));
    let full = doubled.min(policy.backoff_max);
    full.mul_f64(1.0 - policy.backoff_jitter.clamp(0.0, 1.0) * now.jitter.part())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Jitter;

    fn wait(n: u32, jitter: u16) -> f64 {
        let now = Now { jitter: Jitter(jitter), ..Now::default() };
        growing_wait(n, &Policy::default(), now).as_secs_f64()
    }

    #[test]
    fn waits_double_up_to_the_ceiling_and_never_overflow() {
        let row: Vec<f64> = [1, 2, 3, 4, 5, 6, 7, 8, 33, 64, 200].iter().map(|n| wait(*n, 0)).collect();
        assert_eq!(row, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0, 60.0]);
    }

    #[test]
    fn jitter_only_shortens_and_takes_a_tenth_at_the_most() {
        assert!((wait(7, u16::MAX) - 54.0).abs() < 1e-6);
        assert!((wait(7, u16::MAX / 2) - 57.0).abs() < 1e-3);
        let silly = Policy { backoff_jitter: 7.0, ..Policy::default() };
        let now = Now { jitter: Jitter(u16::MAX), ..Now::default() };
        assert_eq!(growing_wait(3, &silly, now), Duration::ZERO);
    }
}
