//! Removes the worktree of a deleted session, but never work that exists nowhere else.

use super::git::Git;
use crate::daemon::Daemon;
use crate::global::Global;
use crate::home;
use crate::output::{Failure, Kind, say, talk};
use crate::removal;
use pinfold_api::object::{Removed, Session};
use pinfold_api::{Client, endpoint};
use pinfold_lock::{Guard, Request, Resource};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Deletes sessions with their worktrees, one after another; returns the first failure.
pub(crate) fn remove(sessions: &[String], daemon: &Daemon) -> Result<(), Failure> {
    let (client, global) = (daemon.client()?, &daemon.global);
    let (mut objects, mut first) = (Vec::new(), None);
    for session in sessions {
        match one(&client, session, global) {
            Ok(object) => objects.push(object),
            Err(failure) => {
                failure.tell(global);
                objects.push(json!({ "session": session, "error": failure.object() }));
                first.get_or_insert(failure);
            }
        }
    }
    if global.json {
        say(&Value::Array(objects));
    }
    first.map_or(Ok(()), |failure: Failure| Err(failure.once_told()))
}

fn one(client: &Client, session: &str, global: &Global) -> Result<Value, Failure> {
    let shown: Session = client.ask(&endpoint::Show::call(session))?;
    let tree = Tree::of(Path::new(&shown.dir), &shown.name)?;
    tree.has_no_work()?;
    // A live session holds the lock itself; its removal then says what is wrong.
    let guard = if shown.pid.is_none() { Some(tree.lock(global)?) } else { None };
    let archived = removal::put_away(client, &shown)?;
    // From here on nothing of the session can run. Work that appeared meanwhile keeps the worktree, and the
    // record that says where it is.
    let gone = tree.has_no_work().and_then(|()| tree.take_away());
    drop(guard);
    gone.map_err(|failure| if archived { put_away(&failure) } else { failure })?;
    let removed: Removed = client.ask(&endpoint::Remove::call(&shown.id))?;
    if !global.json && !global.quiet {
        talk(&format!("{} is deleted, and its worktree {} is removed", shown.name, tree.path.display()));
    }
    let mut object = json!(removed);
    object["worktree"] = json!(tree.path);
    Ok(object)
}

fn put_away(failure: &Failure) -> Failure {
    let message = format!("{}; the session is archived, and not deleted", failure.message());
    Failure::new(Kind::Failed, message).hint("when that is settled, the same again deletes both")
}

/// A worktree to remove.
struct Tree {
    path: PathBuf,
    /// The main worktree of its repository: git cannot remove the worktree it runs in.
    repository: PathBuf,
    session: String,
}

impl Tree {
    fn of(dir: &Path, session: &str) -> Result<Tree, Failure> {
        let not_one = |why: &str| {
            let message = format!("the directory of session `{session}` ({}) {why}", dir.display());
            Failure::new(Kind::Failed, message)
                .hint(format!("`pinfold rm {session} --yes` deletes the session only"))
        };
        let all = Git(dir)
            .worktrees()
            .map_err(|failure| not_one(&format!("is not a worktree: {}", failure.message())))?;
        let path = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
        match all.iter().position(|listed| listed.path == path) {
            Some(0) => Err(not_one("is the main worktree of its repository, which is never removed")),
            None => Err(not_one("is inside of a worktree, and not one itself")),
            Some(_) => Ok(Tree { path, repository: all[0].path.clone(), session: session.to_owned() }),
        }
    }

    /// Refuses if the worktree has work that exists nowhere else, or is locked in git.
    fn has_no_work(&self) -> Result<(), Failure> {
        let git = Git(&self.path);
        let listed = git.worktrees()?.into_iter().find(|listed| listed.path == self.path);
        let branch = listed.as_ref().and_then(|listed| listed.branch.clone());
        if let Some(reason) = listed.and_then(|listed| listed.locked) {
            let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            return Err(self.refuse(&format!("is locked{why}"), "`git worktree unlock` unlocks it"));
        }
        let status = git.ask(&["status", "--porcelain", "-z", "--ignore-submodules=none"])?;
        let files = status.split(|byte| *byte == 0).filter(|line| !line.is_empty()).count();
        if files > 0 {
            let what = format!("has uncommitted work ({})", counted(files, "file"));
            return Err(self.refuse(&what, "commit it, or throw it away, first"));
        }
        let own = format!("--exclude={}", branch.as_deref().unwrap_or_default());
        let count = git.ask(&["rev-list", "--count", "HEAD", "--not", "--remotes", &own, "--branches"])?;
        let count: usize = String::from_utf8_lossy(&count).trim().parse().unwrap_or(usize::MAX);
        if count > 0 {
            let what = format!(
                "has work that is on no remote and in no other branch ({})",
                counted(count, "commit")
            );
            return Err(self.refuse(&what, "push or merge them first"));
        }
        Ok(())
    }

    fn refuse(&self, what: &str, hint: &str) -> Failure {
        let message = format!("the worktree of session `{}` ({}) {what}", self.session, self.path.display());
        Failure::new(Kind::Failed, message).hint(hint)
    }

    /// Locks the worktree while it is removed, so that nothing else works in it.
    fn lock(&self, global: &Global) -> Result<Guard, Failure> {
        let resource = Resource::parse(self.path.as_os_str())
            .map_err(|error| self.gone().unwrap_or_else(|| error.into()))?;
        let folder = home::folder_for(&resource, global)?;
        let request = Request { reason: Some("rm --worktree".to_owned()), ..Request::default() };
        folder.try_acquire(&resource, &request).map_err(|error| self.gone().unwrap_or_else(|| error.into()))
    }

    /// Says so if something else has removed the worktree meanwhile.
    fn gone(&self) -> Option<Failure> {
        let message = || format!("the worktree {} was removed meanwhile", self.path.display());
        (!self.path.exists()).then(|| {
            Failure::new(Kind::Failed, message())
                .hint(format!("`pinfold rm {} --yes` deletes the session only", self.session))
        })
    }

    /// Git checks once more, and removes nothing that it finds work in.
    fn take_away(&self) -> Result<(), Failure> {
        Git(&self.repository).act(&["worktree".as_ref(), "remove".as_ref(), self.path.as_os_str()])?;
        // The folder around it goes with the last worktree.
        drop(self.path.parent().map(std::fs::remove_dir));
        Ok(())
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
