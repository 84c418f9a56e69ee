//! What the kernel says of a lock file that is open.

use crate::resource::FileId;
use pinfold_kernel::sys;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// A lock file's facts after it was locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) id: FileId,
    pub(crate) size: u64,
    pub(crate) regular: bool,
    /// The file has no name any more: somebody removed or replaced it.
    pub(crate) removed: bool,
}

pub(crate) fn facts(file: &OwnedFd) -> Result<Facts, Errno> {
    let stat = sys::fstat_timeless(file)?;
    let regular = FileType::from_raw_mode(stat.stx_mode.into()) == FileType::RegularFile;
    Ok(Facts { id: FileId::from(&stat), size: stat.stx_size, regular, removed: stat.stx_nlink == 0 })
}
