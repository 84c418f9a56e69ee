//! Who is at the other end of a socket: only processes of one user talk to each other.

use crate::raw;
use rustix::io::Errno;
use std::os::fd::AsFd;

/// Who is at the other end, as the kernel says. At a client's end that is whoever made the socket listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Other {
    /// Its user.
    pub user: u32,
    /// Nothing where it is in a pid namespace that cannot be seen from here.
    pub pid: Option<u32>,
}

impl Other {
    /// Asks the kernel.
    ///
    /// # Errors
    /// When the socket has no other end.
    pub fn of(socket: impl AsFd) -> Result<Other, Errno> {
        raw::peer(socket.as_fd()).map(|(pid, user)| Other { user, pid })
    }

    /// Whether it may be answered: it is ours, or root's, who may do everything anyway.
    #[must_use]
    pub fn may_ask(self) -> bool {
        self.is_own() || self.user == 0
    }

    /// Whether it may be told anything: it is ours.
    #[must_use]
    pub fn is_own(self) -> bool {
        self.user == rustix::process::geteuid().as_raw()
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
