//! Tests whether locks on a folder's file system really exclude, before anything relies on them.
//!
//! Two descriptors of one process and two processes are tried. Network file systems are refused by their
//! type: they may exclude here and still grant the same lock on another machine.

use pinfold_kernel::sys;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// The file that is locked for the test; it stays, like every lock file.
const NAME: &str = "self-test";
const C_NAME: &std::ffi::CStr = c"self-test";

/// How a file system failed to exclude.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoExclusion {
    /// Locks on this type of file system reach other machines, or fail to reach them when they should.
    #[error("{name} is a network file system")]
    Network {
        /// The name of the file system.
        name: &'static str,
    },
    /// Two descriptors of one process both got the exclusive lock.
    #[error("two open files both got one exclusive lock")]
    TwoDescriptors,
    /// Two processes both got the exclusive lock.
    #[error("two processes both got one exclusive lock")]
    TwoProcesses,
    /// The lock was not free after its only holder closed it.
    #[error("a closed lock stayed locked")]
    Stuck,
    /// The file system has no flock.
    #[error("the file system has no file locks")]
    Unsupported,
}

/// What the test found, if nothing spoke against the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SelfTestOutcome {
    Excludes,
    /// Another process was testing at the same time, which shows exclusion but not all of it.
    BeingTested,
}

/// Returns the network file system that a `statfs` type stands for, if it is one.
pub(crate) fn network(kind: u64) -> Option<&'static str> {
    // Values of linux/magic.h and of the file systems' own headers; only the low 32 bits are used.
    Some(match kind & 0xFFFF_FFFF {
        0x6969 => "NFS",
        0x517B | 0xFF53_4D42 | 0xFE53_4D42 => "SMB",
        0x0102_1997 => "9p",
        0x00C3_6400 => "Ceph",
        0x0BD0_0BD0 => "Lustre",
        0x5346_414F | 0x6B41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x564C => "NCP",
        0x0116_1970 => "GFS2",
        0x7461_636F => "OCFS2",
        0x4750_4653 => "GPFS",
        0xAAD7_AAEA => "PanFS",
        0x1983_0326 => "BeeGFS",
        _ => return None,
    })
}

/// A failed test: locks do not exclude, or the test could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failed {
    No(NoExclusion),
    Kernel(Errno),
}

impl From<Errno> for Failed {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK => Self::No(NoExclusion::Unsupported),
            other => Self::Kernel(other),
        }
    }
}

/// Tests the folder.
pub(crate) fn run(folder: BorrowedFd<'_>) -> Result<SelfTestOutcome, Failed> {
    let first = open(folder)?;
    let second = open(folder)?;
    if try_exclusive(&first)? == Tried::Refused {
        return Ok(SelfTestOutcome::BeingTested);
    }
    if try_exclusive(&second)? == Tried::Granted {
        return Err(Failed::No(NoExclusion::TwoDescriptors));
    }
    if try_in_child(folder)? == Tried::Granted {
        return Err(Failed::No(NoExclusion::TwoProcesses));
    }
    drop(first);
    match try_exclusive(&second)? {
        Tried::Granted => Ok(SelfTestOutcome::Excludes),
        // Another process may have begun to test in between, or a child of ours that is being spawned may
        // hold a copy until its exec. Neither speaks against the file system.
        Tried::Refused => Ok(SelfTestOutcome::BeingTested),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tried {
    Granted,
    Refused,
}

fn open(folder: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::NOFOLLOW;
    sys::open_at(folder, Path::new(NAME), flags, Mode::RUSR | Mode::WUSR)
}

fn try_exclusive(fd: &OwnedFd) -> Result<Tried, Errno> {
    match sys::flock(fd, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Tried::Granted),
        Err(Errno::WOULDBLOCK) => Ok(Tried::Refused),
        Err(errno) => Err(errno),
    }
}

const GRANTED: u8 = b'g';
const REFUSED: u8 = b'r';

fn try_in_child(folder: BorrowedFd<'_>) -> Result<Tried, Errno> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let answer = |out: BorrowedFd<'_>| {
        let _ = rustix::io::write(out, &[attempt(folder)]);
    };
    let child = crate::raw::fork_and_answer(write.as_fd(), &answer)?;
    drop(write);
    let mut byte = [0];
    let count = loop {
        match rustix::io::read(&read, &mut byte) {
            Err(Errno::INTR) => {}
            other => break other,
        }
    };
    crate::raw::reap(child);
    match (count?, byte[0]) {
        (1, GRANTED) => Ok(Tried::Granted),
        (1, REFUSED) => Ok(Tried::Refused),
        _ => Err(Errno::IO),
    }
}

/// Runs in the forked child: system calls only, no allocation.
fn attempt(folder: BorrowedFd<'_>) -> u8 {
    let Ok(fd) = rustix::fs::openat(folder, C_NAME, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else {
        return b'e';
    };
    match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => GRANTED,
        Err(Errno::WOULDBLOCK) => REFUSED,
        Err(_) => b'e',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_folder_excludes() {
        let temp = tempfile::tempdir().unwrap();
        let folder = sys::open(temp.path(), OFlags::RDONLY | OFlags::DIRECTORY).unwrap();
        assert_eq!(run(folder.as_fd()), Ok(SelfTestOutcome::Excludes));
        assert_eq!(run(folder.as_fd()), Ok(SelfTestOutcome::Excludes));
    }

    #[test]
    fn network_file_systems_are_known_by_type_and_local_ones_are_not() {
        for (kind, name) in [(0x6969, "NFS"), (0xFF53_4D42, "SMB"), (0x0102_1997, "9p")] {
            assert_eq!(network(kind), Some(name));
        }
        // ext4, tmpfs, btrfs, xfs, overlayfs, f2fs, zfs, FUSE (virtiofs too: it is tried out).
        for kind in [
            0xEF53,
            0x0102_1994,
            0x9123_683E,
            0x5846_5342,
            0x794C_7630,
            0xF2F5_2010,
            0x2FC1_2FC1,
            0x6573_5546,
        ] {
            assert_eq!(network(kind), None, "{kind:x}");
        }
    }

    #[test]
    fn a_second_tester_sees_exclusion_and_does_not_complain() {
        let temp = tempfile::tempdir().unwrap();
        let folder = sys::open(temp.path(), OFlags::RDONLY | OFlags::DIRECTORY).unwrap();
        let other = open(folder.as_fd()).unwrap();
        sys::flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert_eq!(run(folder.as_fd()), Ok(SelfTestOutcome::BeingTested));
    }
}
