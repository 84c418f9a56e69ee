//! Lock files that were removed while they were held.

use super::ours::{self, is_of};
use super::scan::{self, OpenFile};
use crate::files::folder::Folder;
use crate::files::name::FileName;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// Returns the lock files of this folder that were removed while they were held.
pub(crate) fn removed_holders(folder: &Folder) -> Result<Vec<OpenFile>, Errno> {
    let mut open = scan::open_files(folder.device())?;
    open.retain(|one| one.removed && one.locked.is_some() && is_of(folder, one));
    Ok(open)
}

/// Opens a removed file of this name that is still held.
pub(crate) fn removed_holder(folder: &Folder, name: &FileName) -> Result<Option<OwnedFd>, Errno> {
    for one in removed_holders(folder)?.iter().filter(|one| one.name == *name) {
        match ours::reopen(folder, one) {
            Ok(file) => return Ok(Some(file)),
            // It has gone in the meantime.
            Err(Errno::NOENT | Errno::SRCH) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(None)
}
