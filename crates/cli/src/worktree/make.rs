//! Makes the worktree of a new session, and removes it if the session is not created after all.

use super::git::{Git, Listed};
use crate::output::{Failure, Kind};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A worktree for a new session.
#[derive(Debug)]
pub(crate) struct MadeWorktree {
    pub(crate) path: PathBuf,
    /// It existed already.
    pub(crate) found: bool,
    repository: PathBuf,
    /// The branch, if it was created along with it.
    branch: Option<String>,
}

/// Makes a worktree for a branch in the repository around `dir`. A missing branch is created from what is
/// checked out there; an existing worktree of the branch is used.
pub(crate) fn make(dir: &Path, branch: &str) -> Result<MadeWorktree, Failure> {
    let git = Git(dir);
    let repository = repository(&git, dir)?;
    let is_name = !branch.starts_with('-') && git.holds(&["check-ref-format", "--branch", branch])?;
    if !is_name {
        return Err(Failure::new(Kind::Usage, format!("`{branch}` is not a name for a branch")));
    }
    let (path, all) = (place(&repository, branch), git.worktrees()?);
    if let Some(taken) = all.iter().find(|listed| listed.branch.as_deref() == Some(branch)) {
        return used(taken, path, repository, branch);
    }
    if path.exists() {
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
    git.act(&words)?;
    let branch = (!known).then(|| branch.to_owned());
    Ok(MadeWorktree { path, found: false, repository, branch })
}

/// The main worktree, or the repository itself if it is bare.
fn repository(git: &Git<'_>, dir: &Path) -> Result<PathBuf, Failure> {
    let all = git.worktrees().map_err(|failure| {
        let message = format!("{} is not in a git repository ({})", dir.display(), failure.message());
        Failure::new(Kind::BadConfig, message)
            .hint("`--dir` names the repository; without it, it is where you are")
    })?;
    let first = all.into_iter().next();
    first.map(|listed| listed.path).ok_or_else(|| Failure::new(Kind::Failed, "git lists no worktree"))
}

fn used(taken: &Listed, path: PathBuf, repository: PathBuf, branch: &str) -> Result<MadeWorktree, Failure> {
    if taken.path == path {
        return Ok(MadeWorktree { path, found: true, repository, branch: None });
    }
    let message = format!("branch `{branch}` is checked out in {} already", taken.path.display());
    Err(Failure::new(Kind::Exists, message).hint(format!("`--dir {}` runs there", taken.path.display())))
}

/// `REPOSITORY.worktrees/BRANCH`; a slash in the branch's name does not make a folder here.
fn place(repository: &Path, branch: &str) -> PathBuf {
    let mut beside = repository.as_os_str().to_owned();
    beside.push(".worktrees");
    PathBuf::from(beside).join(branch.replace('/', "-"))
}

impl MadeWorktree {
    /// Removes what was made for a session that was not created.
    pub(crate) fn undo(&self) {
        if self.found {
            return;
        }
        let git = Git(&self.repository);
        // It was just made, and git refuses if there is work in it. If it stays, that is not another error.
        let removed = git.act(&["worktree".as_ref(), "remove".as_ref(), self.path.as_os_str()]);
        if let (Ok(_), Some(branch)) = (removed, &self.branch) {
            drop(git.ask(&["branch", "-D", branch]));
        }
        drop(self.path.parent().map(std::fs::remove_dir));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worktree_stands_beside_its_repository() {
        assert_eq!(place(Path::new("/src/api"), "fix/login"), Path::new("/src/api.worktrees/fix-login"));
    }
}
