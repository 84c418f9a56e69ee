//! A start that the system refused before anything was executed: a shortage passes, a wrong path stays wrong.
//! Neither is a crash.

use super::growing_wait;
use crate::policy::Policy;
use crate::time::Now;
use std::time::Duration;

/// The file does not exist.
pub const ENOENT: i32 = 2;
/// The file is not a program that the kernel can execute.
pub const ENOEXEC: i32 = 8;
/// The file's mode does not permit it.
pub const EACCES: i32 = 13;
/// A symbolic link where none is allowed.
pub const ELOOP: i32 = 40;

/// Errors that waiting does not mend, by Linux's numbers: EPERM ENOENT E2BIG ENOEXEC EACCES ENOTDIR EISDIR
/// EINVAL ENAMETOOLONG ELOOP ELIBBAD. All others may pass, above all shortages: EAGAIN ENOMEM ENFILE EMFILE ENOSPC.
const FOR_GOOD: [i32; 11] = [1, ENOENT, 7, ENOEXEC, EACCES, 20, 21, 22, 36, ELOOP, 80];

/// What a refused start means for the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prospect {
    /// The next one may succeed.
    Better,
    /// The next one will be refused as well.
    Never,
}

/// Judges a refusal by its error number; one without a number may pass.
#[must_use]
pub fn prospect(errno: Option<i32>) -> Prospect {
    if errno.is_some_and(|errno| FOR_GOOD.contains(&errno)) { Prospect::Never } else { Prospect::Better }
}

/// Returns how long to wait after the n-th refusal in a row.
#[must_use]
pub fn wait(n: u32, policy: &Policy, now: Now) -> Duration {
    growing_wait(n.max(1), policy, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_passes_and_what_is_wrong_stays_wrong() {
        // EMFILE ENFILE ENOMEM EAGAIN ENOSPC, EIO, ETXTBSY, and an error without a number.
        for errno in [Some(24), Some(23), Some(12), Some(11), Some(28), Some(5), Some(26), None] {
            assert_eq!(prospect(errno), Prospect::Better, "{errno:?}");
        }
        // E2BIG ENOEXEC EACCES ENOENT ENOTDIR ELOOP.
        for errno in [7, 8, 13, 2, 20, 40] {
            assert_eq!(prospect(Some(errno)), Prospect::Never, "{errno}");
        }
    }

    #[test]
    fn waits_grow_up_to_the_ceiling() {
        let waits = [0, 1, 2, 3, 9].map(|n| wait(n, &Policy::default(), Now::default()).as_secs());
        assert_eq!(waits, [1, 1, 2, 4, 60]);
    }
}
