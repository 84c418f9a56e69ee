//! A verb on several sessions acts on all of them at once, and reports each.

use crate::chats::moment;
use crate::world::World;
use std::time::Duration;

/// Sessions that run until they are stopped.
fn sleepers(names: &[&str]) -> World {
    let world = World::new();
    for name in names {
        world.guarded(name, &[], "exec sleep 1000");
    }
    world
}

fn state(world: &World, name: &str) -> String {
    world.show(name)["state"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn an_unknown_one_keeps_no_other_from_being_stopped() {
    let world = sleepers(&["a", "b"]);
    let answer = world.run(&["stop", "a", "nope", "b"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert_eq!([state(&world, "a"), state(&world, "b")], ["stopped", "stopped"]);
    let said = |wanted: &str| answer.stderr.lines().any(|line| line.starts_with(wanted));
    assert!(said("a is stopped") && said("b is stopped"), "{answer:?}");
    assert!(answer.stderr.contains("`nope`"), "{answer:?}");
}

#[test]
fn programs_are_told_of_each_in_the_order_given() {
    let world = sleepers(&["a", "b"]);
    let answer = world.run(&["--json", "stop", "b", "nope", "a"]);
    let told = answer.json();
    assert_eq!((answer.code, told.as_array().map(Vec::len)), (1, Some(3)), "{answer:?}");
    assert_eq!([&told[0]["name"], &told[0]["state"]], ["b", "stopped"]);
    assert_eq!([&told[1]["error"]["kind"], &told[1]["session"]], ["not_found", "nope"]);
    assert_eq!([&told[2]["name"], &told[2]["state"]], ["a", "stopped"]);
}

#[test]
fn one_session_is_told_as_an_array_too() {
    let world = sleepers(&["a"]);
    assert_eq!(world.json(&["stop", "a"])[0]["state"], "stopped");
    let answer = world.run(&["--json", "stop", "nope"]);
    assert_eq!((answer.code, &answer.json()[0]["error"]["kind"]), (1, &"not_found".into()), "{answer:?}");
}

#[test]
fn three_that_do_not_listen_take_as_long_as_one() {
    let world = World::new();
    for name in ["a", "b", "c"] {
        let deaf = "trap '' TERM; echo deaf; while :; do sleep 1000; done";
        world.guarded(name, &["--stop-grace", "2s"], deaf);
        world.printed(name, "deaf");
    }
    let answer = world.ok(&["stop", "a", "b", "c"]);
    assert!(answer.took >= Duration::from_millis(1900), "the grace was not given: {answer:?}");
    let ends: Vec<u64> = ["a", "b", "c"].map(|name| moment(&world.events_of(name, "run_exited")[0])).into();
    let (first, last) = (ends.iter().min().unwrap(), ends.iter().max().unwrap());
    assert!(last - first < 1900, "one after another: {ends:?}");
}

#[test]
fn the_first_error_in_the_order_given_is_the_code() {
    let world = World::new();
    std::fs::create_dir(world.path("work")).unwrap();
    world.guarded("holder", &["--dir", "work"], "exec sleep 1000");
    world.guarded("busy", &["--dir", "work", "--mode", "on-demand"], "exec sleep 1000");
    world.guarded("free", &["--mode", "on-demand"], "exec sleep 1000");
    assert_eq!(world.run(&["start", "busy", "nope", "free"]).code, 75);
    assert_eq!(world.run(&["start", "nope", "busy", "free"]).code, 1);
    assert_eq!(state(&world, "free"), "running");
}

#[test]
fn every_verb_on_several_acts_on_all_of_them() {
    let world = sleepers(&["a", "b"]);
    for (verb, then) in
        [("stop", "stopped"), ("start", "running"), ("restart", "running"), ("archive", "archived")]
    {
        let answer = world.run(&[verb, "a", "nope", "b"]);
        assert_eq!(answer.code, 1, "{verb}: {answer:?}");
        assert_eq!([state(&world, "a"), state(&world, "b")], [then, then], "{verb}");
    }
    let answer = world.run(&["restore", "a", "nope", "b"]);
    assert_eq!((answer.code, state(&world, "b").as_str()), (1, "idle"), "{answer:?}");
    world.ok(&["archive", "a", "b"]);
    let answer = world.run(&["--json", "rm", "a", "nope", "b", "--yes"]);
    let told = answer.json();
    assert_eq!((answer.code, &told[1]["error"]["kind"]), (1, &"not_found".into()), "{answer:?}");
    assert_eq!([&told[0]["name"], &told[2]["name"]], ["a", "b"]);
    assert!(world.sessions().is_empty());
}
