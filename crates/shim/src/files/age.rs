//! When a file was last written.

use pinfold_core::time::Wall;
use rustix::io::Errno;
use std::path::Path;

/// Returns the time; `None` if there is no such file.
pub(super) fn of(path: &Path) -> Result<Option<Wall>, Errno> {
    match rustix::fs::lstat(path) {
        Ok(facts) => Ok(Some(Wall(facts.st_mtime.saturating_mul(1000)))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Removes a file last written before a moment; returns whether it is gone.
pub(super) fn remove_if_old(path: &Path, before: Wall) -> Result<bool, Errno> {
    match of(path)? {
        Some(at) if at >= before => Ok(false),
        None => Ok(true),
        Some(_) => match rustix::fs::unlink(path) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(errno) => Err(errno),
        },
    }
}
