//! A folder for what a shim has to write: removed with the run, or by the next run if everything was killed.

use crate::define::home::Home;
use pinfold_kernel::private::{self, Wider};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Everything below this name is ours. Other programs do not use it: a home may be any folder.
const FOLDER: &str = ".pinfold-runs";
/// A folder is removed with its content only if this file in it says that we made it.
const MARKER: &str = ".made-by-pinfold";

/// The folder of one run in the foreground. The flock on it shows that its owner is alive.
#[derive(Debug)]
pub(super) struct ScratchFolder {
    place: PathBuf,
    path: PathBuf,
    name: String,
    all: OwnedFd,
    _lock: OwnedFd,
}

impl ScratchFolder {
    /// Makes one below the folder for sockets, and removes those whose owners were killed.
    pub(super) fn make(runtime: &Path) -> io::Result<ScratchFolder> {
        let place = runtime.join(FOLDER);
        let all = own_folder(runtime)?;
        sweep(all.as_fd(), &place);
        let mut number = crate::clock::boot().0;
        loop {
            let name = format!("{}-{number}", std::process::id());
            number += 1;
            match rustix::fs::mkdirat(&all, &name, Mode::RWXU) {
                Err(Errno::EXIST) => continue,
                made => made?,
            }
            // Another process may have swept between these lines: then the folder is gone again.
            let lock = mark(all.as_fd(), &name).and_then(|()| lock(all.as_fd(), &name));
            if let Some(lock) = lock.filter(|_| is_there(all.as_fd(), &name)) {
                return Ok(ScratchFolder { path: place.join(&name), place, name, all, _lock: lock });
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The home, with everything that is written moved to the scratch folder.
    pub(super) fn home(&self, home: &Home) -> io::Result<Home> {
        let home = Home { state: self.path.clone(), runtime: self.path.clone(), ..home.clone() };
        for folder in home.folders() {
            private::make_private(&folder, Wider::Refuse)?;
        }
        Ok(home)
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        remove(self.all.as_fd(), &self.name);
        // Taking the locks may have ended what was left of a run whose shim was killed.
        sweep(self.all.as_fd(), &self.place);
    }
}

/// Opens the folder of all of them, and makes it if it is missing: a real directory of this user, closed to
/// others.
fn own_folder(runtime: &Path) -> io::Result<OwnedFd> {
    let path = private::way(runtime)?.join(FOLDER);
    Ok(private::open(&path, Wider::Refuse).map(|(folder, _)| folder)?)
}

fn open_folder(at: BorrowedFd<'_>, path: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(at, path, flags, Mode::empty())
}

fn mark(all: BorrowedFd<'_>, name: &str) -> Option<()> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let folder = open_folder(all, name).ok()?;
    rustix::fs::openat(&folder, MARKER, flags, Mode::RUSR | Mode::WUSR).ok().map(drop)
}

fn lock(all: BorrowedFd<'_>, name: &str) -> Option<OwnedFd> {
    let file = open_folder(all, name).ok()?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(file)
}

fn is_there(all: BorrowedFd<'_>, name: &str) -> bool {
    rustix::fs::statat(all, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// Removes the folders of runs whose owners were killed, and nothing that we did not make. Control groups are
/// named after the path by which a run's owner knew its folder: that is `place`.
fn sweep(all: BorrowedFd<'_>, place: &Path) {
    let entries = std::fs::read_dir(through(all)).into_iter().flatten().flatten();
    for name in entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| is_ours(name))
    {
        let Some(folder) = lock(all, &name) else { continue };
        if !is_marked(&folder) {
            // Killed before it was marked: then it is empty, and this removes only empty folders.
            _ = rustix::fs::unlinkat(all, &name, AtFlags::REMOVEDIR);
            continue;
        }
        let mut shims =
            std::fs::read_dir(through(folder.as_fd()).join("shims")).into_iter().flatten().flatten();
        let known = |shim: std::fs::DirEntry| place.join(&name).join("shims").join(shim.file_name());
        // A group with live processes stays; so does the folder that it is named after.
        if shims.all(|shim| pinfold_shim::client::sweep(&known(shim)).is_ok()) {
            remove(all, &name);
        }
    }
}

/// Whether a name is a pid, a hyphen and a number.
fn is_ours(name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.split_once('-').is_some_and(|(pid, count)| number(pid) && number(count))
}

fn is_marked(folder: &OwnedFd) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let facts = rustix::fs::statat(folder, MARKER, AtFlags::SYMLINK_NOFOLLOW);
    facts.is_ok_and(|facts| facts.st_uid == own)
}

/// Removes a folder with everything in it; links in it are removed, not followed.
fn remove(all: BorrowedFd<'_>, name: &str) {
    _ = std::fs::remove_dir_all(through(all).join(name));
}

/// A path through a descriptor: whatever is renamed or linked meanwhile, it stays in that folder.
fn through(folder: BorrowedFd<'_>) -> PathBuf {
    format!("/proc/self/fd/{}", folder.as_raw_fd()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_its_owner_and_one_without_an_owner_with_the_next_run() {
        let temp = tempfile::tempdir().unwrap();
        let left = temp.path().join(FOLDER).join("1-1");
        drop(own_folder(left.parent().unwrap()).unwrap());
        std::fs::create_dir_all(left.join("sessions/x")).unwrap();
        std::fs::write(left.join(MARKER), "").unwrap();
        let (one, two) =
            (ScratchFolder::make(temp.path()).unwrap(), ScratchFolder::make(temp.path()).unwrap());
        assert!(!left.exists() && one.path().exists() && two.path().exists());
        assert_ne!(one.path(), two.path());
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists() && two.path().exists());
    }

    #[test]
    fn what_we_did_not_make_is_never_removed() {
        let temp = tempfile::tempdir().unwrap();
        let all = temp.path().join(FOLDER);
        drop(own_folder(&all).unwrap());
        for foreign in ["runs/exp1", ".pinfold-runs/exp1", ".pinfold-runs/1-2/data"] {
            std::fs::create_dir_all(temp.path().join(foreign)).unwrap();
        }
        std::fs::create_dir(temp.path().join("elsewhere")).unwrap();
        std::fs::write(temp.path().join("elsewhere").join(MARKER), "").unwrap();
        std::os::unix::fs::symlink(temp.path().join("elsewhere"), all.join("3-4")).unwrap();
        drop(ScratchFolder::make(temp.path()).unwrap());
        for kept in ["runs/exp1", ".pinfold-runs/exp1", ".pinfold-runs/1-2/data", "elsewhere"] {
            assert!(temp.path().join(kept).exists(), "{kept} was removed");
        }
    }

    #[test]
    fn a_link_or_an_open_folder_is_not_taken_for_ours() {
        use std::os::unix::fs::PermissionsExt;
        let temp = tempfile::tempdir().unwrap();
        let (victim, all) = (temp.path().join("victim"), temp.path().join(FOLDER));
        std::fs::create_dir_all(victim.join("1-1")).unwrap();
        std::os::unix::fs::symlink(&victim, &all).unwrap();
        assert!(ScratchFolder::make(temp.path()).is_err() && victim.join("1-1").exists());
        std::fs::remove_file(&all).unwrap();
        std::fs::create_dir(&all).unwrap();
        std::fs::set_permissions(&all, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(ScratchFolder::make(temp.path()).is_err());
    }
}
