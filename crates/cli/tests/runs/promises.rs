//! Promises whose breaking would otherwise not show: another boot, threads that wait for nothing, a shim
//! between two runs.

use crate::processes;
use crate::world::{Ends, World, number};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[test]
fn an_end_by_a_reboot_is_charged_to_nobody() {
    let world = World::new();
    world.guarded("a", &[], "exec sleep 100000");
    let shim = processes::Held::open(number(&world.show("a")["shim_pid"])).unwrap();
    world.kill_daemon();
    shim.kill();
    shim.wait();
    let database = rusqlite::Connection::open(world.home.join("pinfold.db")).unwrap();
    let another = "00000000-1111-2222-3333-444444444444";
    let changed = database.execute("UPDATE meta SET value = ?1 WHERE key = 'boot_id'", [another]).unwrap();
    assert_eq!(changed, 1);
    drop(database);
    world.ok(&["up"]);
    world.wait("a", "running");
    let ends = world.events_of("a", "run_exited");
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!(ends[0]["end"], "machine_lost", "{ends:?}");
    assert_eq!(world.show("a")["crashes"], 0);
}

/// The names of the daemon's threads.
fn threads(daemon: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{daemon}/task")).unwrap().flatten();
    tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok()).collect()
}

#[test]
fn a_session_that_is_stopped_while_it_is_blocked_leaves_no_thread_behind() {
    let world = World::new();
    let folder = world.path("work");
    std::fs::create_dir(&folder).unwrap();
    let folder = folder.to_str().unwrap();
    world.ok(&["new", "holder", "--dir", folder, "--", "sleep", "100000"]);
    world.ok(&["new", "twin", "--dir", folder, "--", "sleep", "100000"]);
    assert_eq!(world.show("twin")["state"], "blocked");
    let waits = |daemon| threads(daemon).iter().any(|name| name.trim() == "wait");
    let daemon = world.daemon_pid();
    assert!(waits(daemon), "{:?}", threads(daemon));
    world.ok(&["stop", "twin"]);
    let until = Instant::now() + processes::PATIENCE;
    while waits(daemon) {
        assert!(Instant::now() < until, "a thread still waits for the lock: {:?}", threads(daemon));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_shim_in_its_restart_gap_is_found_by_the_next_daemon() {
    let world = World::new();
    // A crash within a second is followed by a wait of one second, under the same shim.
    world.guarded("a", &[], "test -e \"$ROOT/second\" && exec sleep 100000; touch \"$ROOT/second\"; exit 3");
    let shim = number(&world.show("a")["shim_pid"]);
    world.kill_daemon();
    world.ok(&["up"]);
    world.wait("a", "running");
    assert_eq!(world.events_of("a", "lock_busy"), [] as [Value; 0]);
    assert_eq!(number(&world.show("a")["shim_pid"]), shim, "another shim was started beside one that stood");
    world.check_history();
}

#[test]
fn whoever_waits_for_an_answer_is_told_over_a_down_and_an_up() {
    let world = World::new();
    let script = "while read -r line; do until test -e \"$ROOT/go\"; do sleep 0.05; done; echo \"PINFOLD_DONE $line\"; done";
    world.guarded("chat", &["--mode", "on-demand", "--turns", "done", "--stop-grace", "1s"], script);
    let waiting = world.follow(&["send", "chat", "hello", "--wait", "240s"]);
    let until = Instant::now() + processes::PATIENCE;
    while world.show("chat")["inbox"]["in_flight"] != json!(1) {
        assert!(Instant::now() < until, "the message is not delivered");
    }
    world.ok(&["down"]);
    std::fs::write(world.path("go"), "").unwrap();
    world.ok(&["up"]);
    let mut waiting = waiting;
    assert_eq!(waiting.until("the answer", |_| true), "hello");
    assert!(waiting.child.ended().success());
}
