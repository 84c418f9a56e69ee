//! Search, declared sessions, worktrees, the service and `reload`.

use super::stage::Stage;
use crate::inbox::PARROT;
use crate::worktrees::Repository;

#[test]
fn what_was_said_is_found() {
    let stage = Stage::new("search");
    let options = ["--mode", "on-demand", "--turns", "done", "--idle", "1h"];
    stage.ok(&[&["new", "chat"], &options[..], &["--", "sh", "-c", PARROT]].concat());
    stage.ok(&["send", "chat", "mend the login page", "--wait", "60s"]);
    stage.both("found", &["search", "login"]);
    stage.both("found_in_a_name", &["search", "cha", "--session", "chat"]);
    stage.both("only_so_many", &["search", "login", "-n", "1"]);
    stage.both("nothing_found", &["search", "nowhere \"OR *"]);
    stage.both("nothing_sought", &["search", " "]);
    stage.both("too_many", &["search", "login", "-n", "1001"]);
    stage.both("of_nobody", &["search", "login", "--session", "nobody"]);
    stage.done();
}

#[test]
fn sessions_are_declared_and_exported() {
    let stage = Stage::new("declared");
    let file = |name: &str, text: &str| {
        let path = stage.world.path(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let work = "[sessions.work]\ncommand = [\"sleep\", \"100000\"]\nmode = \"on-demand\"\nidle = \"5m\"\n";
    let first = file("first.toml", work);
    stage.case("dry_run", &[&["apply", &first, "--dry-run"], &["--json", "apply", &first, "--dry-run"]]);
    stage.case("created_and_again", &[&["apply", &first], &["apply", &first], &["--json", "apply", &first]]);
    let second = file(
        "second.toml",
        &format!(
            "{}\n[sessions.more]\ncommand = [\"true\"]\nmode = \"on-demand\"\n",
            work.replace("5m", "7m")
        ),
    );
    stage.case("changed", &[&["apply", &second], &["--json", "apply", &second]]);
    stage.both("export", &["export"]);
    stage.both("export_of_nobody", &["export", "nobody"]);
    stage.case(
        "pruned",
        &[&["apply", &first, "--prune", "--dry-run"], &["--json", "apply", &first, "--prune"]],
    );
    let unknown = file("unknown.toml", "[sessions.work]\nmood = \"once\"\n");
    stage.both("unknown_key", &["apply", &unknown]);
    let bad = file("bad.toml", "[sessions.work]\nidle = \"soon\"\n");
    stage.both("bad_value", &["apply", &bad]);
    let without = file("without.toml", "[sessions.new]\nenv = [\"SURELY_NOT_SET\"]\ncommand = [\"true\"]\n");
    stage.both("without_a_value", &["apply", &without]);
    stage.both("missing_file", &["apply", "nowhere.toml"]);
    let agent = file("agent.toml", "[sessions.work]\nagent = \"claude\"\n");
    stage.both("another_agent", &["apply", &agent]);
    stage.done();
}

#[test]
fn worktrees_are_made_and_removed() {
    let stage = Stage::new("worktrees");
    let repository = Repository::new(&stage.world.path("repo"));
    let repo = repository.path.display().to_string();
    let new = ["new", "work", "--mode", "on-demand", "--dir", &repo, "--worktree", "fix/it"];
    stage.case("new", &[&[&new[..], &["--", "cat"]].concat()]);
    let other = ["new", "work", "--mode", "on-demand", "--dir", &repo, "--worktree", "other"];
    stage.both("new_of_a_taken_name", &[&other[..], &["--", "cat"]].concat());
    assert!(!stage.world.path("repo.worktrees/other").exists(), "what was made for it is taken back");
    let main = ["new", "main", "--dir", &repo, "--worktree", "main", "--", "cat"];
    stage.both("new_of_a_branch_that_is_checked_out", &main);
    let bad = ["new", "bad", "--dir", &repo, "--worktree", "..", "--", "cat"];
    stage.both("new_of_a_bad_branch", &bad);
    let nowhere = stage.world.path("user");
    std::fs::create_dir_all(&nowhere).unwrap();
    let nowhere = nowhere.display().to_string();
    stage.both(
        "new_outside_of_a_repository",
        &["new", "bad", "--dir", &nowhere, "--worktree", "x", "--", "cat"],
    );
    stage.ok(&["archive", "work"]);
    let tree = stage.world.path("repo.worktrees/fix-it");
    std::fs::write(tree.join("draft"), "work").unwrap();
    stage.both("rm_with_uncommitted_work", &["rm", "work", "--yes", "--worktree"]);
    std::fs::remove_file(tree.join("draft")).unwrap();
    stage.case("rm", &[&["rm", "work", "--yes", "--worktree"]]);
    assert!(!tree.exists() && !stage.world.path("repo.worktrees").exists());
    stage.ok(&["new", "plain", "--mode", "on-demand", "--dir", &repo, "--", "cat"]);
    stage.ok(&["archive", "plain"]);
    stage.both("rm_of_what_is_no_worktree", &["rm", "plain", "--yes", "--worktree"]);
    stage.done();
}

#[test]
fn the_daemon_starts_with_the_machine() {
    let stage = Stage::new("service");
    for manager in ["systemd", "cron", "launchd"] {
        stage.both(manager, &["service", "install", "--print", "--manager", manager]);
    }
    stage.both("not_installed", &["service", "uninstall", "--manager", "systemd"]);
    stage.both("unknown_manager", &["service", "install", "--manager", "upstart"]);
    stage.done();
}

#[test]
fn the_configuration_is_read_again() {
    let stage = Stage::new("reload");
    stage.both("reload", &["reload"]);
    std::fs::write(stage.world.home.join("config.toml"), "[polcy]\n").unwrap();
    stage.both("bad_configuration", &["reload"]);
    stage.both("new_with_a_bad_configuration", &["new", "work", "--mode", "on-demand", "--", "cat"]);
    std::fs::write(stage.world.home.join("config.toml"), "[agents.mine]\ncommand = [\"cat\"]\n").unwrap();
    // Nothing has asked for the file to be read.
    stage.ok(&["new", "work", "--agent", "mine"]);
    stage.done();
}
