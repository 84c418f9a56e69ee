//! What the kernel says of a reaped process.

use pinfold_core::exit::Exit;
use rustix::process::WaitStatus;

/// Returns how a process ended; `None` if it did not.
pub(super) fn exit(status: WaitStatus) -> Option<Exit> {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Some(Exit::Code(code)),
        (None, Some(signal)) => Some(Exit::Signal(signal)),
        (None, None) => None,
    }
}
