//! kill -9 of the daemon, of shims and of agents, one by one and together.

use crate::processes::{self, lives};
use crate::world::{World, held, number};
use std::collections::BTreeMap;

const MANY: usize = 50;

fn pids(world: &World) -> BTreeMap<String, (u32, u32)> {
    let sessions = world.sessions().into_iter().filter(|(_, session)| session["state"] == "running");
    sessions.map(|(name, s)| (name, (number(&s["pid"]), number(&s["shim_pid"])))).collect()
}

#[test]
fn fifty_agents_outlive_the_daemon_and_none_is_doubled() {
    let world = World::new();
    for n in 0..MANY {
        world.guarded(&format!("s{n}"), &[], "exec sleep 100000");
    }
    let before = pids(&world);
    assert_eq!(before.len(), MANY);
    world.kill_daemon();
    // Two agents end while no daemon is there: one by itself, one by a signal.
    let ended = [before["s3"].0, before["s7"].0].map(held);
    ended[0].signal(rustix::process::Signal::TERM);
    ended[1].signal(rustix::process::Signal::SEGV);
    ended.iter().for_each(processes::Held::wait);
    let shims = [before["s3"].1, before["s7"].1].map(processes::Held::open);
    shims.iter().flatten().for_each(processes::Held::wait);
    world.ok(&["up"]);
    for (name, signal) in [("s3", 15), ("s7", 11)] {
        world.wait(name, "running");
        let ends = world.events_of(name, "run_exited");
        assert_eq!(ends.len(), 1, "{ends:?}");
        assert_eq!((&ends[0]["signal"], &ends[0]["code"]), (&signal.into(), &serde_json::Value::Null));
        assert_eq!(ends[0]["verdict"], "crash");
    }
    let after = pids(&world);
    for (name, pids) in &before {
        if name != "s3" && name != "s7" {
            assert_eq!(after.get(name), Some(pids), "{name}");
        }
    }
    let members = world.members();
    assert_eq!(members.len(), MANY);
    assert!(members.values().all(|pids| pids.len() == 1), "{members:?}");
    world.check_history();
    assert_eq!(world.events_of("s1", "adopted").len(), 1);
}

/// An agent with a grandchild that has left its session and holds the guard, as its whole tree does.
const WITH_GRANDCHILD: &str = "setsid sh -c 'echo grandchild $$; exec sleep 100000' & \
     while :; do sleep 1000; done";

struct Tree {
    agent: u32,
    shim: u32,
    grandchild: u32,
}

fn tree(world: &World, name: &str) -> Tree {
    let session = world.guarded(name, &[], WITH_GRANDCHILD);
    let grandchild = world.printed(name, "grandchild ").parse().unwrap_or(0);
    assert!(lives(grandchild));
    Tree { agent: number(&session["pid"]), shim: number(&session["shim_pid"]), grandchild }
}

/// After the kill, the next run begins only when nothing of the old tree is alive, and there is one end.
fn next_run(world: &World, tree: &Tree, ends: usize) {
    let watch = world.watch();
    watch.event("the second run", |event| event["kind"] == "run_started" && event["fence"] != first(world));
    world.wait("a", "running");
    for pid in [tree.agent, tree.grandchild] {
        assert!(!lives(pid), "{pid} lives beside the next run");
    }
    assert_ne!(world.pid("a"), tree.agent);
    let exits = world.events_of("a", "run_exited");
    assert_eq!(exits.len(), ends, "{exits:?}");
    assert_eq!(exits[0]["verdict"], "crash");
    world.check_history();
}

fn first(world: &World) -> serde_json::Value {
    world.events_of("a", "run_started")[0]["fence"].clone()
}

#[test]
fn kill_of_the_agent_ends_its_tree_before_the_next_run() {
    let world = World::new();
    let tree = tree(&world, "a");
    processes::kill(tree.agent);
    next_run(&world, &tree, 1);
    assert_eq!(world.events_of("a", "run_exited")[0]["signal"], 9);
}

#[test]
fn kill_of_the_shim_ends_its_tree_before_the_next_run() {
    let world = World::new();
    let tree = tree(&world, "a");
    processes::kill(tree.shim);
    next_run(&world, &tree, 1);
    let exit = &world.events_of("a", "run_exited")[0];
    assert!(exit["signal"].is_null() && exit["code"].is_null(), "{exit}");
}

#[test]
fn kill_of_shim_and_agent_ends_the_tree_before_the_next_run() {
    let world = World::new();
    let tree = tree(&world, "a");
    let shim = held(tree.shim);
    processes::kill(tree.agent);
    shim.kill();
    shim.wait();
    next_run(&world, &tree, 1);
}

#[test]
fn kill_of_daemon_and_shim_ends_the_tree_before_the_next_run() {
    let world = World::new();
    let tree = tree(&world, "a");
    let daemon = held(world.daemon_pid());
    daemon.kill();
    processes::kill(tree.shim);
    daemon.wait();
    assert!(lives(tree.grandchild), "nobody is there to end it yet");
    world.ok(&["up"]);
    next_run(&world, &tree, 1);
}

