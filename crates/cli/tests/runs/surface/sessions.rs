//! Sessions that are created, looked at, steered, archived and deleted.

use super::stage::Stage;

/// Prints one line, and runs until it is stopped: a single process that is always the same program.
const SERVER: [&str; 3] = ["tail", "-f", "serving"];

impl Stage {
    /// Creates a session that runs until it is stopped, and waits for its line.
    pub(super) fn server(&self, name: &str, options: &[&str]) {
        // Once: `tail` of the server before would notice another writing, and say so.
        let file = self.world.path("serving");
        if !file.exists() {
            std::fs::write(file, "serving\n").unwrap();
        }
        self.ok(&[&["new", name], options, &["--"], &SERVER].concat());
        self.said(name, "serving");
    }

    /// Waits until a session's agent has printed a line. Nothing is followed: that would count as a consumer.
    pub(super) fn said(&self, name: &str, line: &str) {
        let has = |text: &str| text.lines().any(|said| said == line);
        self.world
            .until(&format!("`{line}` from {name}"), || has(&self.ok(&["logs", name]).stdout).then_some(()));
    }

    /// Creates a session whose single run fails, and waits for that.
    pub(super) fn failed(&self, name: &str) {
        self.ok(&["new", name, "--mode", "once", "--", "sh", "-c", "echo no luck; exit 3"]);
        self.world.wait(name, "failed");
    }
}

#[test]
fn sessions_are_made_and_changed() {
    let stage = Stage::new("new");
    stage.case("running", &[&["new", "a", "--", "sleep", "100000"]]);
    stage.case("json", &[&["--json", "new", "b", "--", "sleep", "100000"]]);
    stage.case("quiet", &[&["--quiet", "new", "c", "--mode", "on-demand", "--", "cat"]]);
    let options =
        ["--mode", "on-demand", "--memory", "512M", "--idle", "5m", "--stop-grace", "3s", "--turns", "done"];
    let more = [
        "--input",
        "json",
        "--tag",
        "t",
        "--tag",
        "u",
        "--parent",
        "a",
        "--env",
        "KEY=value",
        "--no-dir-lock",
    ];
    stage.case("every_option", &[&[&["--json", "new", "d"], &options[..], &more, &["--", "cat"]].concat()]);
    stage.case("terminal", &[&["--json", "new", "e", "--pty", "--mode", "on-demand", "--", "cat"]]);
    stage.case("set", &[&["set", "c", "--idle", "1h"], &["--json", "set", "c", "--tag", "x"]]);
    stage.case("set_nothing", &[&["set", "c"]]);
    stage.case(
        "fails_at_once",
        &[
            &["new", "f", "--mode", "once", "--force", "--", "/no/such/program"],
            &["--json", "new", "g", "--mode", "once", "--force", "--", "/no/such/program"],
        ],
    );
    stage.done();
}

#[test]
fn sessions_are_looked_at() {
    let stage = Stage::new("looks");
    stage.both("ls_empty", &["ls"]);
    stage.both("tree_empty", &["tree"]);
    stage.both("events_empty", &["events"]);
    stage.server("api", &["--tag", "t"]);
    stage.ok(&["new", "child", "--parent", "api", "--mode", "on-demand", "--", "cat"]);
    stage.failed("job");
    stage.ok(&["new", "old", "--mode", "on-demand", "--", "cat"]);
    stage.ok(&["archive", "old"]);
    stage.both("ls", &["ls"]);
    stage.both("ls_all", &["ls", "--all"]);
    stage.both("ls_state", &["ls", "--state", "failed"]);
    stage.both("ls_tag", &["ls", "--tag", "t"]);
    stage.both("ls_none", &["ls", "--tag", "no-such-tag"]);
    stage.both("tree", &["tree"]);
    stage.both("tree_all", &["tree", "--all"]);
    for name in ["api", "child", "job", "old"] {
        stage.both(&format!("show_{name}"), &["show", name]);
        stage.both(&format!("why_{name}"), &["why", name]);
    }
    stage.both("logs", &["logs", "api"]);
    stage.both("logs_of_a_failed_run", &["logs", "job", "-n", "1"]);
    stage.both("logs_of_none", &["logs", "child"]);
    stage.both("events", &["events"]);
    stage.both("events_of_one", &["events", "--session", "job"]);
    stage.both("events_last", &["events", "-n", "1"]);
    stage.both("wait_failed", &["wait", "job", "--for", "failed"]);
    stage.both("wait_running", &["wait", "api", "--for", "running,failed", "--timeout", "60s"]);
    stage.done();
}

