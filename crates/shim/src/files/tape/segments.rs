//! The files of a tape: which ones exist, and whether each is what its name says.

use super::format::{SEGMENT_HEAD, is_head_of};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Digits of the highest position, so that names sort like positions.
const DIGITS: usize = 20;

/// Returns the path of the segment that begins at a position.
pub(super) fn path(folder: &Path, base: u64) -> PathBuf {
    folder.join(format!("{base:0DIGITS$}"))
}

/// Returns the first positions of all segments, in order; empty if there is no folder.
pub(super) fn list(folder: &Path) -> Result<Vec<u64>, Errno> {
    let errno = |error: std::io::Error| error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
    let entries = match std::fs::read_dir(folder).map_err(errno) {
        Ok(entries) => entries,
        Err(Errno::NOENT) => return Ok(Vec::new()),
        Err(errno) => return Err(errno),
    };
    let mut bases = Vec::new();
    for entry in entries {
        bases.extend(entry.map_err(errno)?.file_name().to_str().and_then(base));
    }
    bases.sort_unstable();
    Ok(bases)
}

fn base(name: &str) -> Option<u64> {
    let all_digits = name.len() == DIGITS && name.bytes().all(|byte| byte.is_ascii_digit());
    name.parse().ok().filter(|_| all_digits)
}

/// Opens a segment for reading; `None` if it is missing, or is not (or not yet) the one that its name says.
pub(super) fn open(folder: &Path, base: u64) -> Result<Option<OwnedFd>, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let open = |more| rustix::fs::open(path(folder, base), flags | more, Mode::empty());
    // Otherwise every line that is read would be a change of the file that goes to the disk. Only the owner may ask for it.
    let opened = match open(OFlags::NOATIME) {
        Err(Errno::PERM) => open(OFlags::empty()),
        opened => opened,
    };
    match opened {
        Ok(fd) => Ok(has_head(&fd, base)?.then_some(fd)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Returns whether a file has the head of the segment at a position.
pub(super) fn has_head(fd: &OwnedFd, base: u64) -> Result<bool, Errno> {
    let mut bytes = [0; SEGMENT_HEAD];
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pread(fd, &mut bytes[done..], done as u64) {
            Ok(0) => return Ok(false),
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(is_head_of(base, &bytes))
}

/// Writes several pieces one after the other, all or nothing: half of them must not stay.
pub(super) fn write(fd: &OwnedFd, at: u64, mut pieces: [&[u8]; 4]) -> Result<(), Errno> {
    let mut next = at;
    while pieces.iter().any(|piece| !piece.is_empty()) {
        match rustix::io::pwritev(fd, &pieces.map(IoSlice::new), next) {
            Ok(0) => return undone(fd, at, Errno::NOSPC),
            Ok(count) => {
                next += count as u64;
                pass(&mut pieces, count);
            }
            Err(Errno::INTR) => {}
            Err(errno) => return undone(fd, at, errno),
        }
    }
    Ok(())
}

fn undone(fd: &OwnedFd, at: u64, errno: Errno) -> Result<(), Errno> {
    // If it cannot be cut, the next try overwrites it, and no reader accepts half an entry.
    let _ = rustix::fs::ftruncate(fd, at);
    Err(errno)
}

fn pass(pieces: &mut [&[u8]; 4], mut count: usize) {
    for piece in pieces {
        let part = count.min(piece.len());
        *piece = &piece[part..];
        count -= part;
    }
}
