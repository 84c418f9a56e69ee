//! Removes parts of a log that have not been written to for a long time.

use super::format::aged;
use crate::files::age;
use pinfold_core::time::Wall;
use rustix::io::Errno;
use std::path::Path;

/// Removes the older files of a log that were last written before a moment, never the current one. Only for a
/// session without a run, because a writer renames the files.
///
/// # Errors
/// The kernel's error.
pub fn forget(path: &Path, before: Wall) -> Result<usize, Errno> {
    let (mut oldest, mut gone) = (1, 0);
    while age::of(&aged(path, oldest))?.is_some() {
        oldest += 1;
    }
    // Oldest first: a reader stops looking at the first missing file.
    for number in (1..oldest).rev() {
        if !age::remove_if_old(&aged(path, number), before)? {
            break;
        }
        gone += 1;
    }
    Ok(gone)
}
