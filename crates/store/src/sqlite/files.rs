//! The files of a store: their names, lengths and modes. They are only examined by name, never opened here.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Returns the files that make up a store.
pub(crate) fn files(path: &Path) -> [PathBuf; 3] {
    [path.to_owned(), log_of(path), beside(path, "-shm")]
}

/// Returns the path of SQLite's log.
pub(crate) fn log_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Returns the length of a file; 0 if it is missing.
pub(crate) fn length(path: &Path) -> io::Result<u64> {
    match fs::metadata(path) {
        Ok(found) => Ok(found.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// Syncs the folder of a file.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Removes other users' rights to the files; returns whether there were any.
pub(crate) fn tighten(path: &Path) -> io::Result<bool> {
    let mut tightened = false;
    for file in files(path) {
        match fs::metadata(&file) {
            Ok(found) if found.permissions().mode() & 0o077 != 0 => {
                fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
                tightened = true;
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(tightened)
}
