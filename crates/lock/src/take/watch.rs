//! Notices what other programs did to a file that was appended to under a lock.

use crate::resource::FileId;
use pinfold_kernel::sys;
use rustix::fs::{AtFlags, CWD, FileType};
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Where our last append ended; shared with the guard that watches the file.
pub(crate) type Expected = Arc<Mutex<Option<AppendEnd>>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AppendEnd {
    pub(crate) id: FileId,
    pub(crate) size: u64,
}

/// What another program did to a watched file. It is reported but stops nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForeignChange {
    /// Bytes were added that are not records.
    #[error("another process added {bytes} bytes to {}", path.display())]
    Grown {
        /// The file.
        path: PathBuf,
        /// The number of bytes added.
        bytes: u64,
    },
    /// It is shorter than our last append left it.
    #[error("another process cut {} short by {bytes} bytes", path.display())]
    Shrunk {
        /// The file.
        path: PathBuf,
        /// The number of bytes missing.
        bytes: u64,
    },
    /// Another file is at its path.
    #[error("another file was put in place of {}", path.display())]
    Replaced {
        /// The path.
        path: PathBuf,
    },
    /// Nothing is at its path.
    #[error("another process removed {}", path.display())]
    Removed {
        /// The path.
        path: PathBuf,
    },
    /// A directory, a link or a device is at its path.
    #[error("{} is not a file any more", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// It could not be examined.
    #[error("{} could not be looked at", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: Errno,
    },
}

/// Returns what is at the path instead of the file.
pub(crate) fn look(path: &Path, id: FileId) -> Option<ForeignChange> {
    let path = path.to_owned();
    match sys::stat_at(CWD, &path, AtFlags::empty()) {
        Ok(stat) if FileId::from(&stat) == id => None,
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile => {
            Some(ForeignChange::NotAFile { path })
        }
        Ok(_) => Some(ForeignChange::Replaced { path }),
        Err(Errno::NOENT) => Some(ForeignChange::Removed { path }),
        Err(source) => Some(ForeignChange::Unreadable { path, source }),
    }
}

/// A file that a guard checks once more when it is released.
#[derive(Debug)]
pub(crate) struct FileWatch {
    pub(crate) path: PathBuf,
    pub(crate) expected: Expected,
}

impl FileWatch {
    /// Returns what another program did to the file since our last append. Never fails: an error is an answer, too.
    pub(crate) fn look(self) -> Option<ForeignChange> {
        let expected = (*self.expected.lock().unwrap_or_else(PoisonError::into_inner))?;
        if let Some(change) = look(&self.path, expected.id) {
            return Some(change);
        }
        let path = self.path;
        let size = match sys::stat_at(CWD, &path, AtFlags::empty()) {
            Ok(stat) => u64::try_from(stat.st_size).unwrap_or(0),
            Err(source) => return Some(ForeignChange::Unreadable { path, source }),
        };
        if size < expected.size {
            return Some(ForeignChange::Shrunk { path, bytes: expected.size - size });
        }
        (size > expected.size).then(|| ForeignChange::Grown { path, bytes: size - expected.size })
    }
}
