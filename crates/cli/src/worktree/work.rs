//! A worktree with its record, and the work in it that exists nowhere else.

use super::git::{Git, Listed};
use super::{folder, record};
use crate::output::{Failure, Kind};
use pinfold_api::request::SessionWorktree;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How many names a refusal shows.
const SHOWN: usize = 3;

/// Whether ignored files and submodules are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lossy {
    Refused,
    /// `--force`.
    Allowed,
}

/// A worktree that is as it was recorded.
pub(super) struct RecordedTree<'a> {
    pub(super) path: &'a Path,
    repository: &'a Path,
    gitdir: &'a Path,
    lossy: Lossy,
}

/// Why a worktree stays, and what to do about it.
struct Reason {
    what: String,
    hint: String,
}

impl<'a> RecordedTree<'a> {
    /// Compares the worktree with its record.
    pub(super) fn of(record: &'a SessionWorktree, lossy: Lossy) -> Result<RecordedTree<'a>, Failure> {
        let same = record::compare(record).and_then(|()| record::ask_git(record));
        same.map_err(|why| {
            let message = format!("the worktree {} is not as pinfold made it: {why}", record.path);
            Failure::new(Kind::Failed, message)
        })?;
        let [path, repository, gitdir] =
            [&record.path, &record.repository, &record.gitdir].map(|path| Path::new(path.as_str()));
        Ok(RecordedTree { path, repository, gitdir, lossy })
    }

    /// Refuses if the worktree has work that exists nowhere else, or is locked in git.
    pub(super) fn has_no_work(&self) -> Result<(), Failure> {
        let git = Git::exactly(self.gitdir, self.path)?;
        let listed = git.worktrees()?.into_iter().find(|listed| listed.path == self.path);
        let Some(listed) = listed else {
            return Err(
                self.refuse(&Reason::new("is not a worktree that git lists", "`git worktree repair`"))
            );
        };
        let reason = match is_locked(&listed) {
            Some(reason) => Some(reason),
            None => self.work(&git, listed.branch.as_deref())?,
        };
        reason.map_or(Ok(()), |reason| Err(self.refuse(&reason)))
    }

    /// Looks for work, that which is lost most easily first.
    fn work(&self, git: &Git<'_>, branch: Option<&str>) -> Result<Option<Reason>, Failure> {
        let look: [&dyn Fn() -> Result<Option<Reason>, Failure>; 5] = [
            &|| self.submodules(git),
            &|| changed(git),
            &|| self.hidden_changes(git),
            &|| self.ignored(git),
            &|| commits(git, branch),
        ];
        for look in look {
            if let Some(reason) = look()? {
                return Ok(Some(reason));
            }
        }
        Ok(None)
    }

    /// Submodules with something in them: git would run in them by their own configuration, so nothing is
    /// known of their work.
    fn submodules(&self, git: &Git<'_>) -> Result<Option<Reason>, Failure> {
        if self.lossy == Lossy::Allowed {
            return Ok(None);
        }
        let staged = git.ask(&["ls-files", "--stage", "-z"])?;
        let paths = staged.split(|byte| *byte == 0).filter_map(|line| line.strip_prefix(b"160000 "));
        let paths = paths.filter_map(|line| line.splitn(2, |byte| *byte == b'\t').nth(1));
        let full: Vec<&[u8]> = paths.filter(|path| has_something(&self.path.join(as_path(path)))).collect();
        let hint = "`--force` removes them, whatever is in them";
        if full.is_empty() && has_something(&self.gitdir.join("modules")) {
            return Ok(Some(Reason::new("has repositories of submodules", hint)));
        }
        let what = || format!("has submodules, whose work is not known ({})", named(&full, "submodule"));
        Ok((!full.is_empty()).then(|| Reason::new(&what(), hint)))
    }

    /// Changes in files that git was told not to look at.
    fn hidden_changes(&self, git: &Git<'_>) -> Result<Option<Reason>, Failure> {
        let listed = git.ask(&["ls-files", "-v", "-z"])?;
        let lines = listed.split(|byte| *byte == 0);
        let flagged = lines.filter_map(|line| match line {
            // Small letters are assumed to be unchanged; S is skipped.
            [tag, b' ', path @ ..] if tag.is_ascii_lowercase() || *tag == b'S' => Some(path),
            _ => None,
        });
        // A sparse checkout leaves such files out; those have no work in them.
        let there = |path: &&[u8]| fs::symlink_metadata(self.path.join(as_path(path))).is_ok();
        let flagged: Vec<&[u8]> = flagged.filter(there).collect();
        if flagged.is_empty() {
            return Ok(None);
        }
        let index = SpareIndex::copy(self.gitdir)?;
        let git = git.with_index(&index.path);
        let paths = flagged.join(&0);
        for flag in ["--no-assume-unchanged", "--no-skip-worktree"] {
            git.feed(&["update-index", flag, "-z", "--stdin"].map(OsStr::new), &paths)?;
        }
        Ok(status(&git)?.map(|files| {
            let what = format!("has changes in files that git was told to skip ({})", counted(files, "file"));
            Reason::new(&what, "`git ls-files -v` shows them: h is assume-unchanged, S is skip-worktree")
        }))
    }

    fn ignored(&self, git: &Git<'_>) -> Result<Option<Reason>, Failure> {
        if self.lossy == Lossy::Allowed {
            return Ok(None);
        }
        let words = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"];
        let listed = git.ask(&words)?;
        let all: Vec<&[u8]> = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).collect();
        let what = || format!("has files that git ignores ({})", named(&all, "file or directory"));
        let hint = "`--force` removes them too; move away what you need first";
        Ok((!all.is_empty()).then(|| Reason::new(&what(), hint)))
    }

