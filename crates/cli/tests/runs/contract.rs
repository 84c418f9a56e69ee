//! What scripts rely on: exit codes, error objects, the fields of objects, and the sentences of `why`.

use crate::world::{World, number};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// The promised fields of a session; there may be more.
const SESSION: &str = "id name agent dir mode state why next activity activity_from pid shim_pid run fence \
     started_at restarts crashes inbox consumers last_consumer_at memory_bytes memory_limit_bytes holder \
     archived_at parent tags foreign command vendor_session ready";

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().map(|object| object.keys().cloned().collect()).unwrap_or_default()
}

#[track_caller]
fn fails(world: &World, words: &[&str], code: i32, kind: &str, says: &str) -> Value {
    let answer = world.run(&[&["--json"], words].concat());
    assert_eq!(answer.code, code, "{words:?}: {answer:?}");
    let error = answer.error();
    assert_eq!(error["kind"], kind, "{words:?}: {answer:?}");
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.contains(says), "{words:?}: `{message}` without `{says}`");
    let expected = keys(&json!({ "kind": 0, "message": 0, "hint": 0, "holder": 0 }));
    assert_eq!(keys(&error), expected);
    let first = answer.stderr.lines().next().unwrap_or_default();
    assert_eq!(first, format!("error: {message}"));
    error
}

#[test]
fn every_failure_has_its_code_and_its_object() {
    let world = World::new();
    fails(&world, &["--no-start", "ls"], 69, "unavailable", "no daemon");
    fails(&world, &["status"], 69, "unavailable", "no daemon");
    world.json(&["new", "a", "--", "sleep", "100000"]);
    for verb in ["show", "why", "start", "stop", "restart", "logs"] {
        fails(&world, &[verb, "nobody"], 1, "not_found", "`nobody`");
    }
    fails(&world, &["wait", "nobody", "--for", "running"], 1, "not_found", "`nobody`");
    fails(&world, &["events", "--session", "nobody"], 1, "not_found", "`nobody`");
    fails(&world, &["set", "nobody", "--tag", "x"], 1, "not_found", "`nobody`");
    for name in ["../x", ".x", "a b", "", "ä"] {
        fails(&world, &["new", name, "--", "true"], 2, "usage", "is not a name");
    }
    fails(&world, &["new", "a", "--", "true"], 73, "exists", "`a` exists");
    fails(&world, &["new", "b", "--stop-grace", "10", "--", "true"], 2, "usage", "250ms, 10s, 5m, 2h, 7d");
    fails(&world, &["new", "b", "--idle", "soon", "--", "true"], 2, "usage", "duration");
    fails(&world, &["new", "b", "--memory", "512", "--", "true"], 2, "usage", "512M, 2G");
    fails(&world, &["new", "b", "--mode", "never", "--", "true"], 2, "usage", "on-demand");
    fails(&world, &["new", "b"], 2, "usage", "needs a command");
    fails(&world, &["new", "b", "--", "no-such-program"], 78, "bad_config", "no-such-program");
    fails(&world, &["new", "b", "--dir", "/nowhere", "--", "true"], 78, "bad_config", "/nowhere");
    fails(&world, &["stop", "a", "--timeout", "5"], 2, "usage", "10s");
    fails(&world, &["wait", "a", "--for", "asleep"], 2, "usage", "`asleep`");
    fails(&world, &["wait", "a", "--for", "failed", "--timeout", "10ms"], 124, "timeout", "failed");
    fails(&world, &["events", "--since", "yesterday"], 2, "usage", "yesterday");
    fails(&world, &["frobnicate"], 2, "usage", "frobnicate");
    fails(&world, &["logs", "a", "--run", "7"], 1, "not_found", "run `7`");
    assert_eq!(world.sessions().len(), 1, "nothing was created by a failure");
}

#[test]
fn a_session_has_the_fields_of_the_contract() {
    let world = World::new();
    world.ok(&["new", "b", "--mode", "on-demand", "--", "true"]);
    let made = world.json(&[
        "new",
        "a",
        "--tag",
        "x",
        "--parent",
        "b",
        "--env",
        "SECRET=hush",
        "--",
        "sleep",
        "9999",
    ]);
    let wanted: BTreeSet<String> = SESSION.split_whitespace().map(str::to_owned).collect();
    let given = keys(&made);
    let missing: Vec<_> = wanted.difference(&given).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(made["state"], "running");
    assert_eq!((&made["agent"], &made["mode"]), (&json!("command"), &json!("always")));
    assert_eq!((&made["tags"], &made["parent"]), (&json!(["x"]), &json!("b")));
    assert_eq!(made["inbox"], json!({ "queued": 0, "in_flight": 0, "done": 0, "failed": 0 }));
    assert_eq!(
        (&made["restarts"], &made["crashes"], &made["foreign"]),
        (&json!(0), &json!(0), &json!(false))
    );
    assert_eq!(made["dir"], world.root.to_str().unwrap());
    assert_eq!(made["ready"], false);
    for absent in ["next", "holder", "archived_at", "memory_limit_bytes", "vendor_session", "activity_from"] {
        assert!(made[absent].is_null(), "{absent}");
    }
    assert_eq!(keys(&world.show("a")), keys(&made));
    assert_eq!(keys(&world.json(&["ls"])[0]), keys(&made));
    assert!(!world.ok(&["show", "a"]).stdout.contains("hush"));
    assert!(!world.ok(&["--json", "show", "a"]).stdout.contains("hush"));
    let status = world.json(&["status"]);
    for field in ["pid", "version", "uptime_ms", "home", "socket", "sessions", "capabilities"] {
        assert!(!status[field].is_null(), "{field}");
    }
    assert_eq!(status["sessions"], json!({ "idle": 1, "running": 1 }));
}

