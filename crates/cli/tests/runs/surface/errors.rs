//! What verbs say when they cannot do what they were asked for: an unreadable line, no daemon, no such
//! session, an archived one, a state that does not allow it.

use super::coverage::verbs;
use super::stage::Stage;

/// The verbs that need arguments.
const WITH_ARGUMENTS: &str = "new run set show why attach send inbox interrupt answer logs start stop restart \
     archive restore rm rename completions wait backup restore-backup lock unlock";

/// The verbs that take none.
const WITHOUT_ARGUMENTS: &str =
    "up down demo status tui ls tree events purge agents locks usage accounts metrics version";

#[test]
fn a_line_that_cannot_be_read() {
    let stage = Stage::new("usage");
    for verb in verbs(&stage) {
        stage.both(&format!("{verb}_unknown_option"), &[&verb, "--no-such-option"]);
    }
    stage.both("no_such_verb", &["lst"]);
    stage.both("home_without_a_place", &["ls", "--home"]);
    for verb in WITH_ARGUMENTS.split(' ') {
        stage.both(&format!("{verb}_without_arguments"), &[verb]);
    }
    for verb in WITHOUT_ARGUMENTS.split(' ') {
        stage.both(&format!("{verb}_with_a_word_too_many"), &[verb, "word"]);
    }
    let lines: [(&str, &[&str]); 11] = [
        ("lock_wait_without_unit", &["lock", "key:k", "--wait", "10", "--", "true"]),
        ("lock_without_command", &["lock", "key:k"]),
        ("answer_neither", &["answer", "a", "perhaps"]),
        ("inbox_retry_and_cancel", &["inbox", "a", "--retry", "1", "--cancel", "2"]),
        ("inbox_state_and_retry", &["inbox", "a", "--state", "done", "--retry", "1"]),
        ("inbox_last_of_what", &["inbox", "a", "-n", "many"]),
        ("events_last_of_what", &["events", "-n", "-1"]),
        ("logs_lines_of_what", &["logs", "a", "-n", "many"]),
        ("logs_message_and_follow", &["logs", "a", "--message", "1", "-f"]),
        ("restore_all_and_one", &["restore", "--all", "a"]),
        ("wait_without_states", &["wait", "a"]),
    ];
    for (name, words) in lines {
        stage.both(name, words);
    }
    stage.done();
}

/// The verbs that a daemon answers, with the arguments they need.
const OF_THE_DAEMON: [&[&str]; 31] = [
    &["status"],
    &["new", "a", "--", "true"],
    &["set", "a", "--idle", "5m"],
    &["ls"],
    &["show", "a"],
    &["tree"],
    &["why", "a"],
    &["attach", "a"],
    &["send", "a", "hello"],
    &["inbox", "a"],
    &["interrupt", "a"],
    &["answer", "a", "allow"],
    &["logs", "a"],
    &["events"],
    &["start", "a"],
    &["stop", "a"],
    &["restart", "a"],
    &["archive", "a"],
    &["restore", "a"],
    &["restore", "--all"],
    &["purge"],
    &["rm", "a", "--yes"],
    &["rename", "a", "b"],
    &["wait", "a", "--for", "running"],
    &["backup", "one.db"],
    &["metrics"],
    &["usage"],
    &["accounts"],
    &["down"],
    &["up"],
    &["agents"],
];

#[test]
fn no_daemon_runs_and_none_may_be_started() {
    let stage = Stage::new("no_daemon");
    // `up` starts it regardless, and the list of agents depends on the machine.
    for words in OF_THE_DAEMON.iter().filter(|words| !["up", "agents"].contains(&words[0])) {
        let name = words.join("_").replace(['-', '.'], "");
        stage.both(&name, &[&["--no-start"], *words].concat());
    }
    assert!(!stage.world.home.join("pinfold.db").exists(), "a daemon was started");
    stage.done();
}

/// The verbs about a session, with the arguments after its name.
const OF_A_SESSION: [(&str, &[&str]); 18] = [
    ("set", &["--idle", "5m"]),
    ("show", &[]),
    ("why", &[]),
    ("attach", &[]),
    ("send", &["hello"]),
    ("inbox", &[]),
    ("interrupt", &[]),
    ("answer", &["allow"]),
    ("logs", &[]),
    ("start", &[]),
    ("stop", &[]),
    ("restart", &[]),
    ("archive", &[]),
    ("restore", &[]),
    ("rm", &["--yes"]),
    ("rename", &["other"]),
    ("wait", &["--for", "running", "--timeout", "10ms"]),
    ("events", &[]),
];

fn about<'a>(verb: &'a str, session: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    let by: &[&str] = if verb == "events" { &["--session"] } else { &[] };
    [&[verb], by, &[session], rest].concat()
}

#[test]
fn there_is_no_such_session() {
    let stage = Stage::new("no_session");
    for name in ["api", "apx"] {
        stage.ok(&["new", name, "--mode", "on-demand", "--", "cat"]);
    }
    for (verb, rest) in OF_A_SESSION {
        stage.both(verb, &about(verb, "nobody", rest));
    }
    stage.both("nearly", &["show", "apj"]);
    stage.both("not_a_name", &["show", "no spaces"]);
    stage.both("empty", &["show", ""]);
    stage.both("beginning_of_several_ids", &["show", "0"]);
    stage.both("parent", &["new", "b", "--parent", "nobody", "--", "true"]);
    stage.done();
}

#[test]
fn the_session_is_archived() {
    let stage = Stage::new("archived");
    stage.ok(&["new", "old", "--mode", "on-demand", "--", "cat"]);
    stage.ok(&["archive", "old"]);
    // Deleting, restoring and reading have cases of their own. Stopping and archiving it are already done.
    let verbs =
        ["set", "attach", "send", "interrupt", "answer", "start", "stop", "restart", "archive", "wait"];
    for (verb, rest) in OF_A_SESSION.iter().filter(|(verb, _)| verbs.contains(verb)) {
        stage.both(verb, &about(verb, "old", rest));
    }
    stage.both("send_and_wait", &["send", "old", "hello", "--wait", "1s"]);
    stage.both("inbox", &["inbox", "old"]);
    stage.both("logs", &["logs", "old"]);
    stage.both("new_of_the_same_name", &["new", "old", "--mode", "on-demand", "--", "cat"]);
    stage.done();
}
