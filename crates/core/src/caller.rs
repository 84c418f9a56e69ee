//! Judges which process is at the other end of a socket, from what `/proc` shows of it.
//!
//! The evidence is gathered elsewhere (`pinfold-kernel` asks Linux); this module only judges it. A peer is
//! judged relative to the process that asks, because a daemon inside a container has people in there, too.
//! Whatever cannot be known counts as confined: a sandbox that we cannot see must not be escaped through us.

use std::fmt;

/// The restrictions on a process beyond those of its user, as far as the kernel shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    /// `NoNewPrivs`, which every unprivileged seccomp or Landlock sandbox sets.
    pub no_new_privs: bool,
    /// The number of seccomp filters; strict mode counts as one.
    pub filters: u32,
    /// What tells its mount, user, pid and network namespaces from others.
    pub namespaces: [u64; 4],
}

/// What was seen of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sighting {
    /// Everything, and the process was still alive afterwards, so what was read belongs to it.
    Whole {
        /// The restrictions on it.
        bounds: Bounds,
        /// The shims above it, the nearest first.
        shims: Vec<u32>,
    },
    /// It has no pid here: it lives in a pid namespace that we cannot see.
    Unseen,
    /// It ended before or during the look.
    Ended,
    /// Some of it could not be read.
    Unreadable,
}

/// The judgement on a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerStanding {
    /// What confines it; empty if nothing does.
    pub confined: Vec<Confinement>,
    /// The shims above it, the nearest first; if there is one, the peer belongs to a run.
    pub shims: Vec<u32>,
}

/// One sign that a process is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// It cannot gain privileges.
    NoNewPrivs,
    /// Its system calls are filtered.
    Seccomp,
    /// It has another mount namespace.
    Mount,
    /// It has another user namespace.
    User,
    /// It has another pid namespace.
    Pid,
    /// It has another network namespace.
    Net,
    /// It ended before it could be judged.
    Ended,
    /// It could not be read.
    Unreadable,
}

/// The namespaces in the order of [`Bounds::namespaces`].
const NAMESPACES: [Confinement; 4] =
    [Confinement::Mount, Confinement::User, Confinement::Pid, Confinement::Net];

/// Judges a peer relative to `own`, the restrictions on the process that asks.
///
/// ```
/// use pinfold_core::caller::{Bounds, Confinement, Sighting, judge};
/// let own = Bounds { namespaces: [1, 2, 3, 4], ..Bounds::default() };
/// let boxed = Bounds { no_new_privs: true, namespaces: [9, 2, 3, 4], ..own };
/// let standing = judge(&own, Sighting::Whole { bounds: boxed, shims: vec![4711] });
/// assert_eq!(standing.confined, [Confinement::NoNewPrivs, Confinement::Mount]);
/// assert!(judge(&own, Sighting::Whole { bounds: own, shims: vec![] }).is_person());
/// ```
#[must_use]
pub fn judge(own: &Bounds, sighting: Sighting) -> CallerStanding {
    match sighting {
        Sighting::Whole { bounds, shims } => CallerStanding { confined: marks(own, &bounds), shims },
        Sighting::Unseen => CallerStanding::confined_by(Confinement::Pid),
        Sighting::Ended => CallerStanding::confined_by(Confinement::Ended),
        Sighting::Unreadable => CallerStanding::confined_by(Confinement::Unreadable),
    }
}

/// Compares a peer with us. A peer that is freer than we are gains nothing through us; one in another
/// namespace sees another world, not a smaller one.
fn marks(own: &Bounds, peer: &Bounds) -> Vec<Confinement> {
    let mut marks = Vec::new();
    if peer.no_new_privs && !own.no_new_privs {
        marks.push(Confinement::NoNewPrivs);
    }
    if peer.filters > own.filters {
        marks.push(Confinement::Seccomp);
    }
    let pairs = own.namespaces.iter().zip(&peer.namespaces).zip(NAMESPACES);
    marks.extend(pairs.filter(|((own, peer), _)| own != peer).map(|(_, mark)| mark));
    marks
}

impl CallerStanding {
    fn confined_by(mark: Confinement) -> CallerStanding {
        CallerStanding { confined: vec![mark], shims: Vec::new() }
    }

    /// Whether the peer is confined.
    #[must_use]
    pub fn is_confined(&self) -> bool {
        !self.confined.is_empty()
    }

    /// Whether the peer is neither confined nor part of a run.
    #[must_use]
    pub fn is_person(&self) -> bool {
        self.confined.is_empty() && self.shims.is_empty()
    }
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Confinement::NoNewPrivs => "NoNewPrivs",
            Confinement::Seccomp => "Seccomp",
            Confinement::Mount => "mnt",
            Confinement::User => "user",
            Confinement::Pid => "pid",
            Confinement::Net => "net",
            Confinement::Ended => "ended before it could be placed",
            Confinement::Unreadable => "cannot be looked at",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Bounds = Bounds { no_new_privs: false, filters: 0, namespaces: [1, 2, 3, 4] };

    #[test]
    fn what_keeps_a_peer_back_more_than_us_confines_it() {
        let nnp = Bounds { no_new_privs: true, ..OWN };
        let filtered = Bounds { filters: 1, ..nnp };
        let rows: [(Bounds, Bounds, &[Confinement]); 10] = [
            (OWN, OWN, &[]),
            (OWN, nnp, &[Confinement::NoNewPrivs]),
            (OWN, filtered, &[Confinement::NoNewPrivs, Confinement::Seccomp]),
            (OWN, Bounds { filters: 1, ..OWN }, &[Confinement::Seccomp]),
            (OWN, Bounds { namespaces: [9, 2, 3, 4], ..OWN }, &[Confinement::Mount]),
            (OWN, Bounds { namespaces: [1, 9, 3, 4], ..OWN }, &[Confinement::User]),
            (OWN, Bounds { namespaces: [1, 2, 9, 9], ..OWN }, &[Confinement::Pid, Confinement::Net]),
            // A daemon under NoNewPrivileges=, or in a container with a filter: its neighbours are as free as it is.
            (nnp, nnp, &[]),
            (filtered, OWN, &[]),
            // One more filter on top of those that both have.
            (filtered, Bounds { filters: 2, ..nnp }, &[Confinement::Seccomp]),
        ];
        for (own, bounds, expected) in rows {
            let standing = judge(&own, Sighting::Whole { bounds, shims: vec![7] });
            assert_eq!(standing.confined, expected, "{own:?} {bounds:?}");
            assert_eq!(standing.shims, [7]);
        }
    }

    #[test]
    fn what_cannot_be_placed_is_confined_and_never_a_person() {
        let rows = [
            (Sighting::Unseen, Confinement::Pid),
            (Sighting::Ended, Confinement::Ended),
            (Sighting::Unreadable, Confinement::Unreadable),
        ];
        for (sighting, mark) in rows {
            let standing = judge(&OWN, sighting);
            assert_eq!(standing.confined, [mark]);
            assert!(!standing.is_person());
        }
    }

    #[test]
    fn one_below_a_shim_is_no_person() {
        assert!(!judge(&OWN, Sighting::Whole { bounds: OWN, shims: vec![7] }).is_person());
        assert!(judge(&OWN, Sighting::Whole { bounds: OWN, shims: vec![] }).is_person());
    }
}