#[test]
fn ls_shows_what_was_asked_for_a_line_each() {
    let world = World::new();
    let pid =
        world.json(&["new", "a", "--tag", "x y", "--", "sh", "-c", "exec\nsleep 100000"])["pid"].clone();
    world.json(&["new", "b", "--mode", "on-demand", "--", "printf", "a command of many letters"]);
    world.json(&["new", "c", "--mode", "on-demand", "--", "true"]);
    world.ok(&["archive", "c"]);
    let rows = |words: &[&str]| {
        let said = world.ok(&[&["ls"], words].concat()).stdout;
        said.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let dir = world.root.display().to_string();
    let found = rows(&["--tag", "x y"]);
    assert_eq!(found.len(), 1);
    // Nothing is cut when stdout is not a terminal, and nothing is repeated that has a column.
    let cells: Vec<&str> = found[0].split_whitespace().collect();
    assert_eq!((&cells[..3], cells[4]), (&["a", "running", "-"][..], dir.as_str()), "{found:?}");
    let rest = format!("{pid} always 0 sh -c exec sleep 100000");
    assert!(squeezed(&found[0]).ends_with(&rest), "{found:?}");
    let idle = format!("b idle - - {dir} - - on-demand 0 printf a command of many letters not needed yet");
    assert_eq!(rows(&["--state", "idle"]).iter().map(|row| squeezed(row)).collect::<Vec<_>>(), [idle]);
    assert_eq!(rows(&["--state", "idle", "--state", "archived"]).len(), 2);
    assert_eq!(rows(&["--tag", "x y", "--tag", "z"]).len(), 0);
    assert_eq!(world.ok(&["ls", "-q", "-a"]).stdout, "a\nb\nc\n");
    assert_eq!(rows(&["--all"]).len(), 3);
    assert_eq!(rows(&["--state", "archived"]).len(), 1);
    assert_eq!(rows(&[]).len(), 2);
}

/// A line with single spaces only.
fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_session_is_found_by_its_name_or_a_unique_beginning_of_its_id() {
    let world = World::new();
    let id = world.ok(&["new", "a", "--mode", "on-demand", "--", "true"]).stdout.trim().to_owned();
    assert_eq!(id.len(), 26);
    for prefix in [&id[..], &id[..20], &id[..4], &id.to_ascii_lowercase()[..22]] {
        assert_eq!(world.show(prefix)["name"], "a", "{prefix}");
    }
    world.ok(&["new", "b", "--mode", "on-demand", "--", "true"]);
    fails(&world, &["show", &id[..1]], 2, "usage", "several");
    assert_eq!(world.show(&id)["name"], "a");
}

#[test]
fn why_is_a_sentence_about_what_is_and_what_comes() {
    let world = World::new();
    let why = |name: &str| world.ok(&["why", name]).stdout.trim().to_owned();
    world.json(&["new", "idle", "--mode", "on-demand", "--", "true"]);
    assert_eq!(why("idle"), "idle is idle: not needed yet.");
    world.json(&["new", "run", "--", "sleep", "100000"]);
    assert!(why("run").starts_with("run is running for "), "{}", why("run"));
    world.json(&["new", "crash", "--", "sh", "-c", "exit 3"]);
    world.wait("crash", "backoff");
    let sentence = why("crash");
    assert!(sentence.contains("exited with 3 after ") && sentence.contains("next run in "), "{sentence}");
    world.ok(&["stop", "run"]);
    assert_eq!(why("run"), "run is stopped by a person; `start` runs it again.");
    world.json(&["new", "broken", "--force", "--", "no-such-program"]);
    let sentence = why("broken");
    assert!(sentence.contains("failed: ") && sentence.contains("no-such-program"), "{sentence}");
    assert_eq!(
        keys(&world.json(&["why", "run"])),
        keys(&json!({"name":0,"state":0,"why":0,"next":0,"holder":0,"last_exit":0}))
    );
}

#[test]
fn a_held_lock_blocks_and_says_by_whom() {
    let world = World::new();
    let dir = world.path("work");
    std::fs::create_dir(&dir).unwrap();
    let dir = dir.to_str().unwrap();
    let holder = world.json(&["new", "first", "--dir", dir, "--", "sleep", "100000"]);
    let second = world.run(&["--json", "new", "second", "--dir", dir, "--", "sleep", "100000"]);
    assert_eq!(second.code, 0, "a busy lock does not prevent creation: {second:?}");
    assert!(second.stderr.contains("first"), "{second:?}");
    let second = second.json();
    assert_eq!(second["state"], "blocked");
    assert_eq!(second["holder"]["session"], "first");
    let error = fails(&world, &["start", "second"], 75, "busy", "first");
    assert_eq!(error["holder"]["session"], "first");
    let sentence = world.ok(&["why", "second"]).stdout;
    assert!(sentence.contains("session `first`"), "{sentence}");
    world.ok(&["stop", "first"]);
    world.wait("second", "running");
    assert!(number(&holder["fence"]) > 0);
    world.check_history();
}

#[test]
fn waits_and_starts_return_when_it_is_so() {
    let world = World::new();
    world.json(&["new", "a", "--mode", "on-demand", "--", "sleep", "100000"]);
    let waiting = std::thread::scope(|scope| {
        let waiting = scope
            .spawn(|| world.run(&["--json", "wait", "a", "--for", "running,failed", "--timeout", "240s"]));
        let started = world.json(&["start", "a"]);
        assert_eq!(started[0]["state"], "running");
        waiting.join().unwrap()
    });
    assert_eq!((waiting.code, &waiting.json()["state"]), (0, &json!("running")));
    let before = world.pid("a");
    let restarted = world.json(&["restart", "a"]);
    assert_ne!(number(&restarted[0]["pid"]), before);
    assert_eq!(restarted[0]["restarts"], 1);
    let stopped = world.ok(&["--json", "stop", "a"]);
    assert_eq!(stopped.json()[0]["state"], "stopped");
    assert!(stopped.took < Duration::from_secs(5), "{stopped:?}");
    assert_eq!(world.json(&["stop", "a"])[0]["state"], "stopped", "stopped already is success");
}

#[test]
fn ten_restarts_at_once_end_with_one_run() {
    let world = World::new();
    world.guarded("a", &[], "exec sleep 100000");
    std::thread::scope(|scope| {
        let askers: Vec<_> = (0..10).map(|_| scope.spawn(|| world.run(&["restart", "a"]))).collect();
        for asker in askers {
            let answer = asker.join().unwrap();
            assert_eq!(answer.code, 0, "{answer:?}");
        }
    });
    world.wait("a", "running");
    assert_eq!(world.members()["a"].len(), 1);
    world.check_history();
}

#[test]
fn a_changed_definition_counts_from_the_next_run_on() {
    let world = World::new();
    world.json(&["new", "a", "--", "sleep", "100000"]);
    let before = world.pid("a");
    world.ok(&["set", "a", "--env", "COLOUR=blue", "--tag", "t", "--", "sleep", "100001"]);
    assert_eq!(world.pid("a"), before);
    world.ok(&["restart", "a"]);
    assert_eq!(crate::processes::variable(world.pid("a"), "COLOUR").as_deref(), Some("blue"));
    assert_eq!(world.show("a")["command"], json!(["sleep", "100001"]));
}

#[test]
fn an_unlock_is_an_event_at_once_and_one_without_a_daemon_is_taken_in_later() {
    let world = World::new();
    let hold = |key: &str| world.follow(&["lock", key, "--", "sh", "-c", "echo held; exec sleep 100000"]);
    let holder = hold("key:a");
    holder.until("the lock", |line| line == "held");
    world.ok(&["unlock", "key:a", "--kill"]);
    assert_eq!(world.run(&["status"]).code, 69, "unlock starts no daemon");
    world.ok(&["up"]);
    let unlocked =
        || -> Vec<Value> { world.events().into_iter().filter(|event| event["kind"] == "unlocked").collect() };
    assert_eq!(unlocked().iter().map(|event| &event["resource"]).collect::<Vec<_>>(), ["key:a"]);
    let holder = hold("key:b");
    holder.until("the lock", |line| line == "held");
    world.ok(&["unlock", "key:b", "--kill"]);
    assert_eq!(unlocked().iter().map(|event| &event["resource"]).collect::<Vec<_>>(), ["key:a", "key:b"]);
    world.kill_daemon();
    world.ok(&["up"]);
    assert_eq!(unlocked().len(), 2, "taken in once");
}

#[test]
fn ls_knows_the_states_and_tells_nobody_with_sessions_to_make_one() {
    let world = World::new();
    let empty = world.ok(&["ls"]);
    assert!(empty.stdout.is_empty() && empty.stderr.contains("makes one"), "{empty:?}");
    world.ok(&["new", "a", "--", "sleep", "100000"]);
    fails(&world, &["ls", "--state", "asleep"], 2, "usage", "there is no state `asleep`");
    let table = world.run(&["ls", "--state", "asleep"]);
    assert!(table.code == 2 && table.stderr.contains("hint: the states are idle,"), "{table:?}");
    for filter in [["--state", "failed"], ["--tag", "none"]] {
        let answer = world.run(&["ls", filter[0], filter[1]]);
        assert_eq!((answer.code, answer.stdout.as_str()), (0, ""));
        assert_eq!(answer.stderr, "no such sessions\n");
    }
}
