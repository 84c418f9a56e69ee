//! The lock folders: one in each home for its sessions, and one of the user for everything else.

use super::settled::say_tightened;
use super::{settled, user_locks};
use crate::global::Global;
use crate::output::Failure;
use pinfold_lock::{Folder, FolderModes, Resource};
use std::path::{Path, PathBuf};

/// The folder with the lock of a resource: a session's is in its home, all others are in the user's folder.
pub(crate) fn folder_for(resource: &Resource, global: &Global) -> Result<Folder, Failure> {
    match resource {
        Resource::Session(_) => open(&settled::folder(global)?.join("locks"), global),
        Resource::Key(_) | Resource::Vendor(_) | Resource::Directory(_) => user_folder(global),
    }
}

/// The user's lock folder, which does not depend on the home.
pub(crate) fn user_folder(global: &Global) -> Result<Folder, Failure> {
    open(&user_locks::user_locks()?, global)
}

/// All existing lock folders of this home and user.
pub(crate) fn existing_folders(global: &Global) -> Result<Vec<Folder>, Failure> {
    let home = settled::existing(global)?.map(|home| home.join("locks"));
    let mut paths: Vec<PathBuf> = [user_locks::user_locks()?].into_iter().chain(home).collect();
    paths.retain(|path| path.exists());
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut folders = Vec::new();
    for path in paths {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if !seen.contains(&real) {
            seen.push(real);
            folders.push(open(&path, global)?);
        }
    }
    Ok(folders)
}

/// The folder of a home's session locks, if it exists.
pub(crate) fn session_locks(global: &Global) -> Result<Option<Folder>, Failure> {
    let Some(home) = settled::existing(global)? else { return Ok(None) };
    let path = home.join("locks");
    path.exists().then(|| open(&path, global)).transpose()
}

fn open(path: &Path, global: &Global) -> Result<Folder, Failure> {
    let folder = Folder::open(path)?;
    if let FolderModes::Tightened { from } = folder.modes() {
        say_tightened(path, from, global);
    }
    Ok(folder)
}
