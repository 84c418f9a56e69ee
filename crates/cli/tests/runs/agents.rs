//! Agents that do not want to end.

use crate::processes::lives;
use crate::world::{Ends, World, held};
use std::time::{Duration, Instant};

/// Beyond its grace, a stop takes no longer than this.
const BESIDES: Duration = Duration::from_secs(30);
/// What "at once" means on a busy machine, including the start of the verb itself.
const AT_ONCE: Duration = Duration::from_secs(5);

/// A process that cannot be found by its environment, its group, its session or its parent, and that ignores
/// SIGTERM. Its pid is in a file.
const ESCAPEE: &str = "trap '' TERM; \
     (setsid env -i sh -c 'trap \"\" TERM; (while :; do sleep 1000; done) & \
     echo $! >\"$0/escaped\"' \"$ROOT\" &) ; \
     until test -s \"$ROOT/escaped\"; do sleep 0.01; done; \
     echo escaped $(cat \"$ROOT/escaped\"); while :; do sleep 1000; done";

#[test]
fn a_stop_ends_a_tree_that_hides_and_ignores_sigterm() {
    let world = World::new();
    world.guarded("a", &["--stop-grace", "1s"], ESCAPEE);
    let escaped: u32 = world.printed("a", "escaped ").parse().unwrap_or(0);
    assert!(lives(escaped));
    let agent = held(world.pid("a"));
    let group = crate::processes::group(agent.pid);
    let answer = world.ok(&["stop", "a"]);
    assert!(group.is_none_or(|group| !group.exists()), "its control group is left behind");
    assert!(answer.took >= Duration::from_millis(900), "the grace was not given: {answer:?}");
    assert!(answer.took < Duration::from_secs(1) + BESIDES, "{answer:?}");
    assert!(agent.ends_within(Duration::ZERO));
    assert!(!lives(escaped));
    world.assert_no_members();
    let exits = world.events_of("a", "run_exited");
    assert_eq!(exits.len(), 1);
    assert_eq!((&exits[0]["verdict"], &exits[0]["forced"]), (&"clean".into(), &true.into()));
    assert_eq!(world.show("a")["state"], "stopped");
    world.check_history();
}

/// The shortest of several tries: a busy machine may be slow once, but not always.
fn shortest(mut attempt: impl FnMut() -> Duration) -> Duration {
    (0..5).map(|_| attempt()).min().unwrap_or(Duration::MAX)
}

#[test]
fn a_stop_of_an_agent_that_is_dead_already_is_over_at_once() {
    let world = World::new();
    world.guarded("a", &[], "exec sleep 100000");
    let took = shortest(|| {
        world.ok(&["start", "a"]);
        let agent = held(world.pid("a"));
        agent.kill();
        agent.wait();
        world.ok(&["stop", "a"]).took
    });
    assert!(took < AT_ONCE, "{took:?}");
    world.check_history();
}

#[test]
fn a_stop_in_a_backoff_is_over_at_once() {
    let world = World::new();
    world.guarded("a", &[], "exit 1");
    let took = shortest(|| {
        world.run(&["start", "a"]);
        world.wait("a", "backoff");
        world.ok(&["stop", "a"]).took
    });
    assert!(took < AT_ONCE, "{took:?}");
    assert_eq!(world.show("a")["state"], "stopped");
    world.check_history();
}

#[test]
fn a_stop_with_a_shorter_time_shortens_a_stop_that_is_under_way() {
    let world = World::new();
    world.guarded("a", &["--stop-grace", "1h"], "trap '' TERM; echo trapped; while :; do sleep 1000; done");
    world.printed("a", "trapped");
    let mut slow = world.command(&["stop", "a"]).spawn().unwrap();
    world.wait("a", "stopping");
    let begun = Instant::now();
    world.ok(&["stop", "a", "--timeout", "0s"]);
    assert!(slow.ended().success());
    assert!(begun.elapsed() < crate::processes::PATIENCE, "{:?}", begun.elapsed());
    assert_eq!(world.events_of("a", "run_exited")[0]["verdict"], "clean");
}
