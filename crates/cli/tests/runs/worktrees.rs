//! Worktrees of sessions: what is never removed, through real git.

use crate::world::World;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A repository with one commit.
pub(crate) struct Repository {
    pub(crate) path: PathBuf,
}

impl Repository {
    pub(crate) fn new(path: &Path) -> Repository {
        std::fs::create_dir_all(path).unwrap();
        let repository = Repository { path: std::fs::canonicalize(path).unwrap() };
        git(path, &["init", "-q", "-b", "main"]);
        repository.commit(path, "first");
        repository
    }

    fn commit(&self, tree: &Path, text: &str) {
        git(tree, &["commit", "-q", "--allow-empty", "-m", text]);
    }
}

fn git(dir: &Path, words: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@localhost", "-C"]).arg(dir).args(words);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", dir);
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {words:?}: {output:?}");
}

#[test]
fn no_work_that_is_nowhere_else_is_removed() {
    let world = World::new();
    let repository = Repository::new(&world.path("repo"));
    let repo = repository.path.display().to_string();
    let tree = world.path("repo.worktrees/fix");
    world.ok(&["new", "a", "--mode", "on-demand", "--dir", &repo, "--worktree", "fix", "--", "cat"]);
    assert!(world.show("a")["worktree"]["disk_bytes"].as_u64().unwrap() > 0);
    world.ok(&["archive", "a"]);
    let refused = |says: &str, code: i32| {
        let answer = world.run(&["rm", "a", "--yes", "--worktree"]);
        assert_eq!(answer.code, code, "{answer:?}");
        assert!(answer.stderr.contains(says), "{answer:?} without {says}");
        assert!(tree.exists());
        assert_eq!(world.show("a")["state"], "archived", "a session that is refused stays");
    };
    std::fs::write(tree.join("draft"), "work").unwrap();
    refused("uncommitted work (1 file)", 1);
    git(&tree, &["add", "draft"]);
    refused("uncommitted work (1 file)", 1);
    git(&tree, &["commit", "-q", "-m", "second"]);
    refused("on no remote and in no other branch (1 commit)", 1);
    git(&repository.path, &["merge", "-q", "fix"]);
    git(&repository.path, &["worktree", "lock", "--reason", "on a stick", &tree.display().to_string()]);
    refused("is locked: on a stick", 1);
    git(&repository.path, &["worktree", "unlock", &tree.display().to_string()]);
    // Another session works in it.
    world.ok(&["new", "b", "--dir", &tree.display().to_string(), "--", "sleep", "100000"]);
    refused("is held by", 75);
    world.ok(&["stop", "b"]);
    // What the caller's environment says of git is not heard.
    let mut command = world.command(&["rm", "a", "--yes", "--worktree"]);
    command.env("GIT_DIR", "/nowhere").env("GIT_WORK_TREE", "/nowhere");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(!tree.exists());
    git(&repository.path, &["rev-parse", "--verify", "-q", "refs/heads/fix"]);
}

#[test]
fn a_branch_on_a_remote_is_followed_and_pushed_work_may_go() {
    let world = World::new();
    let origin = Repository::new(&world.path("origin"));
    git(&origin.path, &["branch", "theirs"]);
    let clone = world.path("clone");
    git(&origin.path, &["clone", "-q", ".", &clone.display().to_string()]);
    let dir = clone.display().to_string();
    world.ok(&["new", "a", "--mode", "on-demand", "--dir", &dir, "--worktree", "theirs", "--", "cat"]);
    let tree = world.path("clone.worktrees/theirs");
    git(&tree, &["commit", "-q", "--allow-empty", "-m", "mine"]);
    world.ok(&["archive", "a"]);
    assert_eq!(world.run(&["rm", "a", "--yes", "--worktree"]).code, 1);
    git(&tree, &["push", "-q", "origin", "theirs"]);
    world.ok(&["rm", "a", "--yes", "--worktree"]);
    assert!(!tree.exists());
}

#[test]
fn a_session_that_rests_is_archived_first_with_its_worktree_as_without() {
    let world = World::new();
    let origin = Repository::new(&world.path("origin"));
    let dir = origin.path.display().to_string();
    world.ok(&["new", "a", "--dir", &dir, "--worktree", "fix", "--", "sleep", "1000"]);
    assert_eq!(world.run(&["rm", "a", "--yes", "--worktree"]).code, 1, "it lives");
    world.ok(&["stop", "a"]);
    world.ok(&["rm", "a", "--yes", "--worktree"]);
    assert!(!world.path("origin.worktrees/fix").exists());
    assert_eq!(world.sessions().len(), 0);
}
