//! Control groups: which one a process is in, and what may be made below the own one.

use crate::command::Contain;
use crate::keep::group::Group;
use crate::keep::read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// How the names of the groups of runs begin.
pub const PREFIX: &str = "pinfold-";

/// One of the two kinds of hierarchies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hierarchy {
    /// The second one, with all controllers in one tree.
    Second,
    /// The first one's tree of the memory controller.
    Memory,
}

/// The folder of the group that a process is in; of this process without one.
#[must_use]
pub fn folder_of(process: Option<u32>, hierarchy: Hierarchy) -> Option<PathBuf> {
    let mount = mounted(hierarchy)?;
    let file = match process {
        None => PathBuf::from("/proc/self/cgroup"),
        Some(process) => PathBuf::from(format!("/proc/{process}/cgroup")),
    };
    let inside = inside(&read(&file)?, hierarchy)?;
    Some(mount.join(inside.trim_start_matches('/')))
}

/// Where a hierarchy is mounted: looked for once, for nobody mounts it elsewhere while a system runs.
pub(crate) fn mounted(hierarchy: Hierarchy) -> Option<&'static Path> {
    static SECOND: OnceLock<Option<PathBuf>> = OnceLock::new();
    static MEMORY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let known = match hierarchy {
        Hierarchy::Second => &SECOND,
        Hierarchy::Memory => &MEMORY,
    };
    known.get_or_init(|| mount(hierarchy)).as_deref()
}

/// Where a hierarchy is mounted as a whole.
#[must_use]
pub fn mount(hierarchy: Hierarchy) -> Option<PathBuf> {
    let mounts = read(Path::new("/proc/self/mountinfo"))?;
    mounts.lines().find_map(|line| mount_point(line, hierarchy)).map(PathBuf::from)
}

fn inside(groups: &str, hierarchy: Hierarchy) -> Option<String> {
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let right = match hierarchy {
            Hierarchy::Second => number == "0" && controllers.is_empty(),
            Hierarchy::Memory => controllers.split(',').any(|name| name == "memory"),
        };
        right.then(|| path.to_owned())
    })
}

/// The mount point that a line of mountinfo tells, when it is of this hierarchy.
fn mount_point(line: &str, hierarchy: Hierarchy) -> Option<String> {
    let (before, after) = line.split_once(" - ")?;
    let mut after = after.split(' ');
    let (kind, _source, options) = (after.next()?, after.next()?, after.next()?);
    let right = match hierarchy {
        Hierarchy::Second => kind == "cgroup2",
        Hierarchy::Memory => kind == "cgroup" && options.split(',').any(|option| option == "memory"),
    };
    // Only a mount of the whole hierarchy has the paths that /proc/self/cgroup tells.
    let mut fields = before.split(' ').skip(3);
    (right && fields.next()? == "/").then(|| fields.next().map(str::to_owned))?
}

/// What a run started from this process would be kept in: found out by making it, and removing it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The folder below which a group that can be killed at a stroke is made.
    pub group: Option<PathBuf>,
    /// The folder below which a group that counts memory is made.
    pub memory: Option<PathBuf>,
}

/// Tries what a run with a memory limit would be given.
#[must_use]
pub fn probe() -> Kept {
    let name = PathBuf::from(format!("probe of {}", std::process::id()));
    let Some(group) = Group::make(&name, Contain::GroupAndMemory) else {
        return Kept { group: None, memory: None };
    };
    let below = |folder: Option<&Path>| folder.and_then(Path::parent).map(Path::to_owned);
    Kept { group: below(Some(group.path())), memory: below(group.memory()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_point_is_that_of_the_right_hierarchy() {
        let second = "35 25 0:30 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw";
        let memory = "31 25 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
        let part = "31 25 0:27 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup rw";
        assert_eq!(mount_point(second, Hierarchy::Second).as_deref(), Some("/sys/fs/cgroup/unified"));
        assert_eq!(mount_point(memory, Hierarchy::Memory).as_deref(), Some("/sys/fs/cgroup/memory"));
        assert_eq!(mount_point(second, Hierarchy::Memory), None);
        assert_eq!(mount_point(memory, Hierarchy::Second), None);
        assert_eq!(mount_point(part, Hierarchy::Second), None);
    }

    #[test]
    fn the_group_inside_is_that_of_the_right_hierarchy() {
        let both = "4:cpuacct,memory:/a:b\n1:name=systemd:/x\n0::/c\n";
        assert_eq!(inside(both, Hierarchy::Memory).as_deref(), Some("/a:b"));
        assert_eq!(inside(both, Hierarchy::Second).as_deref(), Some("/c"));
        assert_eq!(inside("0::/c\n", Hierarchy::Memory), None);
    }
}
