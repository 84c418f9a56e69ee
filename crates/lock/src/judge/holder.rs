//! Judges from evidence whether the process named in a lock's payload is still alive.
//!
//! The evidence is gathered elsewhere ([`crate::process`] asks the kernel); this module only judges it. One
//! function judges for locks, adoption and people alike. Age is never evidence, and what cannot be known is
//! `Unknown`: unknown never steals.

use super::identity::{Identity, Vantage};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What the kernel says now about the pid that an [`Identity`] names, as seen from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sighting {
    /// No process has this pid (`ESRCH`, or `/proc/PID` does not exist in a `/proc` that shows all).
    Nobody,
    /// A process has it and its start time was read.
    Somebody {
        /// Field 22 of `/proc/PID/stat`.
        start_ticks: u64,
        /// Its pidfs inode, where the kernel has one.
        pidfs: Option<u64>,
        /// Its pidfd polls readable: every thread has ended.
        ended: bool,
    },
    /// A process has it, but nothing more may be read (`EPERM`, `hidepid`).
    Closed,
    /// The look itself failed (`EMFILE`, `EIO`, no `/proc`).
    Unreadable,
}

/// The verdict on the holder of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", content = "why", rename_all = "snake_case")]
pub enum Holder {
    /// It is alive.
    Alive(AliveBecause),
    /// It is gone, provably.
    Dead(DeadBecause),
    /// Nothing can be proved; the kernel lock alone decides.
    Unknown(UnknownBecause),
}

/// Why a holder counts as alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AliveBecause {
    /// Pid and start time match the payload.
    SameProcess,
    /// The pid exists but may not be examined; `EPERM` means that a process is there.
    NotOursToExamine,
}

/// Why a holder counts as dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadBecause {
    /// The payload was written before the machine started.
    OtherBoot,
    /// No process has that pid.
    NoSuchProcess,
    /// The pid belongs to a process that started at another time.
    PidRecycled,
    /// All of its threads have ended; only the zombie is left.
    Ended,
}

/// Why nothing can be said about a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownBecause {
    /// The payload is empty, torn or damaged.
    NoIdentity,
    /// The pid was assigned in another pid namespace, so here it names another process.
    OtherNamespace,
    /// The kernel could not be asked.
    NotReadable,
}

/// Judges the holder named in a payload.
///
/// `stored` is what the payload says, `vantage` where we look from, `sighting` what is seen at that pid.
///
/// ```
/// use pinfold_lock::judge::holder::{judge, DeadBecause, Holder, Sighting};
/// use pinfold_lock::judge::identity::{BootId, Identity, Vantage};
/// let here = Vantage { boot: BootId(1), pid_namespace: 7 };
/// let stored = Identity { boot: BootId(1), pid_namespace: 7, pid: 4711, start_ticks: 100, pidfs: None };
/// let recycled = Sighting::Somebody { start_ticks: 900, pidfs: None, ended: false };
/// assert_eq!(judge(Some(&stored), here, recycled), Holder::Dead(DeadBecause::PidRecycled));
/// ```
#[must_use]
pub fn judge(stored: Option<&Identity>, vantage: Vantage, sighting: Sighting) -> Holder {
    let Some(stored) = stored else { return Holder::Unknown(UnknownBecause::NoIdentity) };
    if stored.boot != vantage.boot {
        return Holder::Dead(DeadBecause::OtherBoot);
    }
    if stored.pid_namespace != vantage.pid_namespace {
        return Holder::Unknown(UnknownBecause::OtherNamespace);
    }
    match sighting {
        Sighting::Nobody => Holder::Dead(DeadBecause::NoSuchProcess),
        Sighting::Closed => Holder::Alive(AliveBecause::NotOursToExamine),
        Sighting::Unreadable => Holder::Unknown(UnknownBecause::NotReadable),
        Sighting::Somebody { start_ticks, pidfs, ended } => compare(stored, start_ticks, pidfs, ended),
    }
}

fn compare(stored: &Identity, start_ticks: u64, pidfs: Option<u64>, ended: bool) -> Holder {
    // A pidfs inode is unique for the whole boot; start ticks are only as fine as the clock tick.
    let same = match (stored.pidfs, pidfs) {
        (Some(then), Some(now)) => then == now,
        (None, _) | (_, None) => stored.start_ticks == start_ticks,
    };
    match (same, ended) {
        (false, _) => Holder::Dead(DeadBecause::PidRecycled),
        (true, true) => Holder::Dead(DeadBecause::Ended),
        (true, false) => Holder::Alive(AliveBecause::SameProcess),
    }
}

