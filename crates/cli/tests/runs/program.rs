//! Programs in other places, to be executed there.

use std::path::Path;
use std::process::Command;

/// Copies a program. Another process does it: the kernel executes no file that is open for writing anywhere (`ETXTBSY`),
/// and what this process has open, a child that another thread forks just now has open too.
#[track_caller]
pub(crate) fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "{} cannot be copied", from.display());
}

/// The same program under another name; a copy where that is on another file system.
#[track_caller]
pub(crate) fn link(from: &Path, to: &Path) {
    std::fs::hard_link(from, to).unwrap_or_else(|_| copy(from, to));
}
