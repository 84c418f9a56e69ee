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
pub enum PidSighting {
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
pub enum HolderVerdict {
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
/// use pinfold_lock::judge::holder::{judge, DeadBecause, HolderVerdict, PidSighting};
/// use pinfold_lock::judge::identity::{BootId, Identity, Vantage};
/// let here = Vantage { boot: BootId(1), pid_namespace: 7 };
/// let stored = Identity { boot: BootId(1), pid_namespace: 7, pid: 4711, start_ticks: 100, pidfs: None };
/// let recycled = PidSighting::Somebody { start_ticks: 900, pidfs: None, ended: false };
/// assert_eq!(judge(Some(&stored), here, recycled), HolderVerdict::Dead(DeadBecause::PidRecycled));
/// ```
#[must_use]
pub fn judge(stored: Option<&Identity>, vantage: Vantage, sighting: PidSighting) -> HolderVerdict {
    let Some(stored) = stored else { return HolderVerdict::Unknown(UnknownBecause::NoIdentity) };
    if stored.boot != vantage.boot {
        return HolderVerdict::Dead(DeadBecause::OtherBoot);
    }
    if stored.pid_namespace != vantage.pid_namespace {
        return HolderVerdict::Unknown(UnknownBecause::OtherNamespace);
    }
    match sighting {
        PidSighting::Nobody => HolderVerdict::Dead(DeadBecause::NoSuchProcess),
        PidSighting::Closed => HolderVerdict::Alive(AliveBecause::NotOursToExamine),
        PidSighting::Unreadable => HolderVerdict::Unknown(UnknownBecause::NotReadable),
        PidSighting::Somebody { start_ticks, pidfs, ended } => compare(stored, start_ticks, pidfs, ended),
    }
}

fn compare(stored: &Identity, start_ticks: u64, pidfs: Option<u64>, ended: bool) -> HolderVerdict {
    // A pidfs inode is unique for the whole boot; start ticks are only as fine as the clock tick.
    let same = match (stored.pidfs, pidfs) {
        (Some(then), Some(now)) => then == now,
        (None, _) | (_, None) => stored.start_ticks == start_ticks,
    };
    match (same, ended) {
        (false, _) => HolderVerdict::Dead(DeadBecause::PidRecycled),
        (true, true) => HolderVerdict::Dead(DeadBecause::Ended),
        (true, false) => HolderVerdict::Alive(AliveBecause::SameProcess),
    }
}

impl HolderVerdict {
    /// Returns the word of the contract: `alive`, `dead` or `unknown`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            HolderVerdict::Alive(_) => "alive",
            HolderVerdict::Dead(_) => "dead",
            HolderVerdict::Unknown(_) => "unknown",
        }
    }
}

impl fmt::Display for HolderVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HolderVerdict::Alive(AliveBecause::SameProcess) => "alive",
            HolderVerdict::Alive(AliveBecause::NotOursToExamine) => "alive (its details may not be read)",
            HolderVerdict::Dead(DeadBecause::OtherBoot) => "dead (the machine has restarted since)",
            HolderVerdict::Dead(DeadBecause::NoSuchProcess) => "dead (no such process)",
            HolderVerdict::Dead(DeadBecause::PidRecycled) => "dead (its pid belongs to another process now)",
            HolderVerdict::Dead(DeadBecause::Ended) => "dead (ended, not yet reaped)",
            HolderVerdict::Unknown(UnknownBecause::NoIdentity) => {
                "unknown (the lock does not say who holds it)"
            }
            HolderVerdict::Unknown(UnknownBecause::OtherNamespace) => {
                "unknown (started in another pid namespace)"
            }
            HolderVerdict::Unknown(UnknownBecause::NotReadable) => "unknown (the kernel could not be asked)",
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

    fn seen(start_ticks: u64) -> PidSighting {
        PidSighting::Somebody { start_ticks, pidfs: None, ended: false }
    }

    #[test]
    fn the_rows_of_the_verdict_table() {
        let other_boot = Identity { boot: BootId(2), ..stored() };
        let elsewhere = Identity { pid_namespace: 11, ..stored() };
        let rows: [(Option<Identity>, PidSighting, HolderVerdict); 9] = [
            (Some(stored()), PidSighting::Nobody, HolderVerdict::Dead(DeadBecause::NoSuchProcess)),
            (Some(stored()), seen(500), HolderVerdict::Alive(AliveBecause::SameProcess)),
            (Some(stored()), seen(501), HolderVerdict::Dead(DeadBecause::PidRecycled)),
            (Some(stored()), PidSighting::Closed, HolderVerdict::Alive(AliveBecause::NotOursToExamine)),
            (Some(stored()), PidSighting::Unreadable, HolderVerdict::Unknown(UnknownBecause::NotReadable)),
            (Some(other_boot), seen(500), HolderVerdict::Dead(DeadBecause::OtherBoot)),
            (Some(elsewhere), seen(500), HolderVerdict::Unknown(UnknownBecause::OtherNamespace)),
            (Some(elsewhere), PidSighting::Nobody, HolderVerdict::Unknown(UnknownBecause::OtherNamespace)),
            (None, seen(500), HolderVerdict::Unknown(UnknownBecause::NoIdentity)),
        ];
        for (identity, sighting, expected) in rows {
            assert_eq!(judge(identity.as_ref(), HERE, sighting), expected, "{identity:?} {sighting:?}");
        }
    }

    #[test]
    fn a_zombie_whose_threads_have_all_ended_is_dead() {
        let zombie = PidSighting::Somebody { start_ticks: 500, pidfs: None, ended: true };
        assert_eq!(judge(Some(&stored()), HERE, zombie), HolderVerdict::Dead(DeadBecause::Ended));
    }

    #[test]
    fn the_pidfs_inode_outranks_start_ticks_when_both_sides_have_one() {
        let exact = Identity { pidfs: Some(9), ..stored() };
        let same_tick_other_process =
            PidSighting::Somebody { start_ticks: 500, pidfs: Some(8), ended: false };
        assert_eq!(
            judge(Some(&exact), HERE, same_tick_other_process),
            HolderVerdict::Dead(DeadBecause::PidRecycled)
        );
        let same = PidSighting::Somebody { start_ticks: 500, pidfs: Some(9), ended: false };
        assert_eq!(judge(Some(&exact), HERE, same), HolderVerdict::Alive(AliveBecause::SameProcess));
        assert_eq!(judge(Some(&exact), HERE, seen(500)), HolderVerdict::Alive(AliveBecause::SameProcess));
    }

    #[test]
    fn every_verdict_has_its_own_sentence_and_a_word_of_the_contract() {
        let all = [
            HolderVerdict::Alive(AliveBecause::SameProcess),
            HolderVerdict::Alive(AliveBecause::NotOursToExamine),
            HolderVerdict::Dead(DeadBecause::OtherBoot),
            HolderVerdict::Dead(DeadBecause::NoSuchProcess),
            HolderVerdict::Dead(DeadBecause::PidRecycled),
            HolderVerdict::Dead(DeadBecause::Ended),
            HolderVerdict::Unknown(UnknownBecause::NoIdentity),
            HolderVerdict::Unknown(UnknownBecause::OtherNamespace),
            HolderVerdict::Unknown(UnknownBecause::NotReadable),
        ];
        let sentences: std::collections::BTreeSet<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(sentences.len(), all.len());
        for holder in all {
            assert!(["alive", "dead", "unknown"].contains(&holder.word()));
            assert!(holder.to_string().starts_with(holder.word()), "{holder}");
        }
    }
}
