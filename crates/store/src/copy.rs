//! Copies of a store, in plain data: what goes with one, and why there is none.

use crate::cause::Cause;
use crate::open::OpenError;
use std::io;
use std::path::PathBuf;

/// Files that belong to a store and are not in it, by name.
pub type Files = Vec<(String, Vec<u8>)>;

/// Why a copy was not made or put back.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// There is a file of this name already.
    #[error("`{path}` exists already")]
    Exists {
        /// The file that is in the way.
        path: PathBuf,
    },
    /// The system does not let us.
    #[error("`{path}` cannot be used")]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The back-end cannot copy.
    #[error("`{path}` cannot be written")]
    Copy {
        /// Which file.
        path: PathBuf,
        /// What the back-end says.
        #[source]
        source: Cause,
    },
    /// It is not a store that can be used.
    #[error(transparent)]
    Unusable(#[from] OpenError),
}
