//! The caller's umask, which decides whether this program can use the files that it creates.

use crate::output::{Failure, Kind};
use rustix::fs::Mode;

/// Returns the umask. It can only be read by setting it; this program has one thread when it does so.
pub(crate) fn own() -> Mode {
    let own = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    rustix::process::umask(own);
    own
}

/// Adds the probable cause to an error, if the umask closes new files to their owner.
pub(crate) fn explained(failure: Failure) -> Failure {
    let own = own();
    if failure.kind() != Kind::NotPermitted || !own.intersects(Mode::RWXU) {
        return failure;
    }
    let bits = own.as_raw_mode();
    failure.hint(format!("the umask {bits:04o} closes new files to you as well: `umask 077`, then try again"))
}
