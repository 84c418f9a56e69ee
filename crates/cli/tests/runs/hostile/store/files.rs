//! Each file of a home removed, moved, replaced or truncated, under a daemon and without one.

use crate::processes;
use crate::world::World;
use std::fs;
use std::time::{Duration, Instant};

const SOON: Duration = crate::processes::PATIENCE;

/// A home with an acknowledged message.
fn kept() -> World {
    let world = World::new();
    world.ok(&["new", "kept", "--mode", "on-demand", "--", "cat"]);
    world.ok(&["stop", "kept"]);
    world.ok(&["send", "kept", "acknowledged"]);
    world
}

fn text(world: &World) -> String {
    world.json(&["inbox", "kept"])[0]["text"].as_str().unwrap().to_owned()
}

/// Checks that `up` names the damage; returns the hint.
fn refused(world: &World) -> String {
    let up = world.within(SOON, &["up"]);
    assert_eq!(up.code, 65, "{up:?}");
    assert!(up.stderr.contains("hint: "), "{up:?}");
    up.stderr
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_lost_log_is_not_taken_for_an_empty_world() {
    for cut in [0, 32, 9000] {
        let world = kept();
        world.kill_daemon();
        let log = world.home.join("pinfold.db-wal");
        let whole = fs::read(&log).unwrap();
        fs::write(&log, &whole[..cut]).unwrap();
        refused(&world);
        // The first thing that the hint says works.
        fs::write(&log, whole).unwrap();
        assert_eq!(text(&world), "acknowledged");
        world.ok(&["down"]);
    }
}

#[test]
fn a_missing_empty_or_cut_database_is_said_and_comes_back() {
    for cut in [None, Some(0), Some(100), Some(4096), Some(40_000)] {
        let world = kept();
        world.ok(&["down"]);
        let database = world.home.join("pinfold.db");
        let whole = fs::read(&database).unwrap();
        match cut {
            None => fs::remove_file(&database).unwrap(),
            Some(length) => fs::write(&database, &whole[..length]).unwrap(),
        }
        refused(&world);
        fs::write(&database, whole).unwrap();
        assert_eq!(text(&world), "acknowledged");
        world.ok(&["down"]);
    }
}

#[test]
fn a_missing_database_is_said_where_only_folders_are_left() {
    let world = kept();
    world.ok(&["down"]);
    fs::remove_file(world.home.join("pinfold.db")).unwrap();
    _ = fs::remove_file(world.home.join("witness"));
    refused(&world);
    fs::rename(world.home.join("sessions"), world.path("aside")).unwrap();
    world.ok(&["up"]);
    world.ok(&["down"]);
}

#[test]
fn the_database_of_another_home_is_not_taken_for_ours() {
    let (world, other) = (kept(), kept());
    (0..5).for_each(|number| _ = other.ok(&["send", "kept", &format!("{number}")]));
    [&world, &other].into_iter().for_each(|world| _ = world.ok(&["down"]));
    fs::copy(other.home.join("pinfold.db"), world.home.join("pinfold.db")).unwrap();
    refused(&world);
}

#[test]
fn every_other_file_may_go_and_nothing_acknowledged_goes_with_it() {
    for name in ["witness", "daemon.log", "daemon.lock", "reserve", "locks", "shims"] {
        let world = kept();
        world.ok(&["down"]);
        let path = world.home.join(name);
        _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        assert_eq!(text(&world), "acknowledged", "{name}");
        let witnessed = world.events().iter().any(|event| event["kind"] == "witness_made");
        assert_eq!(witnessed, name == "witness", "{name}");
        world.ok(&["down"]);
    }
}

#[test]
fn a_damaged_witness_is_said_and_moving_it_aside_helps() {
    let world = kept();
    world.ok(&["down"]);
    fs::write(world.home.join("witness"), vec![0x55; 8192]).unwrap();
    let hint = refused(&world);
    assert!(hint.contains("aside"), "{hint}");
    fs::rename(world.home.join("witness"), world.path("aside")).unwrap();
    assert_eq!(text(&world), "acknowledged");
    world.ok(&["down"]);
}

#[test]
fn a_database_that_is_moved_under_the_daemon_is_missed_until_it_is_back() {
    let world = kept();
    let (database, aside) = (world.home.join("pinfold.db"), world.path("aside"));
    fs::rename(&database, &aside).unwrap();
    let sent = world.within(SOON, &["send", "kept", "into nothing"]);
    assert_eq!(sent.code, 65, "{sent:?}");
    let said =
        |words: &[&str]| world.within(SOON, words).stdout.contains("was removed, moved, replaced or cut");
    until("status and why say it", || said(&["status"]) && said(&["why", "kept"]));
    fs::rename(&aside, &database).unwrap();
    until("it goes on", || world.run(&["send", "kept", "again"]).code == 0);
    assert_eq!(text(&world), "acknowledged");
    world.ok(&["down"]);
}

#[test]
fn a_database_that_is_removed_under_the_daemon_is_saved_as_the_hint_says() {
    for name in ["pinfold.db", "pinfold.db-wal"] {
        let world = kept();
        fs::remove_file(world.home.join(name)).unwrap();
        // Noticed although nothing was requested that must be recorded.
        until("it is noticed", || world.within(SOON, &["status"]).stdout.contains(name));
        let sent = world.within(SOON, &["send", "kept", "into nothing"]);
        assert_eq!(sent.code, 65, "{sent:?}");
        assert!(sent.stderr.contains("pinfold backup FILE"), "{sent:?}");
        let saved = world.path("saved");
        world.ok(&["backup", saved.to_str().unwrap()]);
        world.ok(&["down"]);
        world.ok(&["restore-backup", saved.to_str().unwrap()]);
        assert_eq!(text(&world), "acknowledged");
        world.ok(&["down"]);
    }
}

#[test]
fn another_program_that_writes_for_seconds_is_waited_out() {
    let world = kept();
    let daemon = world.daemon_pid();
    let raw = rusqlite::Connection::open(world.home.join("pinfold.db")).unwrap();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut sending = world.command(&["send", "kept", "patient"]).spawn().unwrap();
    let held = processes::Held::open(sending.id()).unwrap();
    until("it is said", || world.run(&["status"]).stdout.contains("keeps the database locked"));
    raw.execute_batch("ROLLBACK").unwrap();
    drop(raw);
    assert!(held.ends_within(SOON));
    _ = sending.wait();
    assert_eq!(world.daemon_pid(), daemon, "the daemon lives on");
    until("it can be written again", || world.run(&["send", "kept", "again"]).code == 0);
    world.ok(&["down"]);
}

#[test]
fn a_database_of_a_later_version_is_named_with_its_version() {
    let world = kept();
    world.ok(&["down"]);
    let raw = rusqlite::Connection::open(world.home.join("pinfold.db")).unwrap();
    raw.pragma_update(None, "user_version", 99).unwrap();
    raw.execute("UPDATE meta SET value = '7.8.9' WHERE key = 'program'", []).unwrap();
    drop(raw);
    let said = refused(&world);
    assert!(said.contains("99") && said.contains("7.8.9"), "{said}");
}

#[test]
fn a_daemon_whose_lock_file_is_removed_has_its_home_all_the_same() {
    let world = kept();
    let (daemon, saved) = (world.daemon_pid(), world.path("saved"));
    world.ok(&["backup", saved.to_str().unwrap()]);
    for name in ["daemon.lock", "daemon.place", "pinfold.sock"] {
        fs::remove_file(world.home.join(name)).unwrap();
    }
    let refused = world.within(SOON, &["restore-backup", saved.to_str().unwrap()]);
    assert_eq!(refused.code, 75, "{refused:?}");
    let second = world.within(SOON, &["up", "--foreground"]);
    assert_eq!(second.code, 75, "{second:?}");
    assert_eq!(world.daemon_pid(), daemon, "it is found, and no other was started");
    until("the file is there again", || world.home.join("daemon.lock").exists());
    world.ok(&["down"]);
    // The kernel frees the locks of a process, which `down` waits for, a moment before the process is gone.
    until("the daemon is gone", || !processes::lives(daemon));
}

#[test]
fn a_copy_of_a_home_is_not_taken_for_the_home() {
    let (world, copy) = (kept(), World::new());
    let copied = std::process::Command::new("cp").arg("-a").args([&world.home, &copy.home]).status();
    assert!(copied.unwrap().success());
    let seen = copy.within(SOON, &["--json", "--no-start", "ls"]);
    assert_eq!(seen.code, 69, "the daemon of the home that was copied is not this one's: {seen:?}");
    copy.ok(&["send", "kept", "to the copy"]);
    assert_ne!(copy.daemon_pid(), world.daemon_pid());
    assert_eq!(world.json(&["inbox", "kept"]).as_array().unwrap().len(), 1);
    [&world, &copy].into_iter().for_each(|world| _ = world.ok(&["down"]));
}

#[test]
fn an_end_whose_record_is_lost_is_told_once_and_as_unknown() {
    let world = kept();
    world.ok(&["new", "ends", "--", "sleep", "100000"]);
    let session = world.show("ends");
    let pids = ["pid", "shim_pid"].map(|field| crate::world::number(&session[field]));
    world.kill_daemon();
    pids.iter().rev().for_each(|pid| processes::kill(*pid));
    fs::remove_file(world.home.join("sessions").join(session["id"].as_str().unwrap()).join("exits")).unwrap();
    world.ok(&["up"]);
    world.watch().event("its end", |event| event["kind"] == "run_exited" && event["session"] == "ends");
    let ends = world.events_of("ends", "run_exited");
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!((&ends[0]["code"], &ends[0]["run"]), (&serde_json::Value::Null, &session["run"]), "{ends:?}");
    world.ok(&["down"]);
}
