//! Whether a run stays in the control group that is read for it. Processes may leave it (containers and
//! transient units of systemd do), and then the group shows only a part.

use pinfold_kernel::cgroup::{self, Hierarchy};
use std::path::PathBuf;

/// After its first readings a run is checked only this often: a check costs several times as much as a
/// reading.
const EVERY: u32 = 8;

/// The group that a run was put into.
#[derive(Debug)]
pub(super) struct GroupMembership {
    /// A process of the run was seen outside. That stays true: what left once may leave again.
    pub(super) left: bool,
    place: Option<Place>,
    readings: u32,
}

#[derive(Debug)]
struct Place {
    shim: u32,
    hierarchy: Hierarchy,
    group: PathBuf,
}

impl GroupMembership {
    /// The group of a run; without one, or without a shim, there is nothing to leave.
    pub(super) fn new(shim: Option<u32>, group: Option<(Hierarchy, PathBuf)>) -> GroupMembership {
        let place = shim.zip(group).map(|(shim, (hierarchy, group))| Place { shim, hierarchy, group });
        GroupMembership { left: false, place, readings: 0 }
    }

    /// Checks, if it is time to: often at first, when tools move what they start, and rarely afterwards.
    pub(super) fn look(&mut self) {
        self.readings = self.readings.wrapping_add(1);
        let due = self.readings.is_power_of_two() || self.readings.is_multiple_of(EVERY);
        if let (false, true, Some(place)) = (self.left, due, &self.place) {
            self.left = place.has_been_left();
        }
    }
}

impl Place {
    fn has_been_left(&self) -> bool {
        pinfold_kernel::proc::tree::descendants(self.shim).into_iter().any(|pid| {
            // A process that has ended meanwhile is nowhere; until it is reaped it may be listed in another
            // group, and has no memory.
            let group = cgroup::folder_of(Some(pid), self.hierarchy);
            group.is_some_and(|group| {
                !group.starts_with(&self.group) && pinfold_kernel::proc::stat::lives(pid)
            })
        })
    }
}
