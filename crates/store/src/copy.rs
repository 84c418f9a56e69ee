//! Copies of a store, in plain data: the files that go with one, and why one could not be made.

use crate::cause::Cause;
use crate::open::OpenError;
use std::io;
use std::path::PathBuf;

/// Files that belong to a store but are not in it, by name.
pub type Files = Vec<(String, Vec<u8>)>;

/// Why a copy was not made or put back.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file of this name already exists.
    #[error("`{path}` exists already")]
    Exists {
        /// The file that is in the way.
        path: PathBuf,
    },
    /// The system refused.
    #[error("`{path}` cannot be used")]
    Io {
        /// The file that is affected.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The back-end cannot copy.
    #[error("`{path}` cannot be written")]
    Copy {
        /// The file that is affected.
        path: PathBuf,
        /// The back-end's error.
        #[source]
        source: Cause,
    },
    /// It is not a usable store.
    #[error(transparent)]
    Unusable(#[from] OpenError),
}
