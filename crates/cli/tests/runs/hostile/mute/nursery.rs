//! The process that shims are forked from is stopped, or lost: sessions start nevertheless.

use super::{LIMIT, Stopped};
use crate::processes;
use crate::world::World;

/// The pid of the process that a daemon forks its shims from.
fn nursery(world: &World) -> u32 {
    let daemon = world.daemon_pid();
    let is_nursery = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/comm"))
            .is_ok_and(|name| name.trim() == "pinfold-nursery")
    };
    processes::children(daemon)
        .into_iter()
        .find(is_nursery)
        .expect("a daemon that has started a shim has a nursery")
}

#[test]
fn a_session_starts_although_the_nursery_does_not_run() {
    let world = World::new();
    world.ok(&["new", "first", "--", "sleep", "1000"]);
    let _stopped = Stopped::new(nursery(&world));
    let answer = world.within(LIMIT, &["new", "a", "--", "sleep", "1000"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let session = world.show("a");
    assert_eq!((&session["state"], &session["crashes"]), (&"running".into(), &0.into()), "{session}");
    assert!(world.events_of("a", "run_exited").is_empty());
    // The earlier session was not disturbed, and the next one does not have to wait.
    assert_eq!(world.show("first")["restarts"], 0);
    let answer = world.within(LIMIT, &["new", "b", "--", "sleep", "1000"]);
    assert!(answer.code == 0 && answer.took.as_millis() < 1500, "{answer:?}");
}

#[test]
fn many_sessions_start_at_once_although_the_nursery_does_not_run() {
    let world = World::new();
    world.ok(&["new", "first", "--", "sleep", "1000"]);
    let _stopped = Stopped::new(nursery(&world));
    let names: Vec<String> = (0..12).map(|number| format!("a{number}")).collect();
    std::thread::scope(|scope| {
        for name in &names {
            scope.spawn(|| assert_eq!(world.within(LIMIT, &["new", name, "--", "sleep", "1000"]).code, 0));
        }
    });
    let sessions = world.sessions();
    for name in &names {
        let session = &sessions[name];
        assert_eq!((&session["state"], &session["crashes"]), (&"running".into(), &0.into()), "{session}");
    }
}

#[test]
fn a_nursery_that_is_killed_costs_no_run() {
    let world = World::new();
    world.ok(&["new", "first", "--", "sleep", "1000"]);
    processes::kill(nursery(&world));
    world.ok(&["new", "a", "--", "sleep", "1000"]);
    assert_eq!(world.show("a")["crashes"], 0);
    assert_eq!(world.show("first")["restarts"], 0);
}
