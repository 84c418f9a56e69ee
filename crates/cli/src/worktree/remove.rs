//! Removes the worktree of a deleted session, but never work that exists nowhere else.

use super::work::{Lossy, RecordedTree};
use crate::daemon::Daemon;
use crate::global::Global;
use crate::home;
use crate::output::{Failure, Kind, say, talk};
use crate::removal;
use pinfold_api::object::{Declared, Removed, Session};
use pinfold_api::request::SessionWorktree;
use pinfold_api::word::State;
use pinfold_api::{Client, endpoint, query};
use pinfold_core::quoted::quoted;
use pinfold_lock::{Guard, Request, Resource};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What `rm --worktree` removes along with the worktree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Removal {
    /// Ignored files and submodules too.
    pub(crate) force: bool,
    /// What the daemon deletes along with the session.
    pub(crate) also: query::AlsoRemoved,
}

/// Deletes sessions with their worktrees, one after another; returns the first failure.
pub(crate) fn remove(sessions: &[String], removal: Removal, daemon: &Daemon) -> Result<(), Failure> {
    let (client, global) = (daemon.client()?, &daemon.global);
    let (mut objects, mut first) = (Vec::new(), None);
    for session in sessions {
        match one(&client, session, removal, global) {
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

fn one(client: &Client, session: &str, removal: Removal, global: &Global) -> Result<Value, Failure> {
    let shown: Session = client.ask(&endpoint::Show::call(session))?;
    let declared: Declared = client.ask(&endpoint::Definition::call(&shown.id))?;
    let record = recorded(&shown, declared.worktree)?;
    let lossy = if removal.force { Lossy::Allowed } else { Lossy::Refused };
    let tree =
        RecordedTree::of(&record, lossy).map_err(|failure| failure.hint(by_hand(&record, &shown.name)))?;
    tree.has_no_work()?;
    // A live session holds the lock itself; its removal then says what is wrong.
    let guard = if shown.pid.is_none() { Some(lock(&tree, &shown.name, global)?) } else { None };
    is_used_by_no_other(client, &shown, tree.path)?;
    let archived = removal::put_away(client, &shown)?;
    // From here on nothing of the session can run. Work that appeared meanwhile keeps the worktree, and the
    // record that says where it is.
    let gone = tree.has_no_work().and_then(|()| tree.take_away());
    drop(guard);
    gone.map_err(|failure| if archived { put_away(&failure) } else { failure })?;
    let removed: Removed = client.ask(&endpoint::Remove::call(&shown.id, &removal.also))?;
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

/// The record of a worktree that pinfold may remove.
fn recorded(session: &Session, record: Option<SessionWorktree>) -> Result<SessionWorktree, Failure> {
    let name = &session.name;
    let Some(record) = record else {
        let message = format!(
            "session `{name}` was not created with `--worktree`: nothing of its worktree is recorded"
        );
        return Err(Failure::new(Kind::Failed, message).hint(format!(
            "`{}` removes a worktree; `pinfold rm {name} --yes` deletes the session only",
            git_worktree_remove(repository_of(Path::new(&session.dir)).as_deref(), &session.dir)
        )));
    };
    let refused = |what: String| Failure::new(Kind::Failed, what).hint(by_hand(&record, name));
    if session.dir != record.path {
        return Err(refused(format!(
            "session `{name}` runs in {} now, and not in its worktree {}",
            session.dir, record.path
        )));
    }
    if !record.created {
        return Err(refused(format!(
            "the worktree {} was there before session `{name}`: pinfold did not make it",
            record.path
        )));
    }
    Ok(record)
}

/// The repository of a worktree with a usual place, by its path alone.
fn repository_of(dir: &Path) -> Option<PathBuf> {
    let folder = dir.parent()?;
    let name = folder.file_name()?.to_str()?.strip_suffix(".worktrees")?;
    Some(folder.with_file_name(name))
}

fn git_worktree_remove(repository: Option<&Path>, path: &str) -> String {
    let at = repository.map(|repository| format!(" -C {}", quoted(&repository.to_string_lossy())));
    format!("git{} worktree remove {}", at.unwrap_or_default(), quoted(path))
}

fn by_hand(record: &SessionWorktree, session: &str) -> String {
    let remove = git_worktree_remove(Some(Path::new(&record.repository)), &record.path);
    format!("once you know why, `{remove}` removes it; `pinfold rm {session} --yes` deletes the session only")
}

/// Refuses if another session has its directory in the worktree, whether it runs or not. One that is archived
/// does not count: it does not run again unless it is restored.
fn is_used_by_no_other(client: &Client, own: &Session, path: &Path) -> Result<(), Failure> {
    let all = query::Sessions { all: true, known: true, brief: true, ..query::Sessions::default() };
    let all: Vec<Session> = client.ask(&endpoint::Sessions::call(&all))?;
    let uses = |other: &&Session| {
        other.id != own.id && other.state != State::Archived && Path::new(&other.dir).starts_with(path)
    };
    let Some(other) = all.iter().find(uses) else { return Ok(()) };
    let message = format!("the worktree {} is used by session `{}` too", path.display(), other.name);
    Err(Failure::new(Kind::Failed, message).hint(format!(
        "archive `{0}` first, or give it another directory: `pinfold set {0} --dir DIR`",
        other.name
    )))
}

/// Locks the worktree while it is removed, so that nothing else works in it.
fn lock(tree: &RecordedTree<'_>, session: &str, global: &Global) -> Result<Guard, Failure> {
    let gone = || gone(tree.path, session);
    let resource =
        Resource::parse(tree.path.as_os_str()).map_err(|error| gone().unwrap_or_else(|| error.into()))?;
    let folder = home::folder_for(&resource, global)?;
    let request = Request { reason: Some("rm --worktree".to_owned()), ..Request::default() };
    folder.try_acquire(&resource, &request).map_err(|error| gone().unwrap_or_else(|| error.into()))
}

/// Says so if something else has removed the worktree meanwhile.
fn gone(path: &Path, session: &str) -> Option<Failure> {
    let message = || format!("the worktree {} was removed meanwhile", path.display());
    (!path.exists()).then(|| {
        Failure::new(Kind::Failed, message())
            .hint(format!("`pinfold rm {session} --yes` deletes the session only"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_removes_a_worktree_is_exact() {
        let rows = [
            ("/src/api.worktrees/fix", "git -C /src/api worktree remove /src/api.worktrees/fix"),
            ("/my src/api.worktrees/fix", "git -C '/my src/api' worktree remove '/my src/api.worktrees/fix'"),
            ("/src/elsewhere", "git worktree remove /src/elsewhere"),
            ("/", "git worktree remove /"),
        ];
        for (dir, expected) in rows {
            assert_eq!(git_worktree_remove(repository_of(Path::new(dir)).as_deref(), dir), expected);
        }
    }
}
