//! Forgets parts of a log that nobody has written to for long.

use super::format::aged;
use crate::files::age;
use pinfold_core::time::Wall;
use rustix::io::Errno;
use std::path::Path;

/// Removes the older files of a log that were written for the last time before a moment, and never the current one. Only for
/// a session without a run: a writer renames them.
///
/// # Errors
/// What the kernel said.
pub fn forget(path: &Path, before: Wall) -> Result<usize, Errno> {
    let (mut oldest, mut gone) = (1, 0);
    while age::of(&aged(path, oldest))?.is_some() {
        oldest += 1;
    }
    // From the oldest on: a reader looks for no file behind one that is missing.
    for number in (1..oldest).rev() {
        if !age::remove_if_old(&aged(path, number), before)? {
            break;
        }
        gone += 1;
    }
    Ok(gone)
}