#[test]
fn a_stop_after_the_shim_was_killed_leaves_nothing_behind() {
    let world = World::new();
    let tree = tree(&world, "a");
    processes::kill(tree.shim);
    world.ok(&["stop", "a"]);
    world.assert_no_members();
    assert!(!lives(tree.grandchild));
    world.check_history();
}

#[test]
fn a_shim_that_does_not_answer_is_waited_for_and_nothing_is_started_beside_it() {
    let world = World::new();
    let session = world.guarded("a", &[], "exec sleep 100000");
    let shim = held(number(&session["shim_pid"]));
    world.kill_daemon();
    shim.signal(rustix::process::Signal::STOP);
    world.ok(&["up"]);
    let refused = world.run(&["--json", "restart", "a"]);
    assert_eq!((refused.code, &refused.error()["kind"]), (75, &"busy".into()), "{refused:?}");
    let why = world.ok(&["why", "a"]).stdout;
    assert!(why.contains("does not answer"), "{why}");
    shim.signal(rustix::process::Signal::CONT);
    let watch = world.watch();
    watch.event("the adoption", |event| event["kind"] == "adopted");
    assert_eq!(world.show("a")["pid"], session["pid"]);
    world.ok(&["restart", "a"]);
    world.check_history();
}

#[test]
fn an_agent_that_the_daemon_lost_sight_of_is_found_by_a_verb_that_comes_first() {
    let world = World::new();
    let session = world.guarded("a", &["--stop-grace", "1s"], WITH_GRANDCHILD);
    world.kill_daemon();
    // No `up`: the verb starts the daemon, and returns when the session was looked at.
    let stopped = world.json(&["stop", "a"]);
    assert_eq!(stopped[0]["state"], "stopped");
    assert!(!lives(number(&session["pid"])));
    world.assert_no_members();
    let exits = world.events_of("a", "run_exited");
    assert_eq!((exits.len(), &exits[0]["verdict"]), (1, &"clean".into()), "{exits:?}");
    world.check_history();
}

#[test]
fn down_ends_the_tree_of_a_shim_that_does_not_answer() {
    let world = World::new();
    let session = world.guarded("a", &["--stop-grace", "500ms"], WITH_GRANDCHILD);
    let shim = held(number(&session["shim_pid"]));
    world.kill_daemon();
    shim.signal(rustix::process::Signal::STOP);
    world.ok(&["up"]);
    world.ok(&["down"]);
    world.assert_no_members();
    world.ok(&["up"]);
    world.wait("a", "running");
    assert_eq!(world.events_of("a", "run_exited").len(), 1);
    world.check_history();
}

#[test]
fn the_first_listing_after_a_kill_of_daemon_and_shim_tells_of_nobody_dead() {
    let world = World::new();
    world.guarded("a", &[], "exec sleep 100000");
    for _ in 0..5 {
        world.wait("a", "running");
        let before = world.show("a");
        let (pid, shim) = (number(&before["pid"]), number(&before["shim_pid"]));
        let daemon = world.daemon_pid();
        for victim in [daemon, shim] {
            processes::kill(victim);
        }
        let shown = world.sessions()["a"].clone();
        assert_ne!(shown["pid"], pid, "a dead agent is listed: {shown}");
        world.ok(&["start", "a"]);
    }
    world.check_history();
}

#[test]
fn a_child_that_hid_from_its_run_and_lost_its_shim_is_ended_before_the_next_run() {
    let world = World::new();
    // As root it leaves its control group as well.
    let hide = "for group in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs; do echo $$ >$group; done \
         2>/dev/null; echo $$ >\"$0.new\"; mv \"$0.new\" \"$0\"; exec sleep 100000";
    std::fs::write(world.path("hide"), hide).unwrap();
    let script = "if test -e \"$ROOT/hidden\"; then kill -0 $(cat \"$ROOT/hidden\") 2>/dev/null && echo beside; \
         echo second; exec sleep 100000; fi; \
         setsid env -i sh -c '. \"$1\"' \"$ROOT/hidden\" \"$ROOT/hide\" </dev/null >/dev/null 2>&1 & \
         exec sleep 100000";
    world.ok(&["new", "a", "--env", "ROOT", "--", "sh", "-c", script]);
    let until = std::time::Instant::now() + processes::PATIENCE;
    while !world.path("hidden").exists() {
        assert!(std::time::Instant::now() < until, "it does not hide");
    }
    let hidden = std::fs::read_to_string(world.path("hidden")).unwrap().trim().parse().unwrap();
    assert!(lives(hidden));
    processes::kill(number(&world.show("a")["shim_pid"]));
    let logs = world.follow(&["logs", "a", "-f"]);
    let line = logs.until("the next run", |_| true);
    let ended = !lives(hidden);
    if !ended {
        processes::kill(hidden);
    }
    assert_eq!((line.as_str(), ended), ("second", true), "two at once");
}
