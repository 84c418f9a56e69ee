//! Chooses the next fence of a lock file: it keeps growing over crashes, torn writes and power loss.
//!
//! Only the first grant in a boot is synced. A power loss can take back less than one leap, and the next boot
//! leaps further than that.

use crate::files::layout::{Counter, Slot};
use crate::judge::identity::BootId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A growing token of a grant: the holder with the larger one came later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fence(pub u64);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// More grants than one boot can lose: a boot syncs again before it has made half as many.
pub(crate) const LEAP: u64 = 1 << 20;

/// What the parts of one lock file say about the last fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Evidence {
    pub(crate) slots: [Slot; 2],
    /// The largest fence that the mark and the record mention; 0 if they mention none.
    pub(crate) mentioned: u64,
    /// The file is known to have existed before: its counter was removed with it.
    pub(crate) removed: bool,
}

/// Which slots a grant writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writes {
    Slot(usize),
    /// A damaged slot was found: both are written, so that neither stays damaged.
    Both,
}

/// The next fence and how it must be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NextFence {
    pub(crate) counter: Counter,
    pub(crate) writes: Writes,
    pub(crate) sync: bool,
}

impl NextFence {
    /// Returns the same grant with a larger fence: the names of one directory share the largest.
    pub(crate) fn raised_to(mut self, fence: u64) -> Self {
        self.counter.fence = self.counter.fence.max(fence);
        self.sync = self.sync || self.counter.fence - self.counter.synced >= LEAP / 2;
        if self.sync {
            self.counter.synced = self.counter.fence;
        }
        self
    }
}

/// Chooses the next fence above `floor`.
///
/// `seconds` (since 1970) is used only if every trace of the old counter is damaged: shifted by a leap it
/// exceeds any counter that grew by less than a leap per second.
pub(crate) fn next(evidence: Evidence, boot: BootId, seconds: u64, floor: u64) -> NextFence {
    let [a, b] = evidence.slots;
    let newest = newest(a, b);
    let damaged = a == Slot::Damaged || b == Slot::Damaged;
    let last = newest.map_or(0, |counter| counter.fence).max(evidence.mentioned).max(floor);
    let lost = (damaged || evidence.removed) && newest.is_none();
    let leaps = damaged || newest.is_none_or(|counter| counter.boot != boot);
    let base = if lost { last.max(seconds.saturating_mul(LEAP)) } else { last };
    let fence = base.saturating_add(if leaps { LEAP } else { 1 });
    let synced = newest.map_or(0, |counter| counter.synced);
    let sync = leaps || fence - synced >= LEAP / 2;
    let counter = Counter { fence, synced: if sync { fence } else { synced }, boot, lone: false };
    NextFence { counter, writes: writes(a, b, damaged), sync }
}

fn newest(a: Slot, b: Slot) -> Option<Counter> {
    match (a, b) {
        (Slot::Good(a), Slot::Good(b)) => Some(if a.fence >= b.fence { a } else { b }),
        (Slot::Good(one), Slot::Blank | Slot::Damaged) | (Slot::Blank | Slot::Damaged, Slot::Good(one)) => {
            Some(one)
        }
        (Slot::Blank | Slot::Damaged, Slot::Blank | Slot::Damaged) => None,
    }
}

/// Whether nothing of the last grant can have outlived its flock. A damaged slot may belong to a later one.
pub(crate) fn is_lone(slots: [Slot; 2]) -> bool {
    !slots.contains(&Slot::Damaged) && newest(slots[0], slots[1]).is_some_and(|counter| counter.lone)
}

/// Returns the current fence and its slot, for callers that only look.
pub(crate) fn current(slots: [Slot; 2]) -> Option<(u64, usize)> {
    let newest = newest(slots[0], slots[1])?;
    let which = usize::from(slots[0] != Slot::Good(newest));
    Some((newest.fence, which))
}

