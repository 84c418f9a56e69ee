//! A database that cannot be written, is damaged, or contradicts the running daemon: the daemon lives on,
//! people can look and stop, nothing new is acknowledged, and work goes on when the cause is gone.

use super::disk::until;
use crate::processes::lives;
use crate::world::World;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::Duration;

const SOON: Duration = crate::processes::PATIENCE;
const PAGE: usize = 4096;

/// A home with a running agent and an acknowledged message; all of it in the database file, nothing in its log.
fn kept() -> World {
    let world = World::new();
    world.ok(&["new", "kept", "--mode", "on-demand", "--", "cat"]);
    world.ok(&["stop", "kept"]);
    for number in 0..40 {
        world.ok(&["send", "kept", &format!("acknowledged {number}")]);
    }
    world.ok(&["down"]);
    world.ok(&["new", "runs", "--", "sh", "-c", "echo hello; exec sleep 1000"]);
    world.printed("runs", "hello");
    world
}

/// Checks that people can look while nothing can be recorded.
fn assert_people_can_look(world: &World, problem: &str) {
    for words in [&["ls"][..], &["show", "runs"], &["logs", "runs"], &["tree"], &["locks"]] {
        let seen = world.within(SOON, words);
        assert_eq!(seen.code, 0, "{words:?}: {seen:?}");
    }
    let why = world.within(SOON, &["why", "runs"]);
    assert!(why.code == 0 && why.stdout.contains(problem), "{why:?}");
    let status = world.within(SOON, &["--json", "status"]);
    assert!(status.stdout.contains(problem), "{status:?}");
}

/// Checks that a stop of the agent takes effect although it cannot be recorded.
fn assert_stop_acts(world: &World, pid: u32) {
    let stopped = world.within(SOON, &["stop", "runs"]);
    assert_eq!((stopped.code, lives(pid)), (0, false), "{stopped:?}");
    let why = world.within(SOON, &["why", "runs"]);
    assert!(why.stdout.contains("not recorded yet"), "{why:?}");
}

/// Checks that everything goes on, and that an event tells what happened.
fn assert_well_again(world: &World, daemon: u32, kind: &str) {
    assert!(until(SOON, || world.run(&["send", "kept", "again"]).code == 0), "it is not well again");
    assert_eq!(world.daemon_pid(), daemon, "another daemon");
    let inbox = world.json(&["inbox", "kept"]);
    let texts: Vec<&str> =
        inbox.as_array().unwrap().iter().map(|row| row["text"].as_str().unwrap()).collect();
    for number in 0..40 {
        assert!(texts.contains(&format!("acknowledged {number}").as_str()), "{number} is lost");
    }
    assert!(until(SOON, || world.events_of("runs", "stopped").len() == 1), "the stop is not recorded");
    assert!(world.events().iter().any(|event| event["kind"] == kind), "no {kind}");
    assert_eq!(world.show("runs")["crashes"], 0);
    world.ok(&["down"]);
}

/// Limits the size of the files that the daemon may write: to it, EFBIG looks like a disk error.
fn limit_files(daemon: u32, bytes: &str) {
    let limit = format!("--fsize={bytes}:unlimited");
    let done = Command::new("prlimit").args(["--pid", &daemon.to_string(), &limit]).status().unwrap();
    assert!(done.success(), "prlimit must be possible for this test");
}

