//! Worktrees of sessions, with real git: what is never removed.

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
    assert!(world.ok(&["show", "a"]).stdout.contains("Worktree: "), "and the page says it too");
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
    // Git variables in the caller's environment are ignored.
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

/// Creates a session in its own worktree; returns the worktree's path.
fn in_worktree(world: &World, name: &str, repo: &str, options: &[&str], command: &[&str]) -> PathBuf {
    let words = [&["new", name, "--dir", repo, "--worktree", name], options, &["--"], command].concat();
    world.ok(&words);
    world.path("repo.worktrees").join(name)
}

#[test]
fn a_session_that_rests_is_archived_first_and_one_that_lives_is_left_alone() {
    let world = World::new();
    let repo = Repository::new(&world.path("repo")).path.display().to_string();
    let on_demand = ["--mode", "on-demand"];
    let idle = in_worktree(&world, "idle", &repo, &on_demand, &["cat"]);
    let stopped = in_worktree(&world, "stopped", &repo, &[], &["sleep", "100000"]);
    let failed = in_worktree(&world, "failed", &repo, &["--mode", "once"], &["false"]);
    let live = in_worktree(&world, "live", &repo, &[], &["sleep", "100000"]);
    world.ok(&["stop", "stopped"]);
    world.wait("failed", "failed");
    // It looks for work before it touches anything.
    std::fs::write(idle.join("draft"), "work").unwrap();
    let refused = world.run(&["rm", "idle", "--yes", "--worktree"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("uncommitted work (1 file)"), "{refused:?}");
    assert_eq!(world.show("idle")["state"], "idle", "it is not archived either");
    std::fs::remove_file(idle.join("draft")).unwrap();
    let all = world.run(&["rm", "idle", "stopped", "failed", "live", "--yes", "--worktree"]);
    assert_eq!(all.code, 1, "{all:?}");
    assert!(all.stderr.contains("pinfold archive live"), "{all:?}");
    assert!(!idle.exists() && !stopped.exists() && !failed.exists() && live.exists());
    let left: Vec<String> = world.sessions().into_keys().collect();
    assert_eq!(left, ["live"]);
    assert_eq!(world.show("live")["state"], "running");
    assert_eq!(world.run(&["rm", "idle", "--yes", "--worktree"]).code, 1, "twice: there is no such session");
}

/// A `git` that calls the real one, and does something before the second `status`.
fn git_that_waits_for(world: &World, act: &str) -> String {
    let folder = world.path("wrapped");
    std::fs::create_dir_all(&folder).unwrap();
    let counted = world.path("counted").display().to_string();
    let script = format!(
        "#!/bin/sh\nfor word; do if [ \"$word\" = status ]; then echo >> '{counted}'; \
         [ \"$(wc -l < '{counted}')\" != 2 ] || {{ {act}; }}; fi; done\nexec /usr/bin/git \"$@\"\n"
    );
    let git = folder.join("git");
    std::fs::write(&git, script).unwrap();
    std::fs::set_permissions(&git, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    format!("{}:/usr/bin:/bin", folder.display())
}

#[test]
fn work_that_comes_at_the_last_moment_keeps_the_worktree_and_the_record() {
    let world = World::new();
    let repo = Repository::new(&world.path("repo")).path.display().to_string();
    let tree = in_worktree(&world, "a", &repo, &["--mode", "on-demand"], &["cat"]);
    let path = git_that_waits_for(&world, &format!("echo work > '{}'", tree.join("draft").display()));
    let refused = crate::world::finish(world.command(&["rm", "a", "--yes", "--worktree"]).env("PATH", path));
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("the session is archived, and not deleted"), "{refused:?}");
    assert!(tree.join("draft").exists());
    assert_eq!(world.show("a")["state"], "archived");
    std::fs::remove_file(tree.join("draft")).unwrap();
    world.ok(&["rm", "a", "--yes", "--worktree"]);
    assert!(!tree.exists() && world.sessions().is_empty());
}

#[test]
fn two_that_remove_one_worktree_at_once_remove_it_once() {
    let world = World::new();
    let repo = Repository::new(&world.path("repo")).path.display().to_string();
    let tree = in_worktree(&world, "a", &repo, &["--mode", "on-demand"], &["cat"]);
    let both: Vec<_> = std::thread::scope(|scope| {
        let one = || scope.spawn(|| world.run(&["rm", "a", "--yes", "--worktree"]));
        let started = [one(), one()];
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut codes: Vec<i32> = both.iter().map(|answer| answer.code).collect();
    codes.sort_unstable();
    assert!(codes[0] == 0 && [1, 75].contains(&codes[1]), "{both:?}");
    assert!(!tree.exists() && world.sessions().is_empty());
}
