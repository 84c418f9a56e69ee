//! Folders that belong to one user alone: how they are reached, created, opened and checked.
//!
//! A name can be made to lead elsewhere by any user who may write to a folder above it. So the path is walked
//! part by part, every part must belong to us or to root, and what was opened is judged by its descriptor.

use crate::sys;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

/// The kernel follows as many links on one path.
const MOST_LINKS: usize = 40;
const STICKY: u32 = 0o1000;

/// Why a folder is not ours alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotPrivate {
    /// It belongs to another user.
    #[error("{} belongs to user {owner}, not to user {caller}", path.display())]
    NotOurs {
        /// The folder.
        path: PathBuf,
        /// The user it belongs to.
        owner: u32,
        /// The user that asked.
        caller: u32,
    },
    /// Other users may look into it.
    #[error("{} is open to other users (mode {bits:04o})", path.display())]
    Open {
        /// The folder.
        path: PathBuf,
        /// Its permission bits.
        bits: u32,
    },
    /// Another user could put something else in its place.
    #[error("user {owner} decides what {} is: {} is theirs", path.display(), above.display())]
    Above {
        /// The folder that was wanted.
        path: PathBuf,
        /// The folder or link on the way to it.
        above: PathBuf,
        /// The user that one belongs to.
        owner: u32,
    },
    /// Any user could put something else in its place.
    #[error("other users may replace {}: they may write to {} (mode {bits:04o})", path.display(), above.display())]
    Writable {
        /// The folder that was wanted.
        path: PathBuf,
        /// The folder on the way to it.
        above: PathBuf,
        /// Its permission bits.
        bits: u32,
    },
    /// Something else is in its place: a file, or a link where none is allowed.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// The kernel failed.
    #[error("{} cannot be used", path.display())]
    System {
        /// The path.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: Errno,
    },
}

impl NotPrivate {
    fn system(path: &Path, errno: Errno) -> Self {
        let path = path.to_owned();
        match errno {
            Errno::NOTDIR | Errno::LOOP => Self::NotADirectory { path },
            source => Self::System { path, source },
        }
    }

    /// Returns the kernel's error, or the one it would have given.
    #[must_use]
    pub fn errno(&self) -> Errno {
        match self {
            Self::System { source, .. } => *source,
            Self::NotADirectory { .. } => Errno::NOTDIR,
            Self::NotOurs { .. } | Self::Open { .. } | Self::Above { .. } | Self::Writable { .. } => {
                Errno::ACCESS
            }
        }
    }
}

impl From<NotPrivate> for std::io::Error {
    fn from(error: NotPrivate) -> Self {
        Self::new(Self::from(error.errno()).kind(), error)
    }
}

/// Walks to a folder as the kernel would and returns where it really is; parts that do not exist are left as
/// they were named. Every folder and every link on the way must belong to us or to root, and no other user
/// may write to a folder unless it is sticky.
///
/// # Errors
/// Another user decides where the path leads.
pub fn way(path: &Path) -> Result<PathBuf, NotPrivate> {
    let whole = std::path::absolute(path).map_err(|_| NotPrivate::system(path, Errno::INVAL))?;
    let mut walk = Walk { wanted: path, at: PathBuf::from("/"), ahead: parts(&whole), links: 0 };
    let mut above = look(&walk.at)?;
    while let Some(part) = walk.ahead.pop_front() {
        if part == ".." {
            walk.at.pop();
            above = look(&walk.at)?;
            continue;
        }
        check_above(&above, &walk.at, path)?;
        let next = walk.at.join(&part);
        let facts = match look(&next) {
            Ok(facts) => facts,
            Err(error) if error.errno() == Errno::NOENT => {
                return Ok(walk.ahead.iter().fold(next, |way, part| way.join(part)));
            }
            Err(error) => return Err(error),
        };
        if FileType::from_raw_mode(facts.st_mode) == FileType::Symlink {
            walk.follow(&next, &facts)?;
            above = look(&walk.at)?;
        } else {
            (walk.at, above) = (next, facts);
        }
    }
    Ok(walk.at)
}

/// How far a walk has come.
struct Walk<'a> {
    wanted: &'a Path,
    at: PathBuf,
    ahead: VecDeque<OsString>,
    links: usize,
}

impl Walk<'_> {
    fn follow(&mut self, link: &Path, facts: &Stat) -> Result<(), NotPrivate> {
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(NotPrivate::system(self.wanted, Errno::LOOP));
        }
        if !is_trusted(facts.st_uid) {
            let (path, above) = (self.wanted.to_owned(), link.to_owned());
            return Err(NotPrivate::Above { path, above, owner: facts.st_uid });
        }
        let target = sys::read_link(link).map_err(|errno| NotPrivate::system(link, errno))?;
        if target.is_absolute() {
            self.at = PathBuf::from("/");
        }
        for part in parts(&target).into_iter().rev() {
            self.ahead.push_front(part);
        }
        Ok(())
    }
}

