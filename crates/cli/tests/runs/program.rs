//! Puts programs elsewhere, to be run from there.

use std::path::Path;
use std::process::Command;

/// Copies a program. Another process does it: the kernel runs no file that is open for writing anywhere
/// (`ETXTBSY`), and a child that another thread has just forked has our open files too.
#[track_caller]
pub(crate) fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "{} cannot be copied", from.display());
}

/// Links a program under another name, or copies it to another file system.
#[track_caller]
pub(crate) fn link(from: &Path, to: &Path) {
    std::fs::hard_link(from, to).unwrap_or_else(|_| copy(from, to));
}
