//! Maps a directory to the lock files that represent it.
//!
//! The directory is opened once; path, device and inode come from that descriptor. It is locked exclusively
//! under its path and under device:inode, and every ancestor is shared, so a directory excludes its ancestors
//! and its descendants but not its siblings.

use crate::files::name::FileName;
use crate::resource::FileId;
use pinfold_kernel::sys;
use rustix::fs::{OFlags, StatxAttributes};
use rustix::io::Errno;
use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// How much of a record the names of ancestors may fill, including quotes and commas: half of it, which
/// leaves room for everything else.
const ABOVE_MAX: usize = crate::files::layout::RECORD_MAX / 2;
const QUOTES: usize = "\"\",".len();

/// How a lock file is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockMode {
    /// Together with other shared holders.
    Shared,
    /// By one holder alone.
    Exclusive,
}

/// One lock file and how it is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WantedFile {
    pub(crate) name: FileName,
    pub(crate) mode: LockMode,
    pub(crate) gated: Gated,
}

/// Whether shared and exclusive users meet at this file, so that it needs a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gated {
    Yes,
    No,
}

/// Why a directory cannot be locked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DirectoryError {
    /// Nothing is at the path.
    #[error("{} does not exist", path.display())]
    Missing {
        /// The path asked for.
        path: PathBuf,
    },
    /// Something else is at the path.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// The path asked for.
        path: PathBuf,
    },
    /// The path leads through a folder that may not be entered.
    #[error("{} may not be reached", path.display())]
    NotPermitted {
        /// The path asked for.
        path: PathBuf,
    },
    /// It was removed, or moved again and again, while it was being locked.
    #[error("{} was moved or removed while it was being locked", path.display())]
    Moved {
        /// The path asked for.
        path: PathBuf,
    },
    /// The kernel failed in another way.
    #[error("{} cannot be examined", path.display())]
    Failed {
        /// The path asked for.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: Errno,
    },
}

impl DirectoryError {
    fn new(path: &Path, errno: Errno) -> Self {
        let path = path.to_owned();
        match errno {
            Errno::NOENT => Self::Missing { path },
            Errno::NOTDIR => Self::NotADirectory { path },
            Errno::ACCESS | Errno::PERM => Self::NotPermitted { path },
            source => Self::Failed { path, source },
        }
    }
}

/// An open directory with its names.
#[derive(Debug)]
pub(crate) struct OpenDirectory {
    pub(crate) fd: OwnedFd,
    /// The visible path, without symbolic links.
    pub(crate) path: PathBuf,
    pub(crate) id: FileId,
    ancestors: Vec<(PathBuf, FileId)>,
    inside: Vec<FileId>,
}

impl OpenDirectory {
    /// Opens a directory and finds its names.
    pub(crate) fn open(path: &Path) -> Result<Self, DirectoryError> {
        let failed = |errno| DirectoryError::new(path, errno);
        let fd = sys::open(path, OFlags::PATH | OFlags::DIRECTORY).map_err(failed)?;
        let id = FileId::from(&sys::fstat(&fd).map_err(failed)?);
        let real = visible_path(&fd).map_err(failed)?;
        let steps = steps(&real).map_err(|errno| match errno {
            Errno::NOENT => DirectoryError::Moved { path: path.to_owned() },
            other => DirectoryError::new(path, other),
        })?;
        if steps.last().map(|step| step.id) != Some(id) {
            return Err(DirectoryError::Moved { path: path.to_owned() });
        }
        let inside = if steps.iter().skip(1).any(|step| step.mount_root) {
            inside_file_system(&steps)
        } else {
            Vec::new()
        };
        let mut ancestors: Vec<_> = steps.into_iter().map(|step| (step.path, step.id)).collect();
        ancestors.pop();
        Ok(Self { fd, path: real, id, ancestors, inside })
    }

    /// Returns the lock files, root to leaf.
    pub(crate) fn wanted(&self) -> Vec<WantedFile> {
        let mut wanted: Vec<WantedFile> =
            Vec::with_capacity(2 * self.ancestors.len() + self.inside.len() + 2);
        for (path, id) in &self.ancestors {
            add(&mut wanted, FileName::of_path(path), LockMode::Shared);
            add(&mut wanted, FileName::of_inode(*id), LockMode::Shared);
        }
        for id in &self.inside {
            add(&mut wanted, FileName::of_inode(*id), LockMode::Shared);
        }
        add(&mut wanted, FileName::of_path(&self.path), LockMode::Exclusive);
        add(&mut wanted, FileName::of_inode(self.id), LockMode::Exclusive);
        wanted
    }

