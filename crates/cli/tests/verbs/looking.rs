//! `locks`, `who` and `unlock`: finding a holder, and getting rid of it.

use crate::support::{Ends, Home, children, kill};
use serde_json::Value;
use std::process::Stdio;

#[test]
fn locks_shows_what_is_held_and_by_whom() {
    let home = Home::new();
    assert_eq!(home.run(&["locks"]).stdout, "");
    assert_eq!(home.json(&["locks"]), serde_json::json!([]));
    home.dir("x");
    let words = ["lock", "x", "--reason", "a reason", "--", "sh", "-c", "echo ready; exec sleep 1000"];
    let holder = home.start(&words);
    let locks = home.json(&["locks"]);
    assert_eq!(locks.as_array().unwrap().len(), 1);
    let lock = &locks[0];
    assert_eq!(lock["resource"], home.path("x").to_str().unwrap());
    assert_eq!((&lock["kind"], &lock["reason"]), (&Value::from("directory"), &Value::from("a reason")));
    assert_eq!((&lock["session"], &lock["removed"]), (&Value::Null, &Value::from(false)));
    assert_eq!((&lock["holder"]["pid"], &lock["holder"]["verdict"]), (&holder.pid().into(), &"alive".into()));
    assert!(lock["fence"].as_u64().unwrap() > 0);
    assert!(lock["since"].as_str().unwrap().ends_with('Z'));
    let text = home.run(&["locks"]).stdout;
    assert!(text.lines().next().unwrap().starts_with("RESOURCE"), "{text}");
    assert!(text.lines().nth(1).unwrap().starts_with(home.path("x").to_str().unwrap()), "{text}");
}

#[test]
fn a_damaged_record_costs_only_the_message() {
    let home = Home::new();
    let holder = home.hold("key:k");
    home.script(
        "for f in locks/k-*; do head -c 8192 /dev/urandom | dd of=$f conv=notrunc 2> /dev/null; done",
    );
    let locks = home.json(&["locks"]);
    assert!(locks[0]["resource"].as_str().unwrap().starts_with("k-"), "{locks}");
    assert_eq!((&locks[0]["fence"], &locks[0]["since"]), (&Value::Null, &Value::Null));
    assert_eq!(locks[0]["holder"]["verdict"], "alive");
    let busy = home.run(&["lock", "key:k", "--", "true"]);
    assert_eq!(busy.code, 75);
    // The kernel still knows the holder; unknown facts are left out, and nothing says "undefined".
    assert!(
        busy.stderr.starts_with(&format!("error: `key:k` is held by pid {} (", holder.pid())),
        "{}",
        busy.stderr
    );
    assert!(!busy.stderr.contains("since"), "{}", busy.stderr);
}

#[test]
fn a_lock_file_removed_under_its_holder_is_shown_and_not_granted() {
    let home = Home::new();
    let mut holder = home.hold("key:k");
    home.script("rm locks/k-*");
    let locks = home.json(&["locks"]);
    assert_eq!((&locks[0]["resource"], &locks[0]["removed"]), (&"key:k".into(), &true.into()));
    assert!(home.run(&["locks"]).stdout.contains("(lock file removed)"));
    let busy = home.run(&["lock", "key:k", "--", "true"]);
    assert_eq!(busy.code, 75);
    assert!(busy.stderr.contains("through a lock file that was removed"), "{}", busy.stderr);
    holder.end();
    assert_eq!(home.run(&["lock", "key:k", "--wait", "240s", "--", "true"]).code, 0);
}

#[test]
fn a_whole_folder_removed_under_a_holder_does_not_let_a_second_one_in() {
    let home = Home::new();
    let mut holder = home.hold("key:k");
    home.script("rm -rf locks");
    assert_eq!(home.run(&["lock", "key:k", "--", "true"]).code, 75);
    assert_eq!(home.run(&["lock", "key:other", "--", "true"]).code, 0);
    holder.end();
    assert_eq!(home.run(&["lock", "key:k", "--wait", "240s", "--", "true"]).code, 0);
}

#[test]
fn who_lists_holders_above_and_below_and_processes_inside() {
    let home = Home::new();
    home.dir("x/deep");
    let below = home.hold("x/deep");
    let mut worker = std::process::Command::new("cat");
    let mut worker =
        worker.current_dir(home.path("x")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let users = home.json(&["who", "x"]);
    let find = |how: &str, pid: u32| {
        users.as_array().unwrap().iter().any(|user| user["how"] == how && user["pid"] == pid)
    };
    assert!(find("holds_below", below.pid()), "{users}");
    assert!(find("works", worker.id()), "{users}");
    let above = home.json(&["who", "x/deep"]);
    assert!(above.as_array().unwrap().iter().any(|user| user["how"] == "holds"), "{above}");
    worker.kill().unwrap();
    worker.ended();
    drop(below);
    let _above = home.hold("x");
    let users = home.json(&["who", "x/deep"]);
    assert!(users.as_array().unwrap().iter().any(|user| user["how"] == "holds_above"), "{users}");
    assert_eq!(home.run(&["who", "missing"]).code, 78);
}

#[test]
fn unlock_without_kill_frees_nothing() {
    let home = Home::new();
    let _holder = home.hold("key:k");
    assert_eq!(home.run(&["unlock", "key:k"]).code, 2);
    assert_eq!(home.run(&["lock", "key:k", "--", "true"]).code, 75);
}

#[test]
fn unlock_ends_the_whole_tree_and_is_audited() {
    let home = Home::new();
    let script = "setsid sh -c 'echo ready; exec sleep 1000' & wait";
    let mut holder = home.start(&["lock", "key:k", "--", "sh", "-c", script]);
    let command = children(holder.pid())[0];
    let answer = home.run(&["unlock", "key:k", "--kill"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(!holder.child.ended().success());
    let audit = std::fs::read_to_string(home.path("home/audit.jsonl")).unwrap();
    let record: Value = serde_json::from_str(audit.lines().next().unwrap()).unwrap();
    assert_eq!((&record["kind"], &record["resource"]), (&"unlocked".into(), &"key:k".into()));
    let ended: Vec<u64> =
        record["ended"].as_array().unwrap().iter().map(|p| p["pid"].as_u64().unwrap()).collect();
    assert!(ended.contains(&u64::from(command)) && ended.len() >= 3, "{record}");
    assert_eq!(home.run(&["lock", "key:k", "--", "true"]).code, 0);
    let again = home.run(&["unlock", "key:k", "--kill"]);
    assert_eq!((again.code, again.stdout.as_str()), (0, "`key:k` is not held\n"));
}

#[test]
fn a_pid_that_was_recycled_is_never_ended() {
    let home = Home::new();
    let mut holder = home.hold("key:k");
    let command = children(holder.pid())[0];
    // The record names the dead pinfold; a later process with that pid is a stranger.
    holder.child.kill().unwrap();
    holder.child.ended();
    let locks = home.json(&["locks"]);
    assert_eq!(locks[0]["holder"]["pid"], command);
    kill(command, "KILL");
    assert_eq!(home.run(&["lock", "key:k", "--wait", "240s", "--", "true"]).code, 0);
}