#[test]
fn sessions_are_steered() {
    let stage = Stage::new("steers");
    stage.server("a", &[]);
    stage.server("b", &[]);
    stage.case("stop", &[&["stop", "a"], &["--json", "stop", "b", "--timeout", "2s"]]);
    stage.case("stop_again", &[&["stop", "a"], &["--json", "stop", "a"]]);
    stage.case("start", &[&["start", "a"], &["--json", "start", "b"]]);
    stage.case("start_again", &[&["start", "a"], &["--json", "start", "a"]]);
    stage.case("restart", &[&["restart", "a"], &["--json", "restart", "b"]]);
    stage.case("quiet", &[&["--quiet", "restart", "a"]]);
    stage.case("one_of_two", &[&["--json", "stop", "a", "nobody"]]);
    let second = "test -e again && exec sleep 100000; touch again; exit 3";
    stage.ok(&["new", "job", "--mode", "once", "--", "sh", "-c", second]);
    stage.world.wait("job", "failed");
    stage.case("start_of_what_failed", &[&["start", "job"]]);
    stage.ok(&["new", "broken", "--mode", "on-demand", "--force", "--", "/no/such/program"]);
    stage.both("start_that_fails", &["start", "broken"]);
    stage.done();
}

#[test]
fn sessions_are_put_away_and_brought_back() {
    let stage = Stage::new("archive");
    let make = |name: &str| _ = stage.ok(&["new", name, "--mode", "on-demand", "--", "cat"]);
    stage.both("purge_nothing", &["purge"]);
    stage.both("restore_all_nothing", &["restore", "--all"]);
    ["a", "b", "c", "d"].iter().for_each(|name| make(name));
    stage.server("busy", &[]);
    stage.case("archive", &[&["archive", "a"], &["--json", "archive", "b"]]);
    stage.both("purge_dry", &["purge", "--dry-run"]);
    stage.both("purge_dry_all", &["purge", "--dry-run", "--mode", "all", "--include-active"]);
    stage.case("purge", &[&["purge"], &["--json", "purge"]]);
    stage.case("restore", &[&["restore", "a"], &["--json", "restore", "b"]]);
    stage.case("restore_all", &[&["restore", "--all"]]);
    stage.ok(&["archive", "c", "d"]);
    stage.case("restore_all_json", &[&["--json", "restore", "--all"]]);
    stage.both("rm_without_yes", &["rm", "c"]);
    stage.both("rm_of_what_runs", &["rm", "busy", "--yes"]);
    stage.ok(&["new", "rests", "--mode", "on-demand", "--", "cat"]);
    stage.case("rename", &[&["rename", "rests", "rested"], &["--json", "rename", "rested", "rests"]]);
    stage.both("rename_of_what_runs", &["rename", "busy", "lazy"]);
    stage.both("rename_to_a_taken_name", &["rename", "rests", "busy"]);
    stage.both("rename_to_no_name", &["rename", "rests", "no spaces"]);
    stage.case("rm_of_what_rests", &[&["rm", "rests", "--yes"]]);
    stage.both("restore_of_what_is_not_archived", &["restore", "c"]);
    stage.ok(&["archive", "c", "d"]);
    make("d");
    stage.both("archived_twice", &["archive", "c"]);
    stage.both("restore_of_a_name_in_use", &["restore", "d"]);
    stage.case("rm", &[&["rm", "c", "--yes"]]);
    stage.ok(&["archive", "a", "b"]);
    stage.case("rm_json", &[&["--json", "rm", "a", "b", "--yes"]]);
    stage.done();
}

#[test]
fn the_terminal_ui_is_printed_as_text() {
    let stage = Stage::new("tui");
    stage.both("empty", &["tui", "--frame", "80x12"]);
    stage.ok(&["new", "chat", "--mode", "on-demand", "--tag", "team", "--", "cat"]);
    stage.both("one", &["tui", "--frame", "48x8"]);
    stage.both("not_a_size", &["tui", "--frame", "80"]);
    stage.both("no_terminal", &["tui"]);
    stage.both("no_daemon", &["--no-start", "--home", "elsewhere", "tui", "--frame", "80x24"]);
    stage.done();
}
