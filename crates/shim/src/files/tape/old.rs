//! Forgets parts of a tape that nobody has written to for long.

use super::{Position, segments};
use crate::files::age;
use pinfold_core::time::Wall;
use rustix::io::Errno;
use std::path::Path;

/// Removes segments that lie below a position, which was heard, and were written for the last time before a moment. The last
/// one stays: it says where the tape goes on. Only for a session without a run.
///
/// # Errors
/// What the kernel said.
pub fn forget(folder: &Path, heard: Position, before: Wall) -> Result<usize, Errno> {
    let bases = segments::list(folder)?;
    let mut gone = 0;
    for (base, next) in bases.iter().zip(bases.iter().skip(1)) {
        if *next > heard.0 || !age::remove_if_old(&segments::path(folder, *base), before)? {
            break;
        }
        gone += 1;
    }
    Ok(gone)
}
