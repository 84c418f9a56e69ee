//! Removes parts of a tape that have not been written to for a long time.

use super::{Position, segments};
use crate::files::age;
use pinfold_core::time::Wall;
use rustix::io::Errno;
use std::path::Path;

/// Removes segments that lie below a position that was heard and were last written before a moment. The last
/// one stays, because it says where the tape continues. Only for a session without a run.
///
/// # Errors
/// The kernel's error.
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