    fn refuse(&self, reason: &Reason) -> Failure {
        let message = format!("the worktree {} {}", self.path.display(), reason.what);
        Failure::new(Kind::Failed, message).hint(&reason.hint)
    }

    /// Removes the files, and then what git knows of the worktree.
    ///
    /// Git itself would look for changes once more, by way of the file `.git`, which could have been replaced
    /// since it was compared.
    pub(super) fn take_away(&self) -> Result<(), Failure> {
        fs::remove_dir_all(self.path).map_err(|error| {
            Failure::new(Kind::Failed, format!("{} cannot be removed: {error}", self.path.display()))
        })?;
        let words = ["worktree".as_ref(), "remove".as_ref(), "--force".as_ref(), self.path.as_os_str()];
        Git::around(self.repository)?.act(&words)?;
        self.path.parent().into_iter().for_each(folder::tidy);
        Ok(())
    }
}

impl Reason {
    fn new(what: &str, hint: &str) -> Reason {
        Reason { what: what.to_owned(), hint: hint.to_owned() }
    }
}

fn is_locked(listed: &Listed) -> Option<Reason> {
    let reason = listed.locked.as_ref()?;
    let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    Some(Reason::new(&format!("is locked{why}"), "`git worktree unlock` unlocks it"))
}

/// Files that are changed, added or unknown to git, whatever the configuration shows of them.
fn changed(git: &Git<'_>) -> Result<Option<Reason>, Failure> {
    Ok(status(git)?.map(|files| {
        let what = format!("has uncommitted work ({})", counted(files, "file"));
        Reason::new(&what, "commit it, or throw it away, first")
    }))
}

/// How many files git shows as changed, if any. Submodules are not entered.
fn status(git: &Git<'_>) -> Result<Option<usize>, Failure> {
    let words = ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"];
    let status = git.ask(&[&words[..], &["--ignore-submodules=all"]].concat())?;
    let files = status.split(|byte| *byte == 0).filter(|line| !line.is_empty()).count();
    Ok((files > 0).then_some(files))
}

/// Commits that are on no remote and in no other branch. Without a branch of its own: in no branch at all.
fn commits(git: &Git<'_>, branch: Option<&str>) -> Result<Option<Reason>, Failure> {
    let own = format!("--exclude={}", branch.unwrap_or_default());
    let count = git.ask(&["rev-list", "--count", "HEAD", "--not", "--remotes", &own, "--branches"])?;
    let count: usize = String::from_utf8_lossy(&count).trim().parse().unwrap_or(usize::MAX);
    let commits = counted(count, "commit");
    Ok((count > 0).then(|| match branch {
        Some(_) => Reason::new(
            &format!("has work that is on no remote and in no other branch ({commits})"),
            "push or merge them first",
        ),
        None => Reason::new(
            &format!("has work that is on no remote and in no branch ({commits} on a detached HEAD)"),
            "`git branch NAME` in the worktree keeps them",
        ),
    }))
}

/// A copy of a worktree's index, removed when dropped.
struct SpareIndex {
    path: PathBuf,
}

impl SpareIndex {
    /// It is in the git directory, where a link could have been put: a file that is there is not written to.
    fn copy(gitdir: &Path) -> Result<SpareIndex, Failure> {
        let path = gitdir.join(format!("pinfold-index-{}", std::process::id()));
        let copied = || {
            let mut from = fs::File::open(gitdir.join("index"))?;
            drop(fs::remove_file(&path));
            let mut to = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            std::io::copy(&mut from, &mut to)?;
            // Git reads files that are younger than their index, since their times do not show a change.
            to.set_modified(from.metadata()?.modified()?)
        };
        let index = SpareIndex { path: path.clone() };
        let failed =
            |error: std::io::Error| Failure::new(Kind::Failed, format!("{}: {error}", path.display()));
        copied().map(|()| index).map_err(failed)
    }
}

impl Drop for SpareIndex {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}

/// Whether a path is anything else than missing or an empty directory.
fn has_something(path: &Path) -> bool {
    let is_empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    fs::symlink_metadata(path).is_ok_and(|facts| !facts.is_dir() || !is_empty())
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

pub(super) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// How many there are, and the first names.
fn named(paths: &[&[u8]], what: &str) -> String {
    let many = what.replace("directory", "directorie").replace("file or", "files or");
    let count = if paths.len() == 1 { format!("1 {what}") } else { format!("{} {many}s", paths.len()) };
    let shown = paths.iter().take(SHOWN).map(|path| OsString::from_vec(path.to_vec()).display().to_string());
    let mut shown: Vec<String> = shown.collect();
    if paths.len() > SHOWN {
        shown.push("...".to_owned());
    }
    format!("{count}: {}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_names_are_shown() {
        let rows: [(&[&[u8]], &str); 3] = [
            (&[b"target/"], "1 file or directory: target/"),
            (&[b"a", b"b"], "2 files or directories: a, b"),
            (&[b"a", b"b", b"c", b"d"], "4 files or directories: a, b, c, ..."),
        ];
        for (paths, expected) in rows {
            assert_eq!(named(paths, "file or directory"), expected);
        }
        assert_eq!(named(&[b"a", b"b"], "submodule"), "2 submodules: a, b");
    }

    #[test]
    fn an_empty_directory_is_nothing() {
        let temp = tempfile::tempdir().unwrap();
        assert!(!has_something(&temp.path().join("missing")) && !has_something(temp.path()));
        fs::write(temp.path().join("file"), "").unwrap();
        assert!(has_something(temp.path()) && has_something(&temp.path().join("file")));
    }
}
