//! Impossible values, and what the machine or the home does not allow.

use super::stage::Stage;
use crate::world::Answer;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_session_that_cannot_be_made() {
    let stage = Stage::new("new_refused");
    stage.ok(&["new", "a", "--mode", "on-demand", "--", "cat"]);
    std::fs::write(stage.world.path("open"), "KEY=value\n").unwrap();
    std::fs::set_permissions(stage.world.path("open"), PermissionsExt::from_mode(0o644)).unwrap();
    std::fs::write(stage.world.path("wrong"), "KEY=value\n=x\n").unwrap();
    std::fs::set_permissions(stage.world.path("wrong"), PermissionsExt::from_mode(0o600)).unwrap();
    let long = "x".repeat(300);
    let rows: [(&str, &[&str]); 30] = [
        ("exists", &["new", "a", "--", "cat"]),
        ("no_command", &["new", "b"]),
        ("bad_name", &["new", "no spaces", "--", "cat"]),
        ("empty_name", &["new", "", "--", "cat"]),
        ("long_name", &["new", &long, "--", "cat"]),
        ("no_such_program", &["new", "b", "--", "no-such-program"]),
        ("no_such_path", &["new", "b", "--", "/no/such/program"]),
        ("not_a_program", &["new", "b", "--", "./open"]),
        ("no_such_directory", &["new", "b", "--dir", "missing", "--", "cat"]),
        ("directory_is_a_file", &["new", "b", "--dir", "open", "--", "cat"]),
        ("no_such_agent", &["new", "b", "--agent", "nobody-knows"]),
        ("no_such_mode", &["new", "b", "--mode", "sometimes", "--", "cat"]),
        ("no_such_input", &["new", "b", "--input", "xml", "--", "cat"]),
        ("no_such_turns", &["new", "b", "--turns", "never", "--", "cat"]),
        ("memory_without_unit", &["new", "b", "--memory", "512", "--", "cat"]),
        ("memory_of_what", &["new", "b", "--memory", "much", "--", "cat"]),
        ("idle_without_unit", &["new", "b", "--idle", "5", "--", "cat"]),
        ("grace_of_what", &["new", "b", "--stop-grace", "soon", "--", "cat"]),
        ("variable_without_name", &["new", "b", "--env", "=x", "--", "cat"]),
        ("variable_that_is_not_set", &["new", "b", "--env", "SURELY_NOT_SET", "--", "cat"]),
        ("variable_of_our_own", &["new", "b", "--env", "PINFOLD_RUN=x", "--", "cat"]),
        ("file_of_variables_open", &["new", "a", "--env-file", "open", "--", "cat"]),
        ("quoted_command", &["new", "b", "--", "sleep 100"]),
        ("line_for_a_shell", &["new", "b", "--", "make && ./run"]),
        ("word_of_the_shell", &["new", "b", "--", "cd", "/tmp"]),
        ("directory_as_program", &["new", "b", "--", "/tmp"]),
        ("file_of_variables_wrong", &["new", "b", "--env-file", "wrong", "--", "cat"]),
        ("file_of_variables_missing", &["new", "b", "--env-file", "missing", "--", "cat"]),
        ("long_tag", &["new", "b", "--tag", &long, "--", "cat"]),
        ("vendor_session_of_what", &["new", "b", "--vendor-session", "no/id", "--", "cat"]),
    ];
    for (name, words) in rows {
        stage.both(name, words);
    }
    stage.both("set_no_such_mode", &["set", "a", "--mode", "sometimes"]);
    stage.both("set_no_such_program", &["set", "a", "--", "no-such-program"]);
    stage.both("set_own_parent", &["set", "a", "--parent", "a"]);
    stage.both("ls_is_unchanged", &["ls"]);
    stage.done();
}

#[test]
fn a_value_that_cannot_be() {
    let stage = Stage::new("values");
    stage.server("a", &[]);
    stage.ok(&["new", "chat", "--mode", "on-demand", "--", "cat"]);
    let too_long = "x".repeat(100_000);
    let rows: [(&str, &[&str]); 17] = [
        ("ls_no_such_state", &["ls", "--state", "asleep"]),
        ("wait_no_such_state", &["wait", "a", "--for", "asleep"]),
        ("wait_too_long", &["wait", "a", "--for", "stopped", "--timeout", "10ms"]),
        ("wait_for_an_end_that_cannot_come", &["wait", "a", "--for", "running,asleep", "--timeout", "10ms"]),
        ("wait_without_unit", &["wait", "a", "--for", "stopped", "--timeout", "10"]),
        ("stop_without_unit", &["stop", "a", "--timeout", "10"]),
        ("send_wait_without_unit", &["send", "chat", "hello", "--wait", "10"]),
        ("send_nothing", &["send", "chat", ""]),
        ("send_empty_input", &["send", "chat", "-"]),
        ("send_long_key", &["send", "chat", "hello", "--key", &too_long]),
        ("inbox_no_such_state", &["inbox", "chat", "--state", "lost"]),
        ("inbox_retry_of_no_message", &["inbox", "chat", "--retry", "nothing"]),
        ("inbox_cancel_of_no_message", &["inbox", "chat", "--cancel", "01ARZ3NDEKTSV4RRFFQ69G5FAV"]),
        ("logs_no_such_run", &["logs", "a", "--run", "7"]),
        ("logs_no_such_message", &["logs", "a", "--message", "nothing"]),
        ("events_since_what", &["events", "--since", "yesterday"]),
        ("purge_no_such_mode", &["purge", "--mode", "sometimes"]),
    ];
    for (name, words) in rows {
        stage.both(name, words);
    }
    stage.done();
}

