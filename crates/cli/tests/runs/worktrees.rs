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

pub(crate) fn git(dir: &Path, words: &[&str]) {
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
    refused("is used by session `b` too", 1);
    world.ok(&["archive", "b"]);
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

/// A repository with a tracked file and an ignored name, a session in a worktree of it, and the worktree.
fn with_session() -> (World, PathBuf, PathBuf) {
    let world = World::new();
    let repository = Repository::new(&world.path("repo")).path;
    std::fs::write(repository.join("tracked"), "text\n").unwrap();
    std::fs::write(repository.join(".gitignore"), "/target/\n*.env\n").unwrap();
    git(&repository, &["add", "."]);
    git(&repository, &["commit", "-q", "-m", "files"]);
    let tree =
        in_worktree(&world, "a", &repository.display().to_string(), &["--mode", "on-demand"], &["cat"]);
    (world, repository, tree)
}

/// Refused with these words, with and without `--force`, and nothing is lost.
fn refused(world: &World, tree: &Path, words: &str, options: &[&[&str]]) {
    for options in options {
        let answer = world.run(&[&["rm", "a", "--yes", "--worktree"], *options].concat());
        assert_eq!(answer.code, 1, "{options:?}: {answer:?}");
        assert!(answer.stderr.contains(words), "{options:?}: {answer:?} without {words}");
        assert!(tree.exists(), "{options:?}");
        assert_eq!(world.show("a")["state"], "idle", "{options:?}: a session that is refused stays");
    }
}

const ALWAYS: &[&[&str]] = &[&[], &["--force"]];

#[test]
fn work_that_the_configuration_hides_is_found() {
    let (world, repository, tree) = with_session();
    git(&repository, &["config", "status.showUntrackedFiles", "no"]);
    std::fs::write(tree.join("draft"), "work").unwrap();
    refused(&world, &tree, "uncommitted work (1 file)", ALWAYS);
    std::fs::remove_file(tree.join("draft")).unwrap();
    for flag in ["assume-unchanged", "skip-worktree"] {
        git(&tree, &["update-index", &format!("--{flag}"), "tracked"]);
        std::fs::write(tree.join("tracked"), "work\n").unwrap();
        refused(&world, &tree, "changes in files that git was told to skip (1 file)", ALWAYS);
        std::fs::write(tree.join("tracked"), "text\n").unwrap();
        git(&tree, &["update-index", &format!("--no-{flag}"), "tracked"]);
    }
    // A sparse checkout leaves files out; that is no work.
    git(&tree, &["update-index", "--skip-worktree", "tracked"]);
    std::fs::remove_file(tree.join("tracked")).unwrap();
    world.ok(&["rm", "a", "--yes", "--worktree"]);
    assert!(!tree.exists());
}

#[test]
fn ignored_files_are_named_and_removed_with_force_only() {
    let (world, _, tree) = with_session();
    std::fs::create_dir_all(tree.join("target/deep")).unwrap();
    std::fs::write(tree.join("target/deep/file"), "built").unwrap();
    std::fs::write(tree.join("secret.env"), "KEY=1").unwrap();
    refused(&world, &tree, "files that git ignores (2 files or directories: secret.env, target/)", &[&[]]);
    std::fs::write(tree.join("draft"), "work").unwrap();
    refused(&world, &tree, "uncommitted work (1 file)", ALWAYS);
    std::fs::remove_file(tree.join("draft")).unwrap();
    world.ok(&["rm", "a", "--yes", "--worktree", "--force"]);
    assert!(!tree.exists());
    assert_eq!(world.run(&["rm", "a", "--yes", "--force"]).code, 2, "it belongs to --worktree");
}

#[test]
fn commits_on_a_detached_head_stay() {
    let (world, repository, tree) = with_session();
    git(&tree, &["checkout", "-q", "--detach"]);
    git(&tree, &["commit", "-q", "--allow-empty", "-m", "mine"]);
    refused(&world, &tree, "in no branch (1 commit on a detached HEAD)", ALWAYS);
    git(&tree, &["branch", "kept"]);
    world.ok(&["rm", "a", "--yes", "--worktree"]);
    assert!(!tree.exists());
    git(&repository, &["rev-parse", "--verify", "-q", "refs/heads/kept"]);
}

#[test]
fn a_worktree_that_another_session_uses_stays_until_that_is_archived() {
    let (world, _, tree) = with_session();
    std::fs::create_dir(tree.join("inside")).unwrap();
    for (name, dir) in [("b", tree.clone()), ("c", tree.join("inside"))] {
        let dir = dir.display().to_string();
        world.ok(&["new", name, "--mode", "on-demand", "--dir", &dir, "--", "cat"]);
        refused(&world, &tree, &format!("is used by session `{name}` too"), ALWAYS);
        world.ok(&["archive", name]);
    }
    world.ok(&["rm", "a", "--yes", "--worktree"]);
    assert!(!tree.exists());
}

#[test]
fn a_directory_that_pinfold_did_not_make_stays() {
    let world = World::new();
    let repository = Repository::new(&world.path("repo")).path;
    let (repo, folder, target) =
        (repository.display().to_string(), world.path("repo.worktrees"), world.path("target"));
    let remove = |name: &str| world.run(&["rm", name, "--yes", "--worktree"]);
    let on_demand = ["--mode", "on-demand"];
    // A link, its target, and a folder of the user's.
    std::fs::create_dir(&target).unwrap();
    std::os::unix::fs::symlink(&target, &folder).unwrap();
    in_worktree(&world, "a", &repo, &on_demand, &["cat"]);
    assert!(target.join("a").exists());
    assert_eq!(remove("a").code, 0);
    assert!(folder.is_symlink() && target.exists() && !target.join("a").exists());
    std::fs::remove_file(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
    in_worktree(&world, "b", &repo, &on_demand, &["cat"]);
    assert_eq!(remove("b").code, 0);
    assert!(folder.exists() && !folder.join("b").exists());
    std::fs::remove_dir(&folder).unwrap();
    // Its own folder goes with the last worktree.
    for name in ["c", "d"] {
        in_worktree(&world, name, &repo, &on_demand, &["cat"]);
    }
    for name in ["c", "d"] {
        assert!(folder.exists());
        assert_eq!(remove(name).code, 0);
    }
    assert!(!folder.exists());
    // A worktree of the user's.
    let own = folder.join("e");
    git(&repository, &["worktree", "add", "-q", "-b", "e", &own.display().to_string()]);
    in_worktree(&world, "e", &repo, &on_demand, &["cat"]);
    let answer = remove("e");
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(answer.stderr.contains("pinfold did not make it"), "{answer:?}");
    assert!(own.exists());
}

#[test]
fn a_worktree_of_a_session_that_was_deleted_belongs_to_the_next_one() {
    let (world, repository, tree) = with_session();
    world.ok(&["rm", "a", "--yes"]);
    in_worktree(&world, "a", &repository.display().to_string(), &["--mode", "on-demand"], &["cat"]);
    world.ok(&["rm", "a", "--yes", "--worktree"]);
    assert!(!tree.exists());
}

#[test]
fn the_record_of_a_worktree_survives_a_restart_and_an_export() {
    let (world, repository, tree) = with_session();
    let file = world.path("sessions.toml").display().to_string();
    std::fs::write(&file, world.ok(&["export"]).stdout).unwrap();
    let same = world.ok(&["apply", &file]);
    assert!(same.stderr.contains("nothing to do"), "{same:?}");
    world.ok(&["down"]);
    world.ok(&["rm", "a", "--yes"]);
    world.ok(&["apply", &file]);
    let other = std::fs::read_to_string(&file).unwrap().replace("created = true", "created = false");
    std::fs::write(&file, other).unwrap();
    let changed = world.run(&["apply", &file]);
    assert_eq!(changed.code, 2, "{changed:?}");
    assert!(changed.stderr.contains("the worktree of a session cannot be changed"), "{changed:?}");
    // The directory of a session can be changed; then it is not clear what is to be removed.
    let repo = repository.display().to_string();
    world.ok(&["set", "a", "--dir", &repo]);
    refused(&world, &tree, "and not in its worktree", ALWAYS);
    world.ok(&["set", "a", "--dir", &tree.display().to_string()]);
    world.ok(&["rm", "a", "--yes", "--worktree"]);
    assert!(!tree.exists());
}

#[test]
fn without_a_record_the_command_of_git_is_named() {
    let world = World::new();
    let repository = Repository::new(&world.path("repo")).path;
    let tree = world.path("repo.worktrees/a");
    git(&repository, &["worktree", "add", "-q", "-b", "a", &tree.display().to_string()]);
    let dir = tree.display().to_string();
    world.ok(&["new", "a", "--mode", "on-demand", "--dir", &dir, "--", "cat"]);
    let named = format!("git -C {} worktree remove {dir}", repository.display());
    refused(&world, &tree, &named, ALWAYS);
}

#[test]
fn the_reason_that_git_gives_is_shown() {
    let world = World::new();
    let plain = world.path("plain");
    std::fs::create_dir(&plain).unwrap();
    let new = |dir: &Path| {
        let dir = dir.display().to_string();
        world.run(&["new", "a", "--mode", "on-demand", "--dir", &dir, "--worktree", "a", "--", "cat"])
    };
    let answer = new(&plain);
    assert_eq!(answer.code, 78, "{answer:?}");
    assert!(answer.stderr.contains("is not in a git repository (git "), "{answer:?}");
    let broken = Repository::new(&world.path("broken")).path;
    std::fs::write(broken.join(".git/config"), "[core\n").unwrap();
    let answer = new(&broken);
    assert_eq!(answer.code, 78, "{answer:?}");
    assert!(
        answer.stderr.contains("git refuses the repository") && answer.stderr.contains("bad config line 1"),
        "{answer:?}"
    );
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
