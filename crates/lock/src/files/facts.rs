//! What the kernel says about an open lock file.

use crate::resource::FileId;
use pinfold_kernel::sys;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// The facts about a lock file after it was locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileFacts {
    pub(crate) id: FileId,
    pub(crate) size: u64,
    pub(crate) regular: bool,
    /// The file no longer has a name: it was removed or replaced.
    pub(crate) removed: bool,
}

pub(crate) fn facts(file: &OwnedFd) -> Result<FileFacts, Errno> {
    let stat = sys::fstat_timeless(file)?;
    let regular = FileType::from_raw_mode(stat.stx_mode.into()) == FileType::RegularFile;
    Ok(FileFacts { id: FileId::from(&stat), size: stat.stx_size, regular, removed: stat.stx_nlink == 0 })
}
