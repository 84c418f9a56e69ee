//! A full disk: the same hint wherever it is met.

use pinfold_store::CommitError;
use rustix::io::Errno;
use std::error::Error;
use std::io::{self, ErrorKind};

/// What a person can do about it.
pub(crate) const HINT: &str = "the disk is full: make room on it (`df`), or remove files where it has no inode left \
     (`df -i`); `pinfold unlock session:NAME --kill` ends an agent without the daemon";

/// Whether an error or one of its causes is a full disk.
pub(crate) fn is_full(error: &(dyn Error + 'static)) -> bool {
    says_full(error) || error.source().is_some_and(is_full)
}

fn says_full(error: &(dyn Error + 'static)) -> bool {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    let number = error.downcast_ref::<Errno>();
    kind.is_some_and(|kind| [ErrorKind::StorageFull, ErrorKind::QuotaExceeded].contains(&kind))
        || number.is_some_and(|number| [Errno::NOSPC, Errno::DQUOT].contains(number))
        || matches!(error.downcast_ref(), Some(CommitError::StorageFull { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_seen_through_what_came_of_it() {
        let place = |source| pinfold_daemon::StartError::Place { path: "/h".into(), source };
        assert!(is_full(&place(io::Error::from_raw_os_error(28))));
        assert!(!is_full(&place(io::Error::from_raw_os_error(13))));
    }
}