#[test]
fn a_lock_that_somebody_else_has() {
    let stage = Stage::new("blocked");
    std::fs::create_dir(stage.world.path("work")).unwrap();
    std::fs::write(stage.world.path("work/serving"), "serving\n").unwrap();
    stage.server("first", &["--dir", "work"]);
    stage.case(
        "new_blocked",
        &[
            &["new", "second", "--dir", "work", "--", "cat"],
            &["--json", "new", "third", "--dir", "work", "--", "cat"],
        ],
    );
    stage.both("why", &["why", "second"]);
    stage.both("show", &["show", "second"]);
    stage.both("ls", &["ls"]);
    stage.both("locks", &["locks"]);
    stage.both("who", &["who", "work"]);
    stage.both("run_of_a_name_that_runs", &["run", "first", "--", "true"]);
    stage.both("lock_of_a_session_that_runs", &["lock", "session:first", "--", "true"]);
    // It is not started again, so its lock stays free afterwards.
    stage.ok(&["new", "solo", "--mode", "once", "--", "sleep", "100000"]);
    stage.case("unlock_of_a_session", &[&["unlock", "session:solo", "--kill"]]);
    stage.done();
}

#[test]
fn a_home_that_cannot_be_used() {
    let stage = Stage::new("homes");
    let home = |name: &str, make: &dyn Fn(&std::path::Path)| {
        let path = stage.world.path(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
        make(&path);
    };
    std::fs::write(stage.world.path("file"), "").unwrap();
    home("other", &|path| std::fs::write(path.join("thesis.txt"), "").unwrap());
    home("config", &|path| std::fs::write(path.join("config.toml"), "[policy]\nidle_after = 5\n").unwrap());
    home("unknown", &|path| {
        std::fs::write(path.join("config.toml"), "[policy]\nidle_aftr = \"5s\"\n").unwrap();
    });
    home("broken", &|path| std::fs::write(path.join("config.toml"), "[policy\n").unwrap());
    for (name, place) in [
        ("not_a_directory", "file"),
        ("something_else", "other"),
        ("wrong_value", "config"),
        ("unknown_key", "unknown"),
        ("not_toml", "broken"),
    ] {
        stage.both(&format!("{name}_up"), &["--home", place, "up"]);
        stage.both(&format!("{name}_ls"), &["--home", place, "ls"]);
        stage.both(&format!("{name}_agents"), &["--home", place, "agents"]);
    }
    stage.done();
}

#[test]
fn a_database_that_is_damaged() {
    let stage = Stage::new("damaged");
    stage.ok(&["new", "a", "--mode", "on-demand", "--", "cat"]);
    stage.ok(&["down"]);
    std::fs::write(stage.world.home.join("pinfold.db"), "not a database").unwrap();
    _ = std::fs::remove_file(stage.world.home.join("pinfold.db-wal"));
    stage.both("up", &["up"]);
    stage.both("ls", &["ls"]);
    std::fs::remove_file(stage.world.home.join("pinfold.db")).unwrap();
    stage.both("missing", &["up"]);
    stage.done();
}

/// Runs verbs as an agent of a session would; returns their answers.
fn inside(stage: &Stage, agent: &str, lines: &[Vec<&str>]) -> Vec<Answer> {
    let binary = format!("PROGRAM={}", stage.world.binary.display());
    let script = "n=0; while test -e line-$n; do \
         eval \"set -- $(cat line-$n)\"; \"$PROGRAM\" \"$@\" >out-$n 2>err-$n; echo $? >code-$n; n=$((n + 1)); done";
    let dir = stage.world.path(agent);
    std::fs::create_dir(&dir).unwrap();
    for (number, words) in lines.iter().enumerate() {
        std::fs::write(dir.join(format!("line-{number}")), words.join(" ")).unwrap();
    }
    let options = ["--mode", "once", "--dir", agent, "--env", &binary];
    stage.ok(&[&["new", agent], &options[..], &["--", "sh", "-c", script]].concat());
    stage.world.wait(agent, "stopped");
    let read = |name: String| std::fs::read_to_string(dir.join(name)).unwrap();
    let answer = |number| Answer {
        code: read(format!("code-{number}")).trim().parse().unwrap(),
        stdout: read(format!("out-{number}")),
        stderr: read(format!("err-{number}")),
        took: std::time::Duration::ZERO,
    };
    (0..lines.len()).map(answer).collect()
}

#[test]
fn a_verb_of_an_agent_that_only_people_may() {
    let stage = Stage::new("inside");
    stage.ok(&["up"]);
    stage.ok(&["new", "other", "--mode", "on-demand", "--", "cat"]);
    let rows: [(&str, &[&str]); 12] = [
        ("down", &["down"]),
        ("up_replace", &["up", "--replace"]),
        ("unlock", &["unlock", "key:k", "--kill"]),
        ("stop_another", &["stop", "other"]),
        ("show_another", &["show", "other"]),
        ("send_another", &["send", "other", "hello"]),
        ("set_another", &["set", "other", "--idle", "5m"]),
        ("rm", &["rm", "other", "--yes"]),
        ("backup", &["backup", "one.db"]),
        ("metrics", &["metrics"]),
        ("attach", &["attach", "other"]),
        ("ls", &["ls"]),
    ];
    let lines: Vec<Vec<&str>> =
        rows.iter().flat_map(|(_, words)| [words.to_vec(), [&["--json"], *words].concat()]).collect();
    let answers = inside(&stage, "agent", &lines);
    let told: Vec<_> = lines.iter().zip(&answers).collect();
    for ((name, _), told) in rows.iter().zip(told.chunks(2)) {
        stage.answers(name, told);
    }
    stage.done();
}