    /// Returns the ancestor that a lock file represents.
    pub(crate) fn path_of(&self, file: &FileName) -> Option<&Path> {
        let is_it =
            |path: &Path, id: FileId| FileName::of_path(path) == *file || FileName::of_inode(id) == *file;
        self.ancestors.iter().find(|(path, id)| is_it(path, *id)).map(|(path, _)| path.as_path())
    }

    /// Returns the lock files of the ancestors by inode, root to leaf, as many as a record has room for, and
    /// whether some were left out.
    pub(crate) fn above(&self) -> (Vec<String>, bool) {
        let name = |id: &FileId| FileName::of_inode(*id).as_str().to_owned();
        let visible: Vec<String> = self.ancestors.iter().map(|(_, id)| name(id)).collect();
        let hidden: Vec<String> = self.inside.iter().map(name).collect();
        let length = |names: &[String]| names.iter().map(|name| name.len() + QUOTES).sum::<usize>();
        if length(&visible) + length(&hidden) <= ABOVE_MAX {
            return ([visible, hidden].concat(), false);
        }
        // Ancestors hidden by a mount are not on the visible path from the root: without them, any directory
        // may be one.
        if !hidden.is_empty() {
            return (Vec::new(), true);
        }
        let mut room = ABOVE_MAX;
        let fits = |name: &String| {
            let left = room.checked_sub(name.len() + QUOTES);
            room = left.unwrap_or(0);
            left.is_some()
        };
        (visible.into_iter().take_while(fits).collect(), true)
    }

    /// Whether the descriptor still has the same path, and the path still leads to it.
    pub(crate) fn check(&self) -> Result<(), DirectoryError> {
        let moved = || DirectoryError::Moved { path: self.path.clone() };
        let now = visible_path(&self.fd).map_err(|errno| DirectoryError::new(&self.path, errno))?;
        let there = sys::statx(&self.path).map_err(|_| moved())?;
        if now == self.path && FileId::from(&there) == self.id { Ok(()) } else { Err(moved()) }
    }
}

fn add(wanted: &mut Vec<WantedFile>, name: FileName, mode: LockMode) {
    // A bind mount inside itself makes a directory its own ancestor: exclusive wins.
    match wanted.iter_mut().find(|other| other.name == name) {
        Some(other) if mode == LockMode::Exclusive => other.mode = mode,
        Some(_) => {}
        None => wanted.push(WantedFile { name, mode, gated: Gated::Yes }),
    }
}

fn visible_path(fd: &OwnedFd) -> Result<PathBuf, Errno> {
    sys::read_link(Path::new(&format!("/proc/self/fd/{}", fd.as_raw_fd())))
}

struct Step {
    path: PathBuf,
    id: FileId,
    mount_root: bool,
}

fn steps(real: &Path) -> Result<Vec<Step>, Errno> {
    let mut steps = real.ancestors().map(step).collect::<Result<Vec<_>, _>>()?;
    steps.reverse();
    Ok(steps)
}

fn step(path: &Path) -> Result<Step, Errno> {
    let stat = sys::statx(path)?;
    let mount_root = stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
    Ok(Step { path: path.to_owned(), id: FileId::from(&stat), mount_root })
}

/// One line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    device: u64,
    /// The directory of the file system that is mounted.
    root: PathBuf,
    point: PathBuf,
}

/// Returns, for every bind mount on the path, the ancestors that the mounted directory has inside its file system.
fn inside_file_system(steps: &[Step]) -> Vec<FileId> {
    // Without mountinfo nothing more can be known; the visible ancestors are locked anyway.
    let Ok(text) = sys::read_file(Path::new("/proc/self/mountinfo")) else { return Vec::new() };
    let mounts: Vec<Mount> = text.split(|byte| *byte == b'\n').filter_map(parse_mount).collect();
    let mut found = Vec::new();
    for step in steps.iter().skip(1).filter(|step| step.mount_root) {
        // Of several mounts on one point, the last one is visible.
        let Some(mount) = mounts.iter().rev().find(|mount| mount.point == step.path) else { continue };
        found.extend(hidden_ancestors(mount, &mounts));
    }
    found
}

