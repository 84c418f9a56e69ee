//! Makes the worktree of a new session, and removes it if the session is not created after all.

use super::git::{Git, Listed};
use super::work::{Lossy, RecordedTree};
use super::{folder, record};
use crate::output::{Failure, Kind};
use pinfold_api::request::SessionWorktree;
use pinfold_core::quoted::quoted;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A worktree for a new session.
#[derive(Debug)]
pub(crate) struct MadeWorktree {
    pub(crate) record: SessionWorktree,
    /// It existed already.
    found: bool,
    /// The branch, if it was created along with it.
    branch: Option<String>,
    /// The repository's own filters, which were not run.
    filters: Vec<String>,
}

/// Makes a worktree for a branch in the repository around `dir`. A missing branch is created from what is
/// checked out there; an existing worktree of the branch is used.
pub(crate) fn make(dir: &Path, branch: &str) -> Result<MadeWorktree, Failure> {
    let unusable = |failure: Failure| not_usable(dir, &failure);
    let git = Git::around(dir).map_err(unusable)?;
    let all = git.worktrees().map_err(unusable)?;
    let first = all.first().ok_or_else(|| Failure::new(Kind::Failed, "git lists no worktree"))?;
    let repository = first.path.clone();
    let is_name = !branch.starts_with('-') && git.holds(&["check-ref-format", "--branch", branch])?;
    if !is_name {
        return Err(Failure::new(Kind::Usage, format!("`{branch}` is not a name for a branch")));
    }
    let (path, common) = (place(&repository, branch), record::common(&git, dir)?);
    let recorded = |path: &Path| {
        record::of(path, &repository, &common).map_err(|why| {
            Failure::new(Kind::Failed, format!("{} cannot be used as a worktree: {why}", path.display()))
        })
    };
    if let Some(taken) = all.iter().find(|listed| listed.branch.as_deref() == Some(branch)) {
        is_at(taken, &path, branch)?;
        let (record, filters) = (recorded(&path)?, Vec::new());
        return Ok(MadeWorktree { record, found: true, branch: None, filters });
    }
    let made = add(&git, &path, branch)?;
    let marked = record::mark(&path).map_err(|why| Failure::new(Kind::Failed, why));
    let record = marked.and_then(|()| recorded(&path))?;
    Ok(MadeWorktree { record, found: false, branch: made, filters: git.filters_left_out() })
}

/// Adds a worktree; returns the branch if that was created along with it.
fn add(git: &Git<'_>, path: &Path, branch: &str) -> Result<Option<String>, Failure> {
    if std::fs::symlink_metadata(path).is_ok() {
        let message = format!("{} is in the way: it is not a worktree of `{branch}`", path.display());
        return Err(Failure::new(Kind::Exists, message).hint("move it away, or name another branch"));
    }
    let known = git.holds(&["show-ref", "--verify", "--quiet", &format!("refs/heads/{branch}")])?;
    let remote = !git.ask(&["for-each-ref", "--count=1", &format!("refs/remotes/*/{branch}")])?.is_empty();
    let place = path.as_os_str();
    let words: Vec<&OsStr> = match known || remote {
        true => vec!["worktree".as_ref(), "add".as_ref(), place, branch.as_ref()],
        false => vec!["worktree".as_ref(), "add".as_ref(), "-b".as_ref(), branch.as_ref(), place],
    };
    let folder = path.parent().unwrap_or(Path::new("/"));
    folder::make(folder)
        .map_err(|error| Failure::new(Kind::Failed, format!("{}: {error}", folder.display())))?;
    git.act(&words).inspect_err(|_| folder::tidy(folder))?;
    Ok((!known).then(|| branch.to_owned()))
}

/// Why git finds no repository, or refuses the one it finds.
fn not_usable(dir: &Path, failure: &Failure) -> Failure {
    let (dir, why) = (dir.display(), failure.message());
    if why.contains("not a git repository") {
        return Failure::new(Kind::BadConfig, format!("{dir} is not in a git repository ({why})"))
            .hint("`--dir` names the repository; without it, it is where you are");
    }
    let refused = Failure::new(Kind::BadConfig, format!("git refuses the repository around {dir} ({why})"));
    let Some((_, repository)) = why.split_once("dubious ownership in repository at '") else {
        return refused;
    };
    let repository = repository.trim_end_matches('\'');
    refused.hint(format!(
        "if you trust its owner: `git config --global --add safe.directory {}`",
        quoted(repository)
    ))
}

fn is_at(taken: &Listed, path: &Path, branch: &str) -> Result<(), Failure> {
    if taken.path == path {
        return Ok(());
    }
    let message = format!("branch `{branch}` is checked out in {} already", taken.path.display());
    Err(Failure::new(Kind::Exists, message).hint(format!("`--dir {}` runs there", taken.path.display())))
}

/// `REPOSITORY.worktrees/BRANCH`; a slash in the branch's name does not make a folder here.
fn place(repository: &Path, branch: &str) -> PathBuf {
    folder::beside(repository).join(branch.replace('/', "-"))
}

impl MadeWorktree {
    /// A warning if the repository's own filters were left out: files can be other than in the main worktree.
    pub(crate) fn warning(&self) -> Option<String> {
        let path = &self.record.path;
        (!self.filters.is_empty()).then(|| {
            format!(
                "warning: filters that only this repository configures were not run in {path}: {}\n\
                 hint: `git -C {} checkout-index --index --all --force` runs them",
                self.filters.join(", "),
                quoted(path)
            )
        })
    }

    /// Removes what was made for a session that was not created.
    pub(crate) fn undo(&self) {
        if self.found {
            return;
        }
        // It was just made; if there is work in it, it stays. That is not another error.
        let gone = RecordedTree::of(&self.record, Lossy::Refused).and_then(|tree| {
            tree.has_no_work()?;
            tree.take_away()
        });
        if let (Ok(()), Some(branch)) = (gone, &self.branch) {
            let repository = Path::new(&self.record.repository);
            drop(Git::around(repository).and_then(|git| git.ask(&["branch", "-D", branch])));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worktree_stands_beside_its_repository() {
        assert_eq!(place(Path::new("/src/api"), "fix/login"), Path::new("/src/api.worktrees/fix-login"));
    }

    #[test]
    fn the_reason_of_git_is_shown() {
        let told = |why: &str| {
            let failure = not_usable(Path::new("/x"), &Failure::new(Kind::Failed, why));
            (failure.message().to_owned(), failure.object()["hint"].as_str().map(str::to_owned))
        };
        let none = told("git worktree: fatal: not a git repository (or any of the parent directories): .git");
        assert!(none.0.starts_with("/x is not in a git repository (git worktree: fatal"), "{}", none.0);
        let theirs = told("git worktree: fatal: detected dubious ownership in repository at '/x y'");
        assert!(theirs.0.starts_with("git refuses the repository around /x (git worktree: "), "{}", theirs.0);
        let hint = "if you trust its owner: `git config --global --add safe.directory '/x y'`";
        assert_eq!(theirs.1.as_deref(), Some(hint));
    }
}