#[test]
fn a_disk_that_refuses_writes_is_waited_for_and_the_daemon_lives_on() {
    let world = kept();
    let (daemon, pid) = (world.daemon_pid(), world.pid("runs"));
    limit_files(daemon, "4096");
    let refused = world.within(SOON, &["--json", "send", "kept", "not taken"]);
    assert_eq!((refused.code, refused.error()["kind"].as_str()), (1, Some("failed")), "{refused:?}");
    let refused = world.within(SOON, &["new", "more", "--", "cat"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("the database cannot be written"), "{refused:?}");
    assert!(refused.stderr.contains("hint: "), "{refused:?}");
    assert_people_can_look(&world, "the database cannot be written");
    assert!(lives(pid), "the agent was disturbed");
    assert_stop_acts(&world, pid);
    limit_files(daemon, "unlimited");
    assert_well_again(&world, daemon, "database_failed");
}

#[test]
fn a_database_that_is_damaged_under_the_daemon_is_said_and_work_goes_on_when_it_is_whole() {
    let world = kept();
    let (daemon, pid) = (world.daemon_pid(), world.pid("runs"));
    let database = world.home.join("pinfold.db");
    let before = fs::read(&database).unwrap();
    let file = OpenOptions::new().write(true).open(&database).unwrap();
    file.write_all_at(&vec![0xFF; before.len() - PAGE], PAGE as u64).unwrap();
    let refused = world.within(SOON, &["--json", "send", "kept", "not taken"]);
    assert_eq!((refused.code, refused.error()["kind"].as_str()), (65, Some("damaged")), "{refused:?}");
    let refused = world.within(SOON, &["new", "more", "--", "cat"]);
    assert!(refused.code == 65 && refused.stderr.contains("restore-backup"), "{refused:?}");
    assert_people_can_look(&world, "the database is damaged");
    assert!(lives(pid), "the agent was disturbed");
    assert_stop_acts(&world, pid);
    file.write_all_at(&before[PAGE..], PAGE as u64).unwrap();
    assert_well_again(&world, daemon, "database_damaged");
}

#[test]
fn a_session_that_contradicts_what_is_stored_begins_again_from_that_and_no_other_notices() {
    let world = World::new();
    world.ok(&["new", "runs", "--", "sleep", "1000"]);
    world.ok(&["new", "api", "--mode", "on-demand", "--", "cat"]);
    world.ok(&["new", "beside", "--mode", "on-demand", "--", "cat"]);
    world.ok(&["archive", "api"]);
    let (daemon, pid) = (world.daemon_pid(), world.pid("runs"));
    // Another program gives the name to another session behind the daemon's back.
    let rename = |from: &str, to: &str| {
        let raw = rusqlite::Connection::open(world.home.join("pinfold.db")).unwrap();
        let sql = "UPDATE sessions SET name = ?2 WHERE name = ?1 AND archived_at IS NULL";
        assert_eq!(raw.execute(sql, [from, to]).unwrap(), 1);
    };
    rename("beside", "api");
    let refused = world.within(SOON, &["restore", "api"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("is taken") && refused.stderr.contains("hint: "), "{refused:?}");
    assert_eq!(world.show("api")["state"], "archived", "what is not stored has not happened");
    // The refusal does not wait for the event about it.
    assert!(until(SOON, || world.events_of("api", "begun_again").len() == 1), "no event tells of it");
    rename("api", "beside");
    world.ok(&["restore", "api"]);
    world.ok(&["send", "api", "hello"]);
    assert_eq!((world.daemon_pid(), world.pid("runs")), (daemon, pid), "somebody was disturbed");
    world.ok(&["down"]);
}

#[test]
fn a_session_whose_record_is_gone_is_left_alone_and_down_ends_its_agent() {
    let world = World::new();
    for name in ["gone", "other"] {
        world.ok(&["new", name, "--", "sleep", "1000"]);
    }
    let (daemon, pids) = (world.daemon_pid(), [world.pid("gone"), world.pid("other")]);
    let raw = rusqlite::Connection::open(world.home.join("pinfold.db")).unwrap();
    raw.pragma_update(None, "foreign_keys", false).unwrap();
    assert_eq!(raw.execute("DELETE FROM sessions WHERE name = 'gone'", []).unwrap(), 1);
    drop(raw);
    let stopped = world.within(SOON, &["stop", "gone"]);
    assert_eq!(stopped.code, 65, "{stopped:?}");
    let again = world.within(SOON, &["why", "gone"]);
    assert!(again.code == 65 && again.stderr.contains("gone"), "{again:?}");
    assert_eq!(world.daemon_pid(), daemon, "another daemon");
    world.ok(&["restart", "other"]);
    assert!(lives(pids[0]) && !lives(pids[1]));
    let listed = world.ok(&["ls", "--all"]).stdout;
    assert!(listed.contains("other"), "{listed}");
    world.ok(&["down"]);
    assert!(!lives(pids[0]), "its agent is left");
}