impl Holder {
    /// Returns the word of the contract: `alive`, `dead` or `unknown`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Holder::Alive(_) => "alive",
            Holder::Dead(_) => "dead",
            Holder::Unknown(_) => "unknown",
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Holder::Alive(AliveBecause::SameProcess) => "alive",
            Holder::Alive(AliveBecause::NotOursToExamine) => "alive (its details may not be read)",
            Holder::Dead(DeadBecause::OtherBoot) => "dead (the machine has restarted since)",
            Holder::Dead(DeadBecause::NoSuchProcess) => "dead (no such process)",
            Holder::Dead(DeadBecause::PidRecycled) => "dead (its pid belongs to another process now)",
            Holder::Dead(DeadBecause::Ended) => "dead (ended, not yet reaped)",
            Holder::Unknown(UnknownBecause::NoIdentity) => "unknown (the lock does not say who holds it)",
            Holder::Unknown(UnknownBecause::OtherNamespace) => "unknown (started in another pid namespace)",
            Holder::Unknown(UnknownBecause::NotReadable) => "unknown (the kernel could not be asked)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::identity::BootId;

    const HERE: Vantage = Vantage { boot: BootId(1), pid_namespace: 10 };

    fn stored() -> Identity {
        Identity { boot: BootId(1), pid_namespace: 10, pid: 4711, start_ticks: 500, pidfs: None }
    }

    fn seen(start_ticks: u64) -> Sighting {
        Sighting::Somebody { start_ticks, pidfs: None, ended: false }
    }

    #[test]
    fn the_rows_of_the_verdict_table() {
        let other_boot = Identity { boot: BootId(2), ..stored() };
        let elsewhere = Identity { pid_namespace: 11, ..stored() };
        let rows: [(Option<Identity>, Sighting, Holder); 9] = [
            (Some(stored()), Sighting::Nobody, Holder::Dead(DeadBecause::NoSuchProcess)),
            (Some(stored()), seen(500), Holder::Alive(AliveBecause::SameProcess)),
            (Some(stored()), seen(501), Holder::Dead(DeadBecause::PidRecycled)),
            (Some(stored()), Sighting::Closed, Holder::Alive(AliveBecause::NotOursToExamine)),
            (Some(stored()), Sighting::Unreadable, Holder::Unknown(UnknownBecause::NotReadable)),
            (Some(other_boot), seen(500), Holder::Dead(DeadBecause::OtherBoot)),
            (Some(elsewhere), seen(500), Holder::Unknown(UnknownBecause::OtherNamespace)),
            (Some(elsewhere), Sighting::Nobody, Holder::Unknown(UnknownBecause::OtherNamespace)),
            (None, seen(500), Holder::Unknown(UnknownBecause::NoIdentity)),
        ];
        for (identity, sighting, expected) in rows {
            assert_eq!(judge(identity.as_ref(), HERE, sighting), expected, "{identity:?} {sighting:?}");
        }
    }

    #[test]
    fn a_zombie_whose_threads_have_all_ended_is_dead() {
        let zombie = Sighting::Somebody { start_ticks: 500, pidfs: None, ended: true };
        assert_eq!(judge(Some(&stored()), HERE, zombie), Holder::Dead(DeadBecause::Ended));
    }

    #[test]
    fn the_pidfs_inode_outranks_start_ticks_when_both_sides_have_one() {
        let exact = Identity { pidfs: Some(9), ..stored() };
        let same_tick_other_process = Sighting::Somebody { start_ticks: 500, pidfs: Some(8), ended: false };
        assert_eq!(
            judge(Some(&exact), HERE, same_tick_other_process),
            Holder::Dead(DeadBecause::PidRecycled)
        );
        let same = Sighting::Somebody { start_ticks: 500, pidfs: Some(9), ended: false };
        assert_eq!(judge(Some(&exact), HERE, same), Holder::Alive(AliveBecause::SameProcess));
        assert_eq!(judge(Some(&exact), HERE, seen(500)), Holder::Alive(AliveBecause::SameProcess));
    }

    #[test]
    fn every_verdict_has_its_own_sentence_and_a_word_of_the_contract() {
        let all = [
            Holder::Alive(AliveBecause::SameProcess),
            Holder::Alive(AliveBecause::NotOursToExamine),
            Holder::Dead(DeadBecause::OtherBoot),
            Holder::Dead(DeadBecause::NoSuchProcess),
            Holder::Dead(DeadBecause::PidRecycled),
            Holder::Dead(DeadBecause::Ended),
            Holder::Unknown(UnknownBecause::NoIdentity),
            Holder::Unknown(UnknownBecause::OtherNamespace),
            Holder::Unknown(UnknownBecause::NotReadable),
        ];
        let sentences: std::collections::BTreeSet<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(sentences.len(), all.len());
        for holder in all {
            assert!(["alive", "dead", "unknown"].contains(&holder.word()));
            assert!(holder.to_string().starts_with(holder.word()), "{holder}");
        }
    }
}
