//! A control group for the tree of a run, where the shim may create one: to kill the tree at a stroke, to
//! prove after the loss of a shim that it is empty, and to count out-of-memory kills.

use crate::protocol::start::Contain;
use pinfold_kernel::cgroup::{self, Hierarchy, remove};
use pinfold_kernel::checksum::checksum;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// How many names are tried for a group.
const NAMES: u32 = 4;

/// The control group of a run.
#[derive(Debug)]
pub(crate) struct Group {
    path: PathBuf,
    /// Whether everything in it was killed at a stroke: see [`make`].
    killed: Cell<bool>,
    folder: OwnedFd,
    memory: Option<PathBuf>,
    kills_before: u64,
}

impl Group {
    /// Makes a group below the shim's own; `None` if the shim may not.
    ///
    /// Its name begins with the session's, so that the holder of the session's lock may remove what an
    /// earlier shim left behind, and ends with this process's own: no later shim ever has a group at this
    /// path, so membership proves whom a process belongs to.
    pub(crate) fn make(session: &Path, contain: Contain) -> Option<Self> {
        let slow = match contain {
            Contain::Reaper => return None,
            Contain::Group => false,
            Contain::GroupAndMemory => true,
        };
        let second = second()?;
        // The group of a shim of the previous version.
        let _ = remove(&second.join(family(session)));
        let name = own_names(session)?.find(|name| make(&second.join(name)).is_some())?;
        let path = second.join(&name);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(&path, flags, Mode::empty()).ok()?;
        if !path.join("cgroup.kill").exists() {
            let _ = remove(&path);
            return None;
        }
        let memory = if path.join("memory.events").exists() {
            Some(path.join("memory.events"))
        } else if slow {
            own(Hierarchy::Memory).map(|own| own.join(&name)).filter(|path| make(path).is_some())
        } else {
            None
        };
        let mut group = Self { path, killed: Cell::new(false), folder, memory, kills_before: 0 };
        group.kills_before = group.kills();
        Some(group)
    }

    /// Returns the group's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folder of the group that counts the memory.
    pub(crate) fn memory(&self) -> Option<&Path> {
        let memory = self.memory.as_deref()?;
        if memory.is_dir() { Some(memory) } else { memory.parent() }
    }

    /// Returns whether the group with this kernel number is this one, or was made inside it.
    pub(crate) fn has(&self, number: u64) -> bool {
        let is_this = rustix::fs::fstat(&self.folder).is_ok_and(|facts| facts.st_ino == number);
        is_this || self.has_groups() && cgroup::has_below(&self.path, number)
    }

    /// Returns the folder to be forked into.
    pub(crate) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Moves a process that could not be forked into the group.
    pub(crate) fn take(&self, pid: u32) {
        cgroup::enter(&self.path, pid);
    }

    /// Moves a process into the memory group of the first hierarchy, if that is a separate one.
    pub(crate) fn count_memory_of(&self, pid: u32) {
        if let Some(memory) = self.memory.as_ref().filter(|memory| memory.is_dir()) {
            cgroup::enter(memory, pid);
        }
    }

    /// Returns the same group for the next run, if nothing of the last one shows in it.
    pub(crate) fn again(self) -> Option<Self> {
        (!self.killed.get() && self.memory.is_none() && !self.has_groups()).then_some(self)
    }

    /// Returns whether the run made groups of its own inside it.
    fn has_groups(&self) -> bool {
        // A folder has two links, and one more for each folder in it.
        rustix::fs::fstat(&self.folder).is_ok_and(|facts| facts.st_nlink > 2)
    }

    /// Kills everything in the group at a stroke.
    pub(crate) fn kill(&self) {
        self.killed.set(true);
        cgroup::kill(&self.path);
    }

    /// Returns whether the kernel has killed something in it for memory since it was made.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.kills() > self.kills_before
    }

    fn kills(&self) -> u64 {
        let Some(memory) = &self.memory else { return 0 };
        let file = if memory.is_dir() { &memory.join("memory.oom_control") } else { memory };
        let text = pinfold_kernel::sys::read_file(file).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // If it cannot be removed, it stays; the next run takes another name, and a later sweep tries again.
        remove_when_empty(&self.path);
        if let Some(memory) = self.memory.as_ref().filter(|memory| memory.is_dir()) {
            remove_when_empty(memory);
        }
    }
}

/// A reaped process may count in its group a moment longer, on a busy machine for milliseconds. Nothing
/// announces when it no longer does.
const FADING: u32 = 50;

/// Removes a group in which nothing lives any more.
fn remove_when_empty(group: &Path) {
    for _ in 0..FADING {
        if remove(group) != Err(Errno::BUSY) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Removes what lost shims of a session left behind; `BUSY` if something lives in it.
pub(crate) fn sweep(session: &Path) -> Result<(), Errno> {
    for own in [second().map(Path::to_owned), own(Hierarchy::Memory)].into_iter().flatten() {
        for name in left_behind(&own, &family(session)) {
            remove(&own.join(name))?;
        }
    }
    Ok(())
}

/// Returns the groups of a session's shims below `own`, whichever version made them.
fn left_behind(own: &Path, family: &str) -> Vec<std::ffi::OsString> {
    let names = std::fs::read_dir(own).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let is_of = |name: &std::ffi::OsString| {
        let rest = name.to_str().and_then(|name| name.strip_prefix(family));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    names.filter(is_of).collect()
}

/// Returns how the names of all groups of a session begin; in the previous version, the whole name.
fn family(session: &Path) -> String {
    format!("{}{:016x}", super::PREFIX, checksum(session.as_os_str().as_bytes()))
}

/// Returns the names that a group of this process may have. The first is nearly always free: only processes
/// that do not belong to the run keep an earlier group from being removed.
fn own_names(session: &Path) -> Option<impl Iterator<Item = String>> {
    let own = pinfold_lock::process::own().ok()?;
    let (family, word) = (family(session), pinfold_lock::process::word(&own));
    Some((1..=NAMES).map(move |number| match number {
        1 => format!("{family}-{word}"),
        _ => format!("{family}-{number}-{word}"),
    }))
}

/// Finds the control groups' mount points, before a process that needs them is forked.
pub(crate) fn find_mounts() {
    for hierarchy in [Hierarchy::Second, Hierarchy::Memory] {
        let _ = cgroup::mounted(hierarchy);
    }
}

/// Returns the folder of the shim's own group in the second hierarchy; looked up once, because every restart
/// needs it.
fn second() -> Option<&'static Path> {
    static OWN: OnceLock<Option<PathBuf>> = OnceLock::new();
    OWN.get_or_init(|| own(Hierarchy::Second)).as_deref()
}

fn own(hierarchy: Hierarchy) -> Option<PathBuf> {
    cgroup::folder_of(None, hierarchy)
}

/// Makes a new group. One that an earlier run of this shim left behind is not reused: Linux 6.18 ends
/// whatever is forked into a group in which something was killed before.
fn make(path: &Path) -> Option<()> {
    match rustix::fs::mkdir(path, Mode::RWXU) {
        Ok(()) => Some(()),
        Err(Errno::EXIST) => {
            // Nothing of that run is alive.
            remove(path).ok()?;
            rustix::fs::mkdir(path, Mode::RWXU).ok()
        }
        Err(_) => None,
    }
}
