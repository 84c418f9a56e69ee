//! The process at the other end of a socket: only processes of one user talk to each other.
#![expect(unsafe_code, reason = "rustix does not know a peer without a pid, nor one by its pidfd")]

use crate::sys::last_errno;
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// The process at the other end, according to the kernel. For a client that is the process that made the socket listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Other {
    /// Its user id.
    pub user: u32,
    /// Its pid; `None` if it is in a pid namespace that cannot be seen from here.
    pub pid: Option<u32>,
}

impl Other {
    /// Asks the kernel about the other end of a socket.
    ///
    /// # Errors
    /// The socket has no other end.
    pub fn of(socket: impl AsFd) -> Result<Other, Errno> {
        credentials(socket.as_fd()).map(|(pid, user)| Other { user, pid })
    }

    /// Whether it may be answered: it is our user, or root, who may do anything anyway.
    #[must_use]
    pub fn may_ask(self) -> bool {
        self.is_own() || self.user == 0
    }

    /// Whether it may be told anything: it is our user.
    #[must_use]
    pub fn is_own(self) -> bool {
        self.user == rustix::process::geteuid().as_raw()
    }
}

/// `SO_PEERPIDFD` (Linux 6.5), which libc does not name; the same number on every architecture that std supports.
const PEER_PIDFD: libc::c_int = 77;

/// Returns the pid and user of the process that connected. rustix does not know a peer without a pid.
fn credentials(socket: BorrowedFd<'_>) -> Result<(Option<u32>, u32), Errno> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: both places live through the call, and `length` is the size of the one that is written to.
    let asked = unsafe {
        let place = (&raw mut found).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, place, &raw mut length)
    };
    match asked {
        0 => Ok((u32::try_from(found.pid).ok().filter(|pid| *pid > 0), found.uid)),
        _ => Err(last_errno()),
    }
}

/// Returns the process that connected, even if its pid has been reused since.
///
/// # Errors
/// The kernel is older than Linux 6.5, or the process has gone.
pub fn pidfd(socket: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let mut found: RawFd = -1;
    let mut length = size_of::<RawFd>() as libc::socklen_t;
    // SAFETY: both places live through the call, and `length` is the size of the one that is written to.
    let asked = unsafe {
        let place = (&raw mut found).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, PEER_PIDFD, place, &raw mut length)
    };
    match asked {
        // SAFETY: the kernel made this descriptor for us, and nothing else knows of it.
        0 => Ok(unsafe { OwnedFd::from_raw_fd(found) }),
        _ => Err(last_errno()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_other_end_of_an_own_socket_is_this_process() {
        let (one, _other) = UnixStream::pair().unwrap();
        let other = Other::of(&one).unwrap();
        assert_eq!(other, Other { user: rustix::process::geteuid().as_raw(), pid: Some(std::process::id()) });
        assert!(other.is_own() && other.may_ask());
    }

    #[test]
    fn another_user_is_neither_answered_nor_told_anything() {
        let stranger = Other { user: rustix::process::geteuid().as_raw() + 1, pid: None };
        assert!(!stranger.is_own() && !stranger.may_ask());
        assert!(Other { user: 0, pid: None }.may_ask());
    }
}
