//! The directory around the worktrees of a repository, `REPOSITORY.worktrees`: removed with the last worktree
//! in it, but only if pinfold made it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Says that pinfold made the directory that it is in.
const MARKER: &str = ".made-by-pinfold";

const TEXT: &[u8] = b"pinfold made this directory, and removes it with the last worktree in it.\n";

/// Its real path; it need not exist. If it is a link, its target is meant.
pub(super) fn beside(repository: &Path) -> PathBuf {
    let mut beside = repository.as_os_str().to_owned();
    beside.push(".worktrees");
    let beside = PathBuf::from(beside);
    fs::canonicalize(&beside).unwrap_or(beside)
}

/// Makes it with a marker, unless it is there.
pub(super) fn make(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().create(folder) {
        Ok(()) => mark(folder),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

fn mark(folder: &Path) -> io::Result<()> {
    let mut marker = OpenOptions::new().write(true).create_new(true).mode(0o644).open(folder.join(MARKER))?;
    marker.write_all(TEXT)
}

/// Removes it if pinfold made it and nothing else is in it.
pub(super) fn tidy(folder: &Path) {
    if !is_ours_and_empty(folder).unwrap_or(false) || fs::remove_file(folder.join(MARKER)).is_err() {
        return;
    }
    if fs::remove_dir(folder).is_err() {
        // Another worktree was just made in it.
        drop(mark(folder));
    }
}

fn is_ours_and_empty(folder: &Path) -> io::Result<bool> {
    let own = rustix::process::geteuid().as_raw();
    let marker = fs::symlink_metadata(folder.join(MARKER))?;
    let is_real = fs::symlink_metadata(folder)?.is_dir() && marker.is_file() && marker.uid() == own;
    let mut others =
        fs::read_dir(folder)?.filter(|entry| !entry.as_ref().is_ok_and(|it| it.file_name() == MARKER));
    Ok(is_real && others.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_folder_that_pinfold_made_is_removed() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("api.worktrees");
        make(&folder).unwrap();
        make(&folder).unwrap();
        fs::create_dir(folder.join("fix")).unwrap();
        tidy(&folder);
        assert!(folder.join(MARKER).exists(), "a worktree is in it");
        fs::remove_dir(folder.join("fix")).unwrap();
        tidy(&folder);
        assert!(!folder.exists());
        fs::create_dir(&folder).unwrap();
        make(&folder).unwrap();
        tidy(&folder);
        assert!(folder.exists(), "it was there before");
    }

    #[test]
    fn a_link_is_resolved_and_never_removed() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let (target, link) = (root.join("target"), root.join("api.worktrees"));
        fs::create_dir(&target).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert_eq!(beside(&root.join("api")), target);
        make(&link).unwrap();
        tidy(&link);
        tidy(&target);
        assert!(link.is_symlink() && target.exists());
    }
}
