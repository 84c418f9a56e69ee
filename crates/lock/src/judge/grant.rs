//! Decides whether an acquirer that has just obtained a lock's flock may be granted the lock.
//!
//! A free flock does not prove that the last run is gone: children of node, bun and Python do not inherit it.
//! The payload says whether the tree was seen empty, and what of it may survive. This file decides what that
//! means; the code that takes locks gathers the evidence and ends processes.

use super::holder::HolderVerdict;
use serde::{Deserialize, Serialize};

/// What the lock's payload says about its last holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// Never written, torn or damaged: this costs the message and nothing else.
    Nothing,
    /// Marked released: the tree was seen empty.
    Released,
    /// Not marked released: the last holder ended without recording that its tree was empty.
    Unreleased,
}

/// How a process or group was recognised as part of the last run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trace {
    /// Its control group still has members.
    Cgroup,
    /// The process named in the payload is alive.
    Identity,
    /// A process carries the run's marker in its environment.
    Marker,
}

/// What is left of the last run, as far as it can be proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remains {
    /// Nothing was found that provably belongs to it.
    None,
    /// Something was found, and nothing has been tried yet.
    Found(Trace),
    /// Something was found, and is still there after it was ended or waited for.
    Persists(Trace),
}

/// Whether the lock may be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// Grant it.
    Yes(GrantBecause),
    /// End or wait for what is left, then ask again.
    EndFirst(Trace),
    /// Busy: what is left could not be ended.
    No(Trace),
}

/// Why a lock may be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantBecause {
    /// The last holder saw its tree empty.
    ReleasedInOrder,
    /// The last holder died; nothing that provably belongs to it is left.
    NothingLeft,
    /// The payload says nothing, so the flock decides.
    FlockAlone,
}

/// Decides about a grant; the caller already has the flock.
#[must_use]
pub fn decide(payload: Payload, remains: Remains) -> Grant {
    match (payload, remains) {
        (Payload::Released, _) => Grant::Yes(GrantBecause::ReleasedInOrder),
        (Payload::Nothing, Remains::None) => Grant::Yes(GrantBecause::FlockAlone),
        (Payload::Unreleased, Remains::None) => Grant::Yes(GrantBecause::NothingLeft),
        (Payload::Nothing | Payload::Unreleased, Remains::Found(trace)) => Grant::EndFirst(trace),
        (Payload::Nothing | Payload::Unreleased, Remains::Persists(trace)) => Grant::No(trace),
    }
}

/// Returns what the payload's own identity proves: only a living process counts as remains.
#[must_use]
pub fn remains_by_identity(holder: HolderVerdict) -> Remains {
    match holder {
        HolderVerdict::Alive(_) => Remains::Found(Trace::Identity),
        // Unknown never steals, but an acquirer that has the flock does not steal: the kernel gave it.
        HolderVerdict::Dead(_) | HolderVerdict::Unknown(_) => Remains::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::holder::{AliveBecause, DeadBecause, UnknownBecause};

    #[test]
    fn the_rows_of_the_grant_table() {
        let rows = [
            (Payload::Released, Remains::None, Grant::Yes(GrantBecause::ReleasedInOrder)),
            (Payload::Released, Remains::Found(Trace::Marker), Grant::Yes(GrantBecause::ReleasedInOrder)),
            (Payload::Nothing, Remains::None, Grant::Yes(GrantBecause::FlockAlone)),
            (Payload::Nothing, Remains::Found(Trace::Cgroup), Grant::EndFirst(Trace::Cgroup)),
            (Payload::Unreleased, Remains::None, Grant::Yes(GrantBecause::NothingLeft)),
            (Payload::Unreleased, Remains::Found(Trace::Identity), Grant::EndFirst(Trace::Identity)),
            (Payload::Unreleased, Remains::Persists(Trace::Marker), Grant::No(Trace::Marker)),
        ];
        for (payload, remains, expected) in rows {
            assert_eq!(decide(payload, remains), expected, "{payload:?} {remains:?}");
        }
    }

    #[test]
    fn only_a_living_holder_is_a_survivor_by_identity() {
        assert_eq!(
            remains_by_identity(HolderVerdict::Alive(AliveBecause::SameProcess)),
            Remains::Found(Trace::Identity)
        );
        assert_eq!(remains_by_identity(HolderVerdict::Dead(DeadBecause::NoSuchProcess)), Remains::None);
        assert_eq!(
            remains_by_identity(HolderVerdict::Unknown(UnknownBecause::OtherNamespace)),
            Remains::None
        );
    }
}
