//! The disk usage of the home: the database, the locks, and the output of all sessions.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, openat, statat};
use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// How long a figure is reused: clients that ask again and again do not cause a walk each time.
const STAYS: Duration = Duration::from_secs(10);

/// The size of a folder, as it was a moment ago.
#[derive(Debug)]
pub(crate) struct Disk {
    folder: PathBuf,
    measured: Mutex<Option<(Instant, u64)>>,
}

impl Disk {
    pub(crate) fn new(folder: PathBuf) -> Disk {
        Disk { folder, measured: Mutex::new(None) }
    }

    /// The bytes used, measured now or not long before.
    pub(crate) async fn used(&self, now: Instant) -> u64 {
        let mut measured = self.measured.lock().await;
        if let Some((_, bytes)) = measured.filter(|(then, _)| now.saturating_duration_since(*then) < STAYS) {
            return bytes;
        }
        let folder = self.folder.clone();
        let bytes = tokio::task::spawn_blocking(move || size_of(&folder)).await.unwrap_or(0);
        *measured = Some((now, bytes));
        bytes
    }
}

fn size_of(folder: &Path) -> u64 {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, folder, flags, Mode::empty()).map_or(0, |folder| size_below(&folder))
}

/// A thousand sessions are five thousand entries: none is looked up by its whole path, or twice.
fn size_below(folder: &OwnedFd) -> u64 {
    let mut room = Vec::with_capacity(4096);
    let mut entries = RawDir::new(folder, room.spare_capacity_mut());
    let mut bytes = 0;
    while let Some(Ok(entry)) = entries.next() {
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        bytes += match entry.file_type() {
            // Some file systems do not say what an entry is.
            FileType::Directory | FileType::Unknown => size_of_either(folder, name),
            FileType::Socket => 0,
            FileType::RegularFile
            | FileType::Symlink
            | FileType::Fifo
            | FileType::CharacterDevice
            | FileType::BlockDevice => size_of_file(folder, name),
        };
    }
    bytes
}

fn size_of_either(folder: &OwnedFd, name: &CStr) -> u64 {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(folder, name, flags, Mode::empty()) {
        Ok(below) => size_below(&below),
        Err(_) => size_of_file(folder, name),
    }
}

fn size_of_file(folder: &OwnedFd, name: &CStr) -> u64 {
    let facts = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    facts.map_or(0, |facts| u64::try_from(facts.st_blocks).unwrap_or(0) * 512)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn everything_below_is_counted_and_the_figure_stays_for_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        std::fs::write(folder.path().join("c"), [1; 100_000]).unwrap();
        std::fs::write(below.join("d"), [1; 200_000]).unwrap();
        let disk = Disk::new(folder.path().to_owned());
        let begun = Instant::now();
        let first = disk.used(begun).await;
        assert!((300_000..400_000).contains(&first), "{first}");
        std::fs::write(below.join("e"), [1; 400_000]).unwrap();
        assert_eq!(disk.used(begun + STAYS / 2).await, first);
        assert!(disk.used(begun + STAYS).await >= first + 400_000);
        let nowhere = Disk::new(folder.path().join("nowhere"));
        assert_eq!(nowhere.used(begun).await, 0);
    }
}
