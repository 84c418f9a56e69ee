//! Compares a worktree with the record that was made with it, before any git runs for it.
//!
//! An agent that can write its worktree can put another repository in the place of the file `.git`. Reading
//! is done here without git, and without following links.

use super::git::Git;
use pinfold_api::request::SessionWorktree;
use rustix::fs::OFlags;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// More than any path in such a file.
const LONGEST: u64 = 8192;

/// In the git directory of a worktree: pinfold made that worktree.
const MARKER: &str = "made-by-pinfold";

/// The record of a worktree that was just made, or found; `Err` says why it cannot be one.
pub(super) fn of(path: &Path, repository: &Path, commondir: &Path) -> Result<SessionWorktree, String> {
    let gitdir = pointed_to(path, "gitdir: ", &path.join(".git"))?;
    let created = fs::symlink_metadata(gitdir.join(MARKER)).is_ok_and(|marker| marker.is_file());
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let record = SessionWorktree {
        path: text(path),
        repository: text(repository),
        gitdir: text(&gitdir),
        commondir: text(commondir),
        created,
    };
    compare(&record).map(|()| record)
}

/// Marks the git directory of a new worktree, so that a later session knows who made it.
pub(super) fn mark(path: &Path) -> Result<(), String> {
    let gitdir = pointed_to(path, "gitdir: ", &path.join(".git"))?;
    let made = OpenOptions::new().write(true).create_new(true).open(gitdir.join(MARKER));
    made.map(drop).map_err(|error| format!("{}: {error}", gitdir.display()))
}

/// Whether the files are as recorded: the worktree points to its git directory, which points to the
/// repository, and back. `Err` is what differs.
pub(super) fn compare(record: &SessionWorktree) -> Result<(), String> {
    let [path, gitdir, commondir] = [&record.path, &record.gitdir, &record.commondir].map(Path::new);
    for directory in [path, gitdir, commondir] {
        is_directory(directory)?;
    }
    if gitdir.parent() != Some(&commondir.join("worktrees")) {
        return Err(format!("{} is not a worktree's git directory", gitdir.display()));
    }
    let link = path.join(".git");
    for owned in [path, gitdir, &link] {
        is_own(owned)?;
    }
    let differs = |file: &Path| format!("{} does not point to where it did", file.display());
    if pointed_to(path, "gitdir: ", &link)? != gitdir {
        return Err(differs(&link));
    }
    let back = gitdir.join("gitdir");
    // It names the file `.git`, whose own path must not be resolved.
    if pointed_to(gitdir, "", &back)? != link {
        return Err(differs(&back));
    }
    let common = gitdir.join("commondir");
    if pointed_to(gitdir, "", &common)? != commondir {
        return Err(differs(&common));
    }
    Ok(())
}

/// Whether git finds this git directory in the repository, and agrees to use it: it refuses another user's.
pub(super) fn ask_git(record: &SessionWorktree) -> Result<(), String> {
    let repository = Path::new(&record.repository);
    let found = Git::around(repository).and_then(|git| common(&git, repository));
    let found = found.map_err(|failure| failure.message().to_owned())?;
    if found == Path::new(&record.commondir) {
        return Ok(());
    }
    Err(format!("the repository {} has its git directory elsewhere", record.repository))
}

/// The real path of the git directory of the repository around `dir`.
pub(super) fn common(git: &Git<'_>, dir: &Path) -> Result<PathBuf, crate::output::Failure> {
    let told = git.ask(&["rev-parse", "--git-common-dir"])?;
    let told = dir.join(as_path(told.strip_suffix(b"\n").unwrap_or(&told)));
    Ok(fs::canonicalize(&told).unwrap_or(told))
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

fn is_directory(path: &Path) -> Result<(), String> {
    let shown = path.display();
    match fs::canonicalize(path) {
        Err(error) => Err(format!("{shown}: {error}")),
        Ok(real) if real != path => Err(format!("{shown} is a link now")),
        Ok(real) if !real.is_dir() => Err(format!("{shown} is not a directory")),
        Ok(_) => Ok(()),
    }
}

fn is_own(path: &Path) -> Result<(), String> {
    let facts = fs::symlink_metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if facts.uid() == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(format!("{} belongs to another user", path.display()))
}

/// The path in one of git's files, relative to the file's directory. The last part of a path to a file is not
/// resolved, the rest is.
fn pointed_to(folder: &Path, begin: &str, file: &Path) -> Result<PathBuf, String> {
    let text = read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let line = text.strip_suffix(b"\n").unwrap_or(&text);
    let Some(path) = line.strip_prefix(begin.as_bytes()) else {
        return Err(format!("{} is not a file of git", file.display()));
    };
    let path = folder.join(as_path(path));
    let real = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if name == ".git" => fs::canonicalize(parent).map(|real| real.join(name)),
        (_, _) => fs::canonicalize(&path),
    };
    Ok(real.unwrap_or(path))
}

