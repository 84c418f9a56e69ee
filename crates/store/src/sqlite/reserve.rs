//! Space reserved in advance: a file that is given back to the file system when a commit finds the disk full.

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Room to checkpoint a whole log, and as much again for what comes then.
const MOST: u64 = 6 << 20;
/// A disk with less than four times this free is too small to reserve anything on.
const LEAST: u64 = 256 << 10;
const PIECE: usize = 64 << 10;

/// The reserved space, and whether it exists.
#[derive(Debug)]
pub(crate) struct Reserve {
    path: Option<PathBuf>,
    /// The size that was given back and has not been reserved again yet.
    given: Option<u64>,
}

impl Reserve {
    /// Starts with what an earlier process reserved; if there is none, it is made later, when there is time.
    pub(crate) fn new(path: Option<PathBuf>) -> Reserve {
        Reserve { path, given: None }
    }

    /// Reserves space if the disk has plenty; returns whether nothing is missing.
    pub(crate) fn keep(&mut self) -> bool {
        let Some(path) = &self.path else { return true };
        if self.given.is_none() && size(path) > 0 {
            return true;
        }
        let free = free(path);
        let wanted = MOST.min(free / 4);
        // What was given back counts as free, too: that alone is not enough.
        if wanted < LEAST || free < self.given.map_or(0, |given| given + given / 2) {
            return self.given.is_none();
        }
        if make(path, wanted).is_ok() {
            self.given = None;
        } else {
            drop(fs::remove_file(path));
        }
        self.given.is_none()
    }

    /// Gives the space back; returns whether there was any.
    pub(crate) fn give_back(&mut self) -> bool {
        let Some(path) = &self.path else { return false };
        let kept = size(path);
        let given = kept > 0 && fs::remove_file(path).is_ok();
        if given {
            self.given = Some(kept);
        }
        given
    }

    /// Whether it was not given back, as far as is known.
    pub(crate) fn is_kept(&self) -> bool {
        self.given.is_none()
    }
}

/// Whether the file system of a file has no block or no inode left.
pub(crate) fn is_full(path: &Path) -> bool {
    let folder = path.parent().unwrap_or(Path::new("."));
    // A file system that does not count inodes reports none at all.
    statvfs(folder).is_ok_and(|room| room.f_bavail == 0 || (room.f_files > 0 && room.f_favail == 0))
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

fn free(path: &Path) -> u64 {
    let folder = path.parent().unwrap_or(Path::new("."));
    statvfs(folder).map_or(0, |room| room.f_bavail * room.f_frsize)
}

fn make(path: &Path, bytes: u64) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // Not every file system can promise blocks; then they are written.
    fallocate(&file, FallocateFlags::empty(), 0, bytes)
        .map_err(io::Error::from)
        .or_else(|_| fill(&mut file, bytes))
}

fn fill(file: &mut File, bytes: u64) -> io::Result<()> {
    let zeroes = vec![0; PIECE];
    for _ in 0..bytes / PIECE as u64 {
        file.write_all(&zeroes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_given_back_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reserve");
        let mut reserve = Reserve::new(Some(path.clone()));
        assert!(!reserve.give_back(), "nothing is there yet");
        assert!(reserve.keep() && size(&path) >= LEAST);
        assert!(reserve.give_back() && !path.exists() && !reserve.is_kept());
        assert!(!reserve.give_back());
        assert!(reserve.keep() && reserve.is_kept(), "there is room again");
    }
}
