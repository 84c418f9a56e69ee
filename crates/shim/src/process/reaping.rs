//! What the kernel says of a process that was reaped.

use pinfold_core::exit::Exit;
use rustix::process::WaitStatus;

/// How a process ended; nothing when it did not.
pub(super) fn exit(status: WaitStatus) -> Option<Exit> {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Some(Exit::Code(code)),
        (None, Some(signal)) => Some(Exit::Signal(signal)),
        (None, None) => None,
    }
}
