//! How long an account is left alone after its vendor refused work.

use super::BLOCKED_RETRY;
use crate::hold::HoldKind;
use crate::time::{Moment, Now, Wall};
use std::time::Duration;

/// No vendor's limit takes longer than a week to reset: a later time is the mistake of some clock.
const LONGEST: Duration = Duration::from_secs(8 * 24 * 3600);
/// The first wait for an overloaded vendor; each further one is twice as long, up to [`BLOCKED_RETRY`].
const OVERLOADED: Duration = Duration::from_secs(15);
/// The wait for a reset that is now or in the past; each further refusal doubles it.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Returns when the next try is due; `None` if only a person can know. `told` is what the vendor said,
/// `refusals` the number of refusals in a row.
#[must_use]
pub fn until(kind: HoldKind, told: Option<Wall>, refusals: u32, now: Now) -> Option<Moment> {
    let doubled = |first: Duration| {
        let times = 1_u32.checked_shl(refusals.saturating_sub(1)).unwrap_or(u32::MAX);
        first.saturating_mul(times).min(BLOCKED_RETRY)
    };
    let wait = match kind {
        HoldKind::Limit => match told {
            Some(reset) => now.wall.until(reset).clamp(doubled(AT_ONCE), LONGEST),
            None => BLOCKED_RETRY,
        },
        HoldKind::Overloaded => match told {
            Some(reset) => now.wall.until(reset).clamp(doubled(OVERLOADED), LONGEST),
            None => doubled(OVERLOADED),
        },
        HoldKind::AccountBudget => now.wall.until(told?).min(LONGEST),
        HoldKind::Login | HoldKind::Budget | HoldKind::TurnTime | HoldKind::Crowded => return None,
    };
    Some(now.after(wait))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Boot;

    #[test]
    fn a_limit_is_left_alone_until_its_reset_and_never_tried_in_a_tight_loop() {
        let now = Now { wall: Wall(1_000_000_000), boot: Boot(5_000), ..Now::default() };
        let seconds = |kind, told: Option<i64>, refusals| {
            until(kind, told.map(|told| Wall(1_000_000_000 + told * 1000)), refusals, now)
                .map(|until| until.boot.since(now.boot).as_secs())
        };
        let rows = [
            (HoldKind::Limit, Some(3600), 1, Some(3600)),
            (HoldKind::Limit, Some(0), 1, Some(1)),
            (HoldKind::Limit, Some(-3600), 1, Some(1)),
            (HoldKind::Limit, Some(-3600), 4, Some(8)),
            (HoldKind::Limit, Some(-3600), 40, Some(600)),
            (HoldKind::Limit, None, 1, Some(600)),
            (HoldKind::Limit, Some(40 * 24 * 3600), 1, Some(8 * 24 * 3600)),
            (HoldKind::Overloaded, None, 1, Some(15)),
            (HoldKind::Overloaded, None, 3, Some(60)),
            (HoldKind::Overloaded, None, 99, Some(600)),
            (HoldKind::Login, Some(60), 1, None),
            (HoldKind::AccountBudget, Some(7200), 1, Some(7200)),
            (HoldKind::Budget, None, 1, None),
        ];
        for (kind, told, refusals, expected) in rows {
            assert_eq!(seconds(kind, told, refusals), expected, "{kind:?} {told:?} {refusals}");
        }
    }
}