fn look(path: &Path) -> Result<Stat, NotPrivate> {
    sys::stat_at(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map_err(|errno| NotPrivate::system(path, errno))
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let named = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(named).collect()
}

/// Checks a folder on the way to another.
fn check_above(facts: &Stat, above: &Path, wanted: &Path) -> Result<(), NotPrivate> {
    let (path, above) = (|| wanted.to_owned(), || above.to_owned());
    if !is_trusted(facts.st_uid) {
        return Err(NotPrivate::Above { path: path(), above: above(), owner: facts.st_uid });
    }
    let bits = facts.st_mode & 0o7777;
    let by_group = || bits & 0o020 != 0 && !is_own_group(facts.st_gid);
    if bits & STICKY == 0 && (bits & 0o002 != 0 || by_group()) {
        return Err(NotPrivate::Writable { path: path(), above: above(), bits });
    }
    Ok(())
}

/// Whether the owner is us, root, or a user that this user namespace does not know: there, root is not known either.
fn is_trusted(owner: u32) -> bool {
    owner == 0 || owner == rustix::process::geteuid().as_raw() || is_unmapped(owner)
}

fn is_unmapped(owner: u32) -> bool {
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u32>().ok();
    if number("/proc/sys/kernel/overflowuid") != Some(owner) {
        return false;
    }
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    // The initial namespace maps all users, in one line.
    map.split_whitespace().collect::<Vec<_>>() != ["0", "0", "4294967295"]
}

/// Many systems give every user a group of its own, and everything the user creates is writable by that group.
fn is_own_group(group: u32) -> bool {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    group == rustix::process::getegid().as_raw()
        && has_one_member(
            group,
            rustix::process::geteuid().as_raw(),
            &read("/etc/passwd"),
            &read("/etc/group"),
        )
}

fn has_one_member(group: u32, user: u32, passwd: &str, groups: &str) -> bool {
    let users: Vec<Vec<&str>> = passwd.lines().map(|line| line.split(':').collect()).collect();
    let is = |field: Option<&&str>, id: u32| field.is_some_and(|text| text.parse() == Ok(id));
    let own: Vec<&str> = users.iter().filter(|user_| is(user_.get(2), user)).map(|user| user[0]).collect();
    let by_login = users.iter().filter(|one| is(one.get(3), group)).all(|one| is(one.get(2), user));
    let listed = groups.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let mut members = listed.filter(|one| is(one.get(2), group)).flat_map(|one| {
        one.get(3)
            .into_iter()
            .flat_map(|names| names.split(','))
            .filter(|name| !name.is_empty())
            .collect::<Vec<_>>()
    });
    by_login && members.all(|name| own.contains(&name))
}

/// What to do with a folder of ours that others may look into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wider {
    /// Leave it alone: a person may have set it up that way.
    Refuse,
    /// Correct its mode: it is known to be the caller's.
    Tighten,
}

/// Opens a folder and creates it, with everything missing above it, if it does not exist: a real directory of
/// this user, closed to all others. Also returns the mode that was found.
///
/// # Errors
/// It is not ours alone.
pub fn open(path: &Path, wider: Wider) -> Result<(OwnedFd, u32), NotPrivate> {
    let failed = |errno| NotPrivate::system(path, errno);
    let dir = match open_dir(path) {
        Err(Errno::NOENT) => make(path).and_then(|()| open_dir(path)),
        other => other,
    }
    .map_err(failed)?;
    let facts = sys::fstat(&dir).map_err(failed)?;
    let bits = check(&dir, &facts, path, wider)?;
    Ok((dir, bits))
}

/// Creates a folder if it does not exist, and checks it.
///
/// # Errors
/// It is not ours alone.
pub fn make_private(path: &Path, wider: Wider) -> Result<(), NotPrivate> {
    open(path, wider).map(drop)
}

/// Opens a directory without following a link.
///
/// # Errors
/// The kernel's error.
pub fn open_dir(path: &Path) -> Result<OwnedFd, Errno> {
    sys::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW)
}

/// Creates a folder for its owner alone, with everything missing above it.
///
/// # Errors
/// The kernel's error.
pub fn make(path: &Path) -> Result<(), Errno> {
    match sys::make_dir(path) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(Errno::NOENT) => {
            let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).ok_or(Errno::NOENT)?;
            make(parent)?;
            match sys::make_dir(path) {
                Ok(()) | Err(Errno::EXIST) => Ok(()),
                Err(errno) => Err(errno),
            }
        }
        Err(errno) => Err(errno),
    }
}

