//! What a system must allow before a daemon can run at all.

use crate::output::{Failure, Kind};
use std::io::ErrorKind;

/// Returns the failure to report if this process may start neither threads nor processes.
///
/// The kernel never forbids it: only a filter answers clone3 with EPERM. The C library tries the older call after
/// ENOSYS only, so nothing that is built on the library works there.
pub(super) fn refuses_threads() -> Option<Failure> {
    let error = match std::thread::Builder::new().spawn(|| ()) {
        Ok(thread) => {
            // A process with one thread may still fork.
            _ = thread.join();
            return None;
        }
        Err(error) => error,
    };
    let failure = Failure::from_error(Kind::Failed, &error);
    if error.kind() != ErrorKind::PermissionDenied {
        return Some(failure);
    }
    let message = "a seccomp filter forbids new threads: it answers clone3 with EPERM instead of ENOSYS";
    let hint = "update Docker (20.10.10) and libseccomp (2.5.0) of the host, or start the container with \
                `--security-opt seccomp=unconfined`";
    Some(Failure::new(Kind::BadConfig, message).hint(hint))
}