fn writes(a: Slot, b: Slot, damaged: bool) -> Writes {
    if damaged {
        return Writes::Both;
    }
    match (a, b) {
        (Slot::Good(a), Slot::Good(b)) if b.fence < a.fence => Writes::Slot(1),
        (Slot::Good(_), Slot::Blank) => Writes::Slot(1),
        (Slot::Good(_) | Slot::Blank | Slot::Damaged, Slot::Good(_) | Slot::Blank | Slot::Damaged) => {
            Writes::Slot(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: BootId = BootId(1);
    const BEFORE: BootId = BootId(2);

    fn good(fence: u64, boot: BootId) -> Slot {
        Slot::Good(Counter { fence, synced: fence, boot, lone: false })
    }

    fn decide(a: Slot, b: Slot, mentioned: u64) -> NextFence {
        next(Evidence { slots: [a, b], mentioned, removed: false }, HERE, 1000, 0)
    }

    #[test]
    fn the_rows_of_the_fence_table() {
        let rows = [
            // slots, mentioned                                     fence        writes           sync
            ((Slot::Blank, Slot::Blank, 0), (LEAP, Writes::Slot(0), true)),
            ((good(10, HERE), Slot::Blank, 0), (11, Writes::Slot(1), false)),
            ((good(10, HERE), good(11, HERE), 0), (12, Writes::Slot(0), false)),
            ((good(12, HERE), good(11, HERE), 0), (13, Writes::Slot(1), false)),
            ((good(12, BEFORE), good(11, BEFORE), 0), (12 + LEAP, Writes::Slot(1), true)),
            ((good(12, HERE), Slot::Damaged, 0), (12 + LEAP, Writes::Both, true)),
            ((Slot::Damaged, good(12, HERE), 13), (13 + LEAP, Writes::Both, true)),
            ((Slot::Damaged, Slot::Damaged, 0), (1000 * LEAP + LEAP, Writes::Both, true)),
            ((good(12, HERE), good(11, HERE), 20), (21, Writes::Slot(1), false)),
        ];
        for ((a, b, mentioned), (fence, writes, sync)) in rows {
            let next = decide(a, b, mentioned);
            assert_eq!((next.counter.fence, next.writes, next.sync), (fence, writes, sync), "{a:?} {b:?}");
        }
    }

    #[test]
    fn a_boot_syncs_again_before_a_power_loss_could_take_back_a_leap() {
        let mut slots = [Slot::Blank, Slot::Blank];
        let mut synced = 0;
        for _ in 0..3 * LEAP {
            let next = next(Evidence { slots, mentioned: 0, removed: false }, HERE, 0, 0);
            if next.sync {
                synced = next.counter.fence;
            }
            assert!(next.counter.fence - synced < LEAP);
            match next.writes {
                Writes::Slot(which) => slots[which] = Slot::Good(next.counter),
                Writes::Both => slots = [Slot::Good(next.counter); 2],
            }
        }
    }

    #[test]
    fn the_next_boot_starts_above_everything_an_unsynced_boot_gave_out() {
        let durable = Counter { fence: LEAP, synced: LEAP, boot: BEFORE, lone: false };
        let lost_to_power = LEAP + LEAP / 2 - 1;
        let next = decide(Slot::Good(durable), Slot::Blank, 0);
        assert!(next.counter.fence > lost_to_power);
    }

    #[test]
    fn a_counter_that_was_removed_with_its_file_starts_above_what_it_can_have_been() {
        let removed = Evidence { slots: [Slot::Blank, Slot::Blank], mentioned: 0, removed: true };
        assert_eq!(next(removed, HERE, 1000, 0).counter.fence, 1001 * LEAP);
    }

    #[test]
    fn only_the_newest_grant_says_whether_it_needs_no_mark_and_none_beside_a_damaged_slot() {
        let lone = |fence| Slot::Good(Counter { fence, synced: 0, boot: HERE, lone: true });
        let rows = [
            ([lone(2), good(1, HERE)], true),
            ([good(1, HERE), lone(2)], true),
            ([lone(1), good(2, HERE)], false),
            ([lone(1), Slot::Blank], true),
            ([lone(1), Slot::Damaged], false),
            ([Slot::Blank, Slot::Blank], false),
        ];
        for (slots, expected) in rows {
            assert_eq!(is_lone(slots), expected, "{slots:?}");
        }
    }

    #[test]
    fn a_floor_lifts_the_next_fence_above_it() {
        let evidence = Evidence { slots: [good(5, HERE), Slot::Blank], mentioned: 0, removed: false };
        assert_eq!(next(evidence, HERE, 0, 100).counter.fence, 101);
    }
}