/// Judges a folder that was opened, and returns the mode that was found.
///
/// # Errors
/// It is not ours alone.
pub fn check(dir: impl AsFd, facts: &Stat, path: &Path, wider: Wider) -> Result<u32, NotPrivate> {
    let caller = rustix::process::geteuid().as_raw();
    if facts.st_uid != caller {
        return Err(NotPrivate::NotOurs { path: path.to_owned(), owner: facts.st_uid, caller });
    }
    let bits = facts.st_mode & 0o7777;
    match wider {
        _ if bits & 0o077 == 0 => {}
        Wider::Refuse => return Err(NotPrivate::Open { path: path.to_owned(), bits }),
        Wider::Tighten => {
            sys::change_mode(dir, Mode::RWXU).map_err(|errno| NotPrivate::system(path, errno))?;
        }
    }
    Ok(bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn set_mode(path: &Path, bits: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    /// Creates a folder with a safe path: the usual one for temporary files may be a link.
    fn temp() -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().canonicalize().unwrap();
        (temp, path)
    }

    #[test]
    fn a_folder_that_is_missing_is_made_private_with_those_above() {
        let (_temp, root) = temp();
        let (_, bits) = open(&root.join("a/b"), Wider::Refuse).unwrap();
        assert_eq!((bits, mode(&root.join("a")), mode(&root.join("a/b"))), (0o700, 0o700, 0o700));
    }

    #[test]
    fn an_open_folder_is_tightened_only_where_it_is_known_to_be_ours() {
        let (_temp, root) = temp();
        let path = root.join("x");
        std::fs::create_dir(&path).unwrap();
        set_mode(&path, 0o755);
        assert_eq!(
            open(&path, Wider::Refuse).unwrap_err(),
            NotPrivate::Open { path: path.clone(), bits: 0o755 }
        );
        assert_eq!(mode(&path), 0o755);
        assert_eq!(open(&path, Wider::Tighten).unwrap().1, 0o755);
        assert_eq!(mode(&path), 0o700);
    }

    #[test]
    fn a_link_in_place_of_a_folder_is_not_followed() {
        let (_temp, root) = temp();
        std::fs::create_dir(root.join("there")).unwrap();
        set_mode(&root.join("there"), 0o755);
        symlink("there", root.join("link")).unwrap();
        let error = open(&root.join("link"), Wider::Tighten).unwrap_err();
        assert_eq!(error, NotPrivate::NotADirectory { path: root.join("link") });
        assert_eq!(mode(&root.join("there")), 0o755);
    }

    #[test]
    fn a_way_over_own_links_leads_where_they_lead() {
        let (_temp, root) = temp();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        symlink("../a", root.join("a/self")).unwrap();
        symlink(root.join("a/self/b"), root.join("link")).unwrap();
        assert_eq!(way(&root.join("link")).unwrap(), root.join("a/b"));
        assert_eq!(way(&root.join("link/new/one")).unwrap(), root.join("a/b/new/one"));
        symlink("loop", root.join("loop")).unwrap();
        assert_eq!(way(&root.join("loop")).unwrap_err().errno(), Errno::NOTDIR);
    }

    #[test]
    fn a_way_that_others_may_change_is_refused() {
        let (_temp, root) = temp();
        let wanted = root.join("open/home");
        std::fs::create_dir_all(&wanted).unwrap();
        for (bits, usable) in [(0o777, false), (0o1777, true), (0o755, true), (0o1775, true)] {
            set_mode(&root.join("open"), bits);
            assert_eq!(way(&wanted).is_ok(), usable, "{bits:o}");
        }
    }

    #[test]
    fn the_folder_and_the_link_of_another_user_are_no_way() {
        crate::rights::needs!(OtherUser);
        let (_temp, root) = temp();
        std::fs::create_dir_all(root.join("theirs/home")).unwrap();
        std::os::unix::fs::chown(root.join("theirs"), Some(12345), None).unwrap();
        let found = way(&root.join("theirs/home")).unwrap_err();
        assert!(matches!(found, NotPrivate::Above { owner: 12345, .. }), "{found:?}");
        symlink("/root", root.join("link")).unwrap();
        std::os::unix::fs::lchown(root.join("link"), Some(12345), None).unwrap();
        let found = way(&root.join("link")).unwrap_err();
        assert!(matches!(found, NotPrivate::Above { owner: 12345, .. }), "{found:?}");
    }

    #[test]
    fn a_group_is_ones_own_while_nobody_else_is_in_it() {
        let passwd = "root:x:0:0::/root:/bin/sh\nu:x:7:7::/home/u:/bin/sh\no:x:8:8::/home/o:/bin/sh\n";
        for (groups, own) in [("u:x:7:\n", true), ("u:x:7:u\n", true), ("u:x:7:u,o\n", false), ("", true)] {
            assert_eq!(has_one_member(7, 7, passwd, groups), own, "{groups}");
        }
        assert!(!has_one_member(7, 7, &format!("{passwd}p:x:9:7::/home/p:/bin/sh\n"), "u:x:7:\n"));
    }
}
