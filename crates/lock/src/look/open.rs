//! Opens a lock folder: one that was removed under living holders is not trusted until they are gone.

use super::removed::removed_holders;
use crate::files::folder::{Folder, FolderError};
use std::path::Path;

impl Folder {
    /// Opens a folder, creates it if it is missing, and tests it once per boot.
    ///
    /// A mode wider than 0700 is tightened (see [`Folder::modes`]). A folder is refused if it belongs to
    /// another user, if another user could replace it, or if it contains other files and no lock.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FolderError> {
        let (folder, trusted) = Self::open_and_try(path.as_ref())?;
        let failed = |errno| FolderError::new(folder.path(), errno);
        if !trusted && removed_holders(&folder).map_err(failed)?.is_empty() {
            folder.trust()?;
        }
        Ok(folder)
    }
}