fn hidden_ancestors(bound: &Mount, mounts: &[Mount]) -> Vec<FileId> {
    let shows = |mount: &&Mount| {
        mount.device == bound.device && bound.root != mount.root && bound.root.starts_with(&mount.root)
    };
    let mut found = Vec::new();
    for mount in mounts.iter().filter(shows) {
        let Ok(relative) = bound.root.strip_prefix(&mount.root) else { continue };
        let visible = mount.point.join(relative);
        let ancestors = visible.ancestors().skip(1).take_while(|path| path.starts_with(&mount.point));
        let ids = ancestors.filter_map(|path| sys::statx(path).ok()).map(|stat| FileId::from(&stat));
        found.extend(ids.filter(|id| id.device == bound.device));
    }
    found
}

fn parse_mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ').skip(2);
    let device = std::str::from_utf8(fields.next()?).ok()?;
    let (major, minor) = device.split_once(':')?;
    let device = rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?);
    Some(Mount { device, root: unescape(fields.next()?), point: unescape(fields.next()?) })
}

/// Mountinfo writes space, tab, newline and backslash as octal.
fn unescape(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        let code =
            tail.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_exclusive_and_its_ancestors_are_shared_root_to_leaf() {
        let temp = tempfile::tempdir().unwrap();
        let deep = temp.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        let place = OpenDirectory::open(&deep).unwrap();
        let wanted = place.wanted();
        let (leaf, above) = wanted.split_at(wanted.len() - 2);
        assert_eq!(above.iter().map(|w| w.mode).collect::<Vec<_>>(), [LockMode::Exclusive; 2]);
        assert!(leaf.iter().all(|w| w.mode == LockMode::Shared));
        assert_eq!(leaf[0].name, FileName::of_path(Path::new("/")));
    }

    #[test]
    fn every_spelling_of_a_directory_wants_the_same_files() {
        let temp = tempfile::tempdir().unwrap();
        let x = temp.path().join("x");
        std::fs::create_dir(&x).unwrap();
        std::os::unix::fs::symlink(&x, temp.path().join("link")).unwrap();
        let expected = OpenDirectory::open(&x).unwrap().wanted();
        for spelling in ["link", "x/", "x/../x", "./x", "link/../x/."] {
            assert_eq!(
                OpenDirectory::open(&temp.path().join(spelling)).unwrap().wanted(),
                expected,
                "{spelling}"
            );
        }
    }

    #[test]
    fn what_is_no_directory_is_named_as_what_it_is() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("file");
        std::fs::write(&file, "").unwrap();
        let missing = temp.path().join("missing");
        assert_eq!(OpenDirectory::open(&missing).unwrap_err(), DirectoryError::Missing { path: missing });
        assert_eq!(OpenDirectory::open(&file).unwrap_err(), DirectoryError::NotADirectory { path: file });
    }

    #[test]
    fn a_directory_moved_or_replaced_after_it_was_opened_is_noticed() {
        let temp = tempfile::tempdir().unwrap();
        let x = temp.path().join("x");
        std::fs::create_dir(&x).unwrap();
        let place = OpenDirectory::open(&x).unwrap();
        assert_eq!(place.check(), Ok(()));
        std::fs::rename(&x, temp.path().join("y")).unwrap();
        assert!(place.check().is_err());
        std::fs::create_dir(&x).unwrap();
        assert!(place.check().is_err());
    }

    #[test]
    fn a_directory_named_like_a_removed_one_is_not_taken_for_it() {
        let temp = tempfile::tempdir().unwrap();
        let odd = temp.path().join("x (deleted)");
        std::fs::create_dir(&odd).unwrap();
        assert_eq!(OpenDirectory::open(&odd).unwrap().check(), Ok(()));
    }

    #[test]
    fn mountinfo_paths_are_unescaped() {
        let line = b"36 35 98:0 /mnt1\\040a /mnt2\\134b rw,noatime master:1 - ext3 /dev/root rw";
        let mount = parse_mount(line).unwrap();
        assert_eq!(mount.root, Path::new("/mnt1 a"));
        assert_eq!(mount.point, Path::new("/mnt2\\b"));
        assert_eq!(mount.device, rustix::fs::makedev(98, 0));
        assert_eq!(parse_mount(b""), None);
    }
}