/// Reads a small file. A link is not followed, and a pipe is not waited for.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let open = OpenOptions::new().read(true).custom_flags(flags).open(file)?;
    if !open.metadata()?.is_file() {
        return Err(io::Error::other("is not a file"));
    }
    let mut text = Vec::new();
    open.take(LONGEST).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Ground {
        _temp: tempfile::TempDir,
        root: PathBuf,
        record: SessionWorktree,
    }

    /// The files of a worktree as git makes them.
    fn ground() -> Ground {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let (gitdir, path) = (root.join("api/.git/worktrees/fix"), root.join("api.worktrees/fix"));
        fs::create_dir_all(&gitdir).unwrap();
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join(".git"), format!("gitdir: {}\n", gitdir.display())).unwrap();
        fs::write(gitdir.join("commondir"), "../..\n").unwrap();
        fs::write(gitdir.join("gitdir"), format!("{}/.git\n", path.display())).unwrap();
        let record = of(&path, &root.join("api"), &root.join("api/.git")).unwrap();
        Ground { _temp: temp, root, record }
    }

    #[test]
    fn a_worktree_is_recorded_and_known_again() {
        let Ground { root, record, .. } = &ground();
        assert_eq!(record.gitdir, root.join("api/.git/worktrees/fix").display().to_string());
        assert!(!record.created);
        assert_eq!(compare(record), Ok(()));
        mark(Path::new(&record.path)).unwrap();
        let again = of(Path::new(&record.path), &root.join("api"), &root.join("api/.git")).unwrap();
        assert!(again.created);
        // Newer versions of git can write relative paths.
        fs::write(root.join("api.worktrees/fix/.git"), "gitdir: ../../api/.git/worktrees/fix\n").unwrap();
        fs::write(root.join("api/.git/worktrees/fix/gitdir"), "../../../../api.worktrees/fix/.git\n")
            .unwrap();
        assert_eq!(compare(record), Ok(()));
    }

    #[test]
    fn whatever_differs_is_refused() {
        type Change = fn(&Path);
        let rows: [(&str, Change); 9] = [
            (".git is a file of another repository", |root| {
                fs::write(root.join("api.worktrees/fix/.git"), "gitdir: /elsewhere\n").unwrap();
            }),
            (".git is a directory", |root| {
                fs::remove_file(root.join("api.worktrees/fix/.git")).unwrap();
                fs::create_dir(root.join("api.worktrees/fix/.git")).unwrap();
            }),
            (".git is a link to a good file", |root| {
                let link = root.join("api.worktrees/fix/.git");
                fs::rename(&link, root.join("kept")).unwrap();
                symlink(root.join("kept"), link).unwrap();
            }),
            (".git is a pipe", |root| {
                let link = root.join("api.worktrees/fix/.git");
                fs::remove_file(&link).unwrap();
                rustix::fs::mkfifoat(rustix::fs::CWD, &link, rustix::fs::Mode::RUSR).unwrap();
            }),
            (".git is gone", |root| fs::remove_file(root.join("api.worktrees/fix/.git")).unwrap()),
            ("the worktree is a link", |root| {
                fs::rename(root.join("api.worktrees/fix"), root.join("moved")).unwrap();
                symlink(root.join("moved"), root.join("api.worktrees/fix")).unwrap();
            }),
            ("the git directory is a link", |root| {
                fs::rename(root.join("api/.git/worktrees/fix"), root.join("moved")).unwrap();
                symlink(root.join("moved"), root.join("api/.git/worktrees/fix")).unwrap();
            }),
            ("the common directory is another", |root| {
                fs::create_dir(root.join("fake")).unwrap();
                fs::write(
                    root.join("api/.git/worktrees/fix/commondir"),
                    root.join("fake").display().to_string(),
                )
                .unwrap();
            }),
            ("the git directory is of another worktree", |root| {
                fs::write(root.join("api/.git/worktrees/fix/gitdir"), "/src/other/.git\n").unwrap();
            }),
        ];
        for (what, change) in rows {
            let Ground { root, record, _temp } = ground();
            change(&root);
            assert!(compare(&record).is_err(), "{what}");
        }
    }
}
