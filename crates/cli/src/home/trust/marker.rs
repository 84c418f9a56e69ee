//! The file that marks a directory as a home of ours.
//!
//! It has an id, and identifies the directory it is for by inode and time of birth, which an archive or a
//! clone cannot know in advance.

use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Read, Write};
use std::os::fd::BorrowedFd;

/// The name of the marker file.
pub(super) const FILE: &str = ".pinfold-home";
const FIRST_LINE: &str = "pinfold home 1";
/// Far larger than any marker.
const LARGEST: u64 = 4096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marker {
    /// 32 hexadecimal digits.
    pub(super) id: String,
    /// The directory it was written for.
    directory: Option<String>,
}

impl Marker {
    pub(super) fn new() -> Marker {
        Marker { id: random(), directory: None }
    }

    /// Reads a directory's marker, if it is a complete file of ours.
    pub(super) fn read(dir: BorrowedFd<'_>) -> Option<Marker> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(dir, FILE, flags, Mode::empty()).ok()?;
        let facts = rustix::fs::fstat(&file).ok()?;
        let ours = facts.st_uid == rustix::process::geteuid().as_raw();
        if !ours || FileType::from_raw_mode(facts.st_mode) != FileType::RegularFile {
            return None;
        }
        let mut text = String::new();
        File::from(file).take(LARGEST).read_to_string(&mut text).ok()?;
        Marker::parse(&text)
    }

    /// Whether a directory has a marker that cannot be read.
    pub(super) fn is_broken(dir: BorrowedFd<'_>) -> bool {
        has(dir, FILE) && Marker::read(dir).is_none()
    }

    fn parse(text: &str) -> Option<Marker> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        let first = lines.next()?;
        let id = lines.next()?.strip_prefix("id ")?;
        let directory = lines.next()?.strip_prefix("directory ")?;
        let whole = first == FIRST_LINE && id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        whole.then(|| Marker { id: id.to_owned(), directory: Some(directory.to_owned()) })
    }

    /// Whether it was written for exactly this directory.
    pub(super) fn is_of(&self, dir: BorrowedFd<'_>) -> bool {
        self.directory.is_some() && self.directory == birth(dir)
    }

    /// Writes the marker into a directory, as its own. A concurrent reader sees all of it or nothing.
    pub(super) fn write(&self, dir: BorrowedFd<'_>) -> Result<(), Errno> {
        let directory = birth(dir).unwrap_or_else(|| "unknown".to_owned());
        let new = format!("{FILE}.{}", random());
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(dir, &new, flags, Mode::RUSR | Mode::WUSR)?;
        let text = format!("{FIRST_LINE}\nid {}\ndirectory {directory}\n", self.id);
        let written = File::from(file).write_all(text.as_bytes());
        let written = written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
        let put = written.and_then(|()| rustix::fs::renameat(dir, &new, dir, FILE));
        if put.is_err() {
            _ = rustix::fs::unlinkat(dir, &new, AtFlags::empty());
        }
        put
    }
}

/// A directory's inode and time of birth, if the file system records it.
fn birth(dir: BorrowedFd<'_>) -> Option<String> {
    let facts = rustix::fs::statx(dir, c"", AtFlags::EMPTY_PATH, StatxFlags::INO | StatxFlags::BTIME).ok()?;
    let told = facts.stx_mask & StatxFlags::BTIME.bits() != 0;
    let born = facts.stx_btime;
    told.then(|| format!("{} born {}.{:09}", facts.stx_ino, born.tv_sec, born.tv_nsec))
}

/// A random id. The standard library takes the keys of its hasher from the kernel's random numbers.
fn random() -> String {
    let number = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", number(), number())
}

/// Whether a name exists, without following a link.
pub(super) fn has(dir: BorrowedFd<'_>, name: &str) -> bool {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn opened(path: &std::path::Path) -> File {
        File::open(path).unwrap()
    }

    #[test]
    fn a_marker_is_read_back_and_is_that_of_its_directory_only() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (dir, copy) = (opened(one.path()), opened(other.path()));
        let made = Marker::new();
        made.write(dir.as_fd()).unwrap();
        std::fs::copy(one.path().join(FILE), other.path().join(FILE)).unwrap();
        let (read, copied) = (Marker::read(dir.as_fd()).unwrap(), Marker::read(copy.as_fd()).unwrap());
        assert_eq!((&read.id, &copied.id), (&made.id, &made.id));
        assert!(read.is_of(dir.as_fd()) && !copied.is_of(copy.as_fd()));
        assert_eq!(std::fs::read_dir(one.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_torn_marker_says_nothing() {
        let whole = "pinfold home 1\nid 0123456789abcdef0123456789abcdef\ndirectory 7 born 1.000000002\n";
        assert!(Marker::parse(whole).is_some());
        for cut in 0..whole.len() {
            assert_eq!(Marker::parse(&whole[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn a_link_in_place_of_the_marker_says_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let dir = opened(temp.path());
        Marker::new().write(dir.as_fd()).unwrap();
        std::fs::rename(temp.path().join(FILE), temp.path().join("real")).unwrap();
        std::os::unix::fs::symlink("real", temp.path().join(FILE)).unwrap();
        assert_eq!(Marker::read(dir.as_fd()), None);
    }
}
