//! Processes held by a descriptor, so that no other process is ever mistaken for one of them.
#![expect(unsafe_code, reason = "requests to a pidfd have no safe form")]

use crate::sys::{self, last_errno};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;
use std::time::Duration;

/// `PID_FS_MAGIC`: pidfds are files of their own file system, with an inode per process (Linux 6.9).
const PIDFS: i64 = 0x5049_4446;

/// Whether every thread of the process has ended. A zombie leader with living threads has not.
///
/// # Errors
/// The kernel did not say.
pub fn has_ended(pidfd: impl AsFd) -> Result<bool, Errno> {
    let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
    loop {
        match sys::poll(&mut fds, Some(Duration::ZERO)) {
            Err(Errno::INTR) => {}
            other => return other.map(|count| count > 0),
        }
    }
}

/// Returns the inode, which no other process of this boot has, if the kernel gives one.
pub fn inode(pidfd: impl AsFd) -> Option<u64> {
    // All pidfds of a kernel are of the same kind.
    static KNOWN: OnceLock<bool> = OnceLock::new();
    let known = match KNOWN.get() {
        Some(known) => *known,
        None => {
            let kind = sys::fstatfs(pidfd.as_fd()).ok()?.f_type;
            *KNOWN.get_or_init(|| kind as i64 == PIDFS)
        }
    };
    known.then(|| sys::fstat(pidfd.as_fd()).ok().map(|stat| stat.st_ino))?
}

/// Whether a process is fully gone; a zombie is not. No signal is sent to it.
#[must_use]
pub fn is_reaped(pidfd: BorrowedFd<'_>) -> bool {
    let nothing: *const libc::siginfo_t = std::ptr::null();
    // SAFETY: no signal is sent, and the null pointer means that no details come with it.
    let asked = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), 0, nothing, 0) };
    asked == -1 && last_errno() == Errno::SRCH
}

/// Requests to a pidfd for the namespaces of its process (Linux 6.11), which libc does not name.
const NAMESPACES: [libc::c_ulong; 3] = [0xFF03, 0xFF09, 0xFF04];

/// Returns the inodes of a process's mount, user and network namespaces. Through the pidfd the kernel does
/// not have to create entries in `/proc`, which takes longer than all the rest of a look at a process.
///
/// # Errors
/// The kernel is too old, or the process has ended.
pub fn namespaces(pidfd: BorrowedFd<'_>) -> Result<[u64; 3], Errno> {
    let mut inodes = [0; 3];
    for (inode, request) in inodes.iter_mut().zip(NAMESPACES) {
        // SAFETY: the request takes no argument, and its answer is a descriptor that was made for us.
        let namespace = unsafe {
            match libc::ioctl(pidfd.as_raw_fd(), request as _, 0) {
                -1 => return Err(last_errno()),
                found => OwnedFd::from_raw_fd(found),
            }
        };
        *inode = rustix::fs::fstat(&namespace)?.st_ino;
    }
    Ok(inodes)
}

/// `PIDFD_GET_INFO`, with the first form of its answer.
const GET_INFO: u64 = 0xC040_FF0B;
const INFO_GROUP: u64 = 1 << 2;
const INFO_EXIT: u64 = 1 << 3;

#[repr(C)]
struct Info {
    mask: u64,
    group: u64,
    numbers: [u32; 12],
}

/// Returns the version 2 control group that a process was in when it ended (Linux 6.15).
#[must_use]
pub fn last_group(pidfd: BorrowedFd<'_>) -> Option<u64> {
    let mut info = Info { mask: INFO_GROUP | INFO_EXIT, group: 0, numbers: [0; 12] };
    // SAFETY: the number of the request has the size of `info` in it, which lives through the call.
    let asked = unsafe { libc::ioctl(pidfd.as_raw_fd(), GET_INFO as _, &raw mut info) };
    let told = INFO_GROUP | INFO_EXIT;
    (asked == 0 && info.mask & told == told).then_some(info.group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_has_ended_and_was_not_reaped_is_told_from_one_that_was() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pidfd = sys::pidfd(child.id()).unwrap();
        assert_eq!(has_ended(&pidfd), Ok(false));
        drop(child.stdin.take());
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
        assert_eq!(sys::poll(&mut fds, Some(Duration::from_secs(20))), Ok(1), "it did not end");
        assert_eq!((has_ended(&pidfd), is_reaped(pidfd.as_fd())), (Ok(true), false));
        child.wait().unwrap();
        assert!(is_reaped(pidfd.as_fd()));
    }

    #[test]
    fn two_processes_never_have_one_inode() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let (own, other) = (sys::pidfd(std::process::id()).unwrap(), sys::pidfd(child.id()).unwrap());
        assert_eq!(inode(&own), inode(sys::pidfd(std::process::id()).unwrap()));
        assert!(inode(&own).is_none() || inode(&own) != inode(&other));
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
