//! A folder for what a shim has to write: it goes with the run, or with the next one where all were killed.

use crate::home::Home;
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The folder of one run in the foreground. The flock on it says that its owner lives.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    _lock: OwnedFd,
}

impl Scratch {
    /// Makes one below the folder for sockets, and removes those whose owners were killed.
    pub(super) fn make(runtime: &Path) -> io::Result<Scratch> {
        let all = runtime.join("runs");
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&all)?;
        sweep(&all);
        let mut number = crate::clock::boot().0;
        loop {
            let path = all.join(format!("{}-{number}", std::process::id()));
            number += 1;
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            // Somebody who swept may have been between the two lines: then there is no such folder any more.
            if let Some(lock) = lock(&path).filter(|_| path.exists()) {
                return Ok(Scratch { path, _lock: lock });
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The home with everything that is written in the scratch folder.
    pub(super) fn home(&self, home: &Home) -> io::Result<Home> {
        let home = Home { state: self.path.clone(), runtime: self.path.clone(), ..home.clone() };
        for folder in home.folders() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        Ok(home)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.path);
        // Taking the locks may have ended what was left of a run whose shim was killed.
        if let Some(all) = self.path.parent() {
            sweep(all);
        }
    }
}

fn lock(folder: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(folder, flags, Mode::empty()).ok()?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(file)
}

fn sweep(all: &Path) {
    for entry in std::fs::read_dir(all).into_iter().flatten().flatten() {
        let folder = entry.path();
        let Some(_lock) = lock(&folder) else { continue };
        let mut shims = std::fs::read_dir(folder.join("shims")).into_iter().flatten().flatten();
        // A group in which something lives stays; so does the folder that it is named after.
        if shims.all(|shim| pinfold_shim::client::sweep(&shim.path()).is_ok()) {
            _ = std::fs::remove_dir_all(&folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_its_owner_and_one_without_an_owner_with_the_next_run() {
        let temp = tempfile::tempdir().unwrap();
        let left = temp.path().join("runs/1-1");
        std::fs::create_dir_all(left.join("sessions/x")).unwrap();
        let (one, two) = (Scratch::make(temp.path()).unwrap(), Scratch::make(temp.path()).unwrap());
        assert!(!left.exists() && one.path().exists() && two.path().exists());
        assert_ne!(one.path(), two.path());
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists() && two.path().exists());
    }
}
