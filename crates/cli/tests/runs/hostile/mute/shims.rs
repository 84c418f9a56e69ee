//! Shims that hold their locks but are stopped.

use super::{LIMIT, Stopped, session, why};
use crate::world::{World, held};
use std::time::Duration;

const SLEEP: &str = "exec sleep 1000";

#[test]
fn a_stop_names_the_shim_that_does_not_run_and_is_carried_out_when_it_does() {
    let world = World::new();
    let shim = session(&world, "a", &[], SLEEP);
    let stopped = Stopped::new(shim);
    let answer = world.within(LIMIT, &["stop", "a"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(answer.stderr.contains(&format!("pid {shim}")), "{answer:?}");
    assert!(answer.stderr.contains("pinfold unlock session:a --kill"), "{answer:?}");
    let sentence = why(&world, "a");
    assert!(sentence.contains(&format!("its shim (pid {shim}) does not answer")), "{sentence}");
    assert!(sentence.contains(&format!("kill -CONT {shim}")), "{sentence}");
    drop(stopped);
    world.wait("a", "stopped");
    let ends = world.events_of("a", "run_exited");
    assert_eq!((ends.len(), ends[0]["verdict"].as_str()), (1, Some("clean")), "{ends:?}");
}

#[test]
fn every_verb_that_ends_a_run_fails_with_the_same_sentence() {
    let world = World::new();
    let shim = session(&world, "a", &["--mode", "always"], SLEEP);
    let _stopped = Stopped::new(shim);
    let sentence = format!("its shim (pid {shim}) does not answer");
    for verb in [&["restart", "a"][..], &["archive", "a"], &["purge", "--mode", "all"]] {
        let answer = world.within(LIMIT, verb);
        assert!(answer.code == 1 && answer.stderr.contains(&sentence), "{verb:?}: {answer:?}");
    }
}

#[test]
fn the_last_word_counts_when_the_shim_goes_on() {
    let world = World::new();
    let shim = session(&world, "a", &[], SLEEP);
    let stopped = Stopped::new(shim);
    assert_eq!(world.within(LIMIT, &["stop", "a"]).code, 1);
    assert_eq!(world.within(LIMIT, &["restart", "a"]).code, 1);
    drop(stopped);
    world.wait("a", "running");
    assert_eq!(world.show("a")["restarts"], 1);
}

#[test]
fn down_ends_a_shim_that_does_not_run_with_its_tree() {
    let world = World::new();
    let shim = session(&world, "a", &[], SLEEP);
    let (shim_process, agent) = (held(shim), held(world.pid("a")));
    let _stopped = Stopped::new(shim);
    let answer = world.within(LIMIT, &["down"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    shim_process.wait();
    agent.wait();
    world.assert_no_members();
}

#[test]
fn down_ends_what_a_stop_could_not() {
    let world = World::new();
    let shim = session(&world, "a", &[], SLEEP);
    let _stopped = Stopped::new(shim);
    assert_eq!(world.within(LIMIT, &["stop", "a"]).code, 1);
    let process = held(shim);
    assert_eq!(world.within(LIMIT, &["down"]).code, 0);
    process.wait();
    // A person asked for the stop: the next daemon keeps to it.
    assert_eq!(world.show("a")["state"], "stopped");
}

#[test]
fn a_daemon_that_finds_a_shim_that_does_not_run_names_it() {
    let world = World::new();
    let shim = session(&world, "a", &[], SLEEP);
    let stopped = Stopped::new(shim);
    world.kill_daemon();
    world.ok(&["up"]);
    let answer = world.within(LIMIT, &["stop", "a"]);
    assert!(answer.code == 1 && answer.stderr.contains(&format!("pid {shim}")), "{answer:?}");
    assert!(why(&world, "a").contains(&format!("pid {shim}")), "{}", why(&world, "a"));
    drop(stopped);
    world.wait("a", "running");
    world.ok(&["stop", "a"]);
}

#[test]
fn unlock_ends_a_shim_that_does_not_run() {
    let world = World::new();
    let shim = session(&world, "a", &[], SLEEP);
    let _stopped = Stopped::new(shim);
    assert_eq!(world.within(LIMIT, &["stop", "a"]).code, 1);
    let process = held(shim);
    world.ok(&["unlock", "session:a", "--kill"]);
    world.wait("a", "stopped");
    process.wait();
}

#[test]
fn a_stop_may_take_its_whole_grace() {
    let world = World::new();
    let script = "trap '' TERM; echo deaf; while :; do sleep 1000; done";
    world.ok(&["new", "a", "--stop-grace", "4s", "--", "sh", "-c", script]);
    world.printed("a", "deaf");
    let answer = world.within(LIMIT, &["stop", "a"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(answer.took >= Duration::from_secs(4), "{answer:?}");
    assert_eq!(world.events_of("a", "run_exited")[0]["forced"], true);
    assert!(world.events_of("a", "health_warn").is_empty());
}

#[test]
fn a_shorter_grace_is_the_one_that_counts() {
    let world = World::new();
    let script = "trap '' TERM; echo deaf; while :; do sleep 1000; done";
    world.ok(&["new", "a", "--stop-grace", "1h", "--", "sh", "-c", script]);
    world.printed("a", "deaf");
    let shim = super::number(&world.show("a")["shim_pid"]);
    let stopped = Stopped::new(shim);
    let answer = world.within(LIMIT, &["stop", "a", "--timeout", "200ms"]);
    assert!(answer.code == 1 && answer.stderr.contains(&format!("pid {shim}")), "{answer:?}");
    drop(stopped);
    world.wait("a", "stopped");
}

#[test]
fn a_stop_of_what_is_dead_succeeds_at_once() {
    let world = World::new();
    world.ok(&["new", "a", "--mode", "once", "--", "true"]);
    world.wait("a", "stopped");
    assert_eq!(world.within(LIMIT, &["stop", "a"]).code, 0);
    let shim = session(&world, "b", &[], SLEEP);
    let process = held(shim);
    process.kill();
    process.wait();
    assert_eq!(world.within(LIMIT, &["stop", "b"]).code, 0);
    assert_eq!(world.show("b")["state"], "stopped");
}
