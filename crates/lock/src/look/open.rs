//! Opens a folder of locks: one that was removed under living holders is not trusted until they are gone.

use super::removed::removed_holders;
use crate::files::folder::{Folder, FolderError};
use std::path::Path;

impl Folder {
    /// Opens a folder, makes it when it is missing, and tries it out once in a boot.
    ///
    /// Modes wider than 0700 are tightened ([`Folder::modes`] says so). A folder of another user is refused, and so
    /// are one that another user could replace, and one that has other files in it and no lock.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FolderError> {
        let (folder, trusted) = Self::open_and_try(path.as_ref())?;
        let failed = |errno| FolderError::new(folder.path(), errno);
        if !trusted && removed_holders(&folder).map_err(failed)?.is_empty() {
            folder.trust()?;
        }
        Ok(folder)
    }
}
