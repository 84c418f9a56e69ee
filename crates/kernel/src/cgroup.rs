//! Control groups: which one a process is in, which processes are in one, and how one is killed and removed.

use crate::sys;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// One of the two cgroup hierarchies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hierarchy {
    /// Version 2, with all controllers in one tree.
    Second,
    /// The memory controller's tree of version 1.
    Memory,
}

/// Returns the folder of the group that a process is in; `None` means this process.
#[must_use]
pub fn folder_of(process: Option<u32>, hierarchy: Hierarchy) -> Option<PathBuf> {
    let mount = mounted(hierarchy)?;
    let file = match process {
        None => PathBuf::from("/proc/self/cgroup"),
        Some(process) => PathBuf::from(format!("/proc/{process}/cgroup")),
    };
    let inside = inside(&text(&file)?, hierarchy)?;
    Some(mount.join(inside.trim_start_matches('/')))
}

/// Returns where a hierarchy is mounted. It is looked for only once, because it does not move while a system runs.
#[must_use]
pub fn mounted(hierarchy: Hierarchy) -> Option<&'static Path> {
    static SECOND: OnceLock<Option<PathBuf>> = OnceLock::new();
    static MEMORY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let known = match hierarchy {
        Hierarchy::Second => &SECOND,
        Hierarchy::Memory => &MEMORY,
    };
    known.get_or_init(|| mount(hierarchy)).as_deref()
}

/// Looks for the mount of a whole hierarchy.
#[must_use]
pub fn mount(hierarchy: Hierarchy) -> Option<PathBuf> {
    let mounts = text(Path::new("/proc/self/mountinfo"))?;
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

/// Returns the mount point in a line of mountinfo, if it is of this hierarchy.
fn mount_point(line: &str, hierarchy: Hierarchy) -> Option<String> {
    let (before, after) = line.split_once(" - ")?;
    let mut after = after.split(' ');
    let (kind, _source, options) = (after.next()?, after.next()?, after.next()?);
    let right = match hierarchy {
        Hierarchy::Second => kind == "cgroup2",
        Hierarchy::Memory => kind == "cgroup" && options.split(',').any(|option| option == "memory"),
    };
    // Only a mount of the whole hierarchy has the paths that /proc/self/cgroup shows.
    let mut fields = before.split(' ').skip(3);
    (right && fields.next()? == "/").then(|| fields.next().map(str::to_owned))?
}

/// Reads a file of the kernel as text.
fn text(path: &Path) -> Option<String> {
    sys::read_file(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a group, or one below it, has a living process.
///
/// # Errors
/// The kernel did not say.
pub fn is_populated(group: &Path) -> Result<bool, Errno> {
    let events = in_group(sys::read_file(&group.join("cgroup.events")))?.unwrap_or_default();
    Ok(events.split(|byte| *byte == b'\n').any(|line| line == b"populated 1"))
}

/// Returns the processes in a group and below it; 0 stands for a process of a namespace that cannot be seen from here.
///
/// # Errors
/// The kernel did not say.
pub fn members(group: &Path) -> Result<Vec<u32>, Errno> {
    let text = in_group(sys::read_file(&group.join("cgroup.procs")))?.unwrap_or_default();
    let mut pids: Vec<u32> =
        String::from_utf8_lossy(&text).lines().filter_map(|line| line.parse().ok()).collect();
    for name in in_group(sys::list(group))?.unwrap_or_default() {
        let below = group.join(name);
        if below.join("cgroup.procs").exists() {
            pids.extend(members(&below)?);
        }
    }
    Ok(pids)
}

/// A group that was removed is empty; any other error stays an error.
fn in_group<T>(result: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NOENT | Errno::NODEV | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Kills everything in a group at once, including what is being forked. Does nothing on a kernel without `cgroup.kill`.
pub fn kill(group: &Path) {
    write(&group.join("cgroup.kill"), "1");
}

/// Moves a process into a group, if that is allowed.
pub fn enter(group: &Path, pid: u32) {
    write(&group.join("cgroup.procs"), &pid.to_string());
}

fn write(path: &Path, text: &str) {
    if let Ok(file) = sys::open(path, OFlags::WRONLY) {
        let _ = sys::append(&file, text.as_bytes());
    }
}

/// Removes a group and the groups inside it; `BUSY` if something lives in one of them.
///
/// # Errors
/// The kernel's error.
pub fn remove(group: &Path) -> Result<(), Errno> {
    match rustix::fs::rmdir(group) {
        Err(Errno::BUSY | Errno::NOTEMPTY) => {
            groups_in(group).iter().try_for_each(|below| remove(below))?;
            rustix::fs::rmdir(group)
        }
        Err(Errno::NOENT) => Ok(()),
        done => done,
    }
}

/// Whether a group, given by its inode number, is somewhere below another.
#[must_use]
pub fn has_below(group: &Path, number: u64) -> bool {
    let is_it = |path: &Path| rustix::fs::stat(path).is_ok_and(|facts| facts.st_ino == number);
    groups_in(group).iter().any(|below| is_it(below) || has_below(below, number))
}

fn groups_in(group: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(group).into_iter().flatten().flatten();
    let groups = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    groups.map(|entry| entry.path()).collect()
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
