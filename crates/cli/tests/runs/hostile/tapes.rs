//! Tapes at their limits: lines that are too long, more output than may wait to be read, and a full disk.
//! Nothing hangs, the daemon stays small, and the next turn works.

use crate::hostile::store::disk::SmallDisk;
use crate::processes;
use crate::rights::needs;
use crate::world::World;
use serde_json::json;

/// A line may have up to 32 MiB.
const FITS: u64 = 30_000_000;
const TOO_LONG: u64 = 34_000_000;
const FAR_TOO_LONG: u64 = 100_000_000;
/// The most output that may wait to be read.
const BOUND: u64 = 64 << 20;
/// A line in memory, twice while it grows, the buffer it was read from, and the program. Far less than ten lines.
const MEMORY: u64 = 300 << 20;

/// The size of a session's tape.
fn taped(world: &World) -> u64 {
    let id = world.show("a")["id"].as_str().unwrap().to_owned();
    taped_in(world, &id)
}

fn taped_in(world: &World, id: &str) -> u64 {
    let files = std::fs::read_dir(world.home.join("sessions").join(id).join("tape")).into_iter().flatten();
    files.filter_map(|file| Some(file.ok()?.metadata().ok()?.len())).sum()
}

/// The most memory that a process ever used.
fn most_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

fn assert_small(world: &World, what: &str) {
    let (daemon, shim) = (world.daemon_pid(), processes::parent(world.pid("a")).unwrap());
    let (daemon, shim) = (most_memory(daemon), most_memory(shim));
    println!("{what}: the daemon had {} MiB at most, the shim {} MiB", daemon >> 20, shim >> 20);
    assert!(daemon < MEMORY && shim < 64 << 20, "{what}: {daemon} and {shim} bytes");
}

fn world() -> World {
    let world = World::new();
    world.with_player("policy.backoff_initial = \"10ms\"\n");
    world.play("a");
    world.ok(&["send", "a", "hello", "--wait", "240s"]);
    world
}

/// Checks that the turn of a message has ended as it should for a line of this length, and that the next one works.
fn is_over(world: &World, id: &str, length: u64) {
    let what = format!("a line of {length} bytes");
    if length <= FITS {
        assert_eq!(world.message("a", id, "done")["answer"], "printed", "{what}");
    } else {
        assert_eq!(world.message("a", id, "failed")["failure"], "turn_failed", "{what}");
    }
    assert_eq!(world.ok(&["send", "a", "hello", "--wait", "240s"]).stdout, "played\n", "{what}");
    assert_small(world, &what);
}

#[test]
fn lines_that_are_too_long_cost_their_turn_and_no_more() {
    for length in [FITS, TOO_LONG, FAR_TOO_LONG] {
        let world = world();
        let id = world.told("a", &format!("line_{length}"));
        is_over(&world, &id, length);
        assert_eq!(world.events_of("a", "run_started").len(), 1);
    }
}

#[test]
fn a_line_without_an_end_costs_its_turn_and_no_more() {
    let world = world();
    std::fs::write(world.path("go"), "").unwrap();
    let id = world.told("a", &format!("endless_{FAR_TOO_LONG}"));
    is_over(&world, &id, FAR_TOO_LONG);
}

#[test]
fn lines_that_are_printed_while_no_daemon_lives_wait_up_to_the_bound_and_are_heard_by_the_next() {
    for length in [FITS, TOO_LONG, FAR_TOO_LONG] {
        let world = world();
        let session = world.show("a")["id"].as_str().unwrap().to_owned();
        let id = world.told("a", &format!("later_line_{length}"));
        world.message("a", &id, "delivered");
        world.kill_daemon();
        std::fs::write(world.path("go"), "").unwrap();
        world.until("it is on the tape", || (taped_in(&world, &session) >= length.min(BOUND)).then_some(()));
        assert!(taped_in(&world, &session) < BOUND + (1 << 20), "more than may wait");
        world.ok(&["up"]);
        is_over(&world, &id, length);
    }
}

#[test]
fn an_agent_whose_tape_is_full_hears_its_stop() {
    let world = world();
    let session = world.show("a")["id"].as_str().unwrap().to_owned();
    let id = world.told("a", &format!("stubborn_{FAR_TOO_LONG}"));
    world.message("a", &id, "delivered");
    world.kill_daemon();
    std::fs::write(world.path("go"), "").unwrap();
    world.until("it is full", || (taped_in(&world, &session) >= BOUND).then_some(()));
    world.ok(&["stop", "a"]);
    let ended = world.events_of("a", "run_exited");
    assert_eq!(ended.last().unwrap()["forced"], json!(false), "{ended:?}");
    world.ok(&["start", "a"]);
    assert_eq!(world.ok(&["send", "a", "hello", "--wait", "240s"]).stdout, "played\n");
}

/// Fills the disk while an agent waits to print.
fn on_a_full_disk(daemon_lives: bool) {
    let disk = SmallDisk::with("size=30m");
    let mut world = World::new();
    world.home = disk.path("home");
    world.with_player("");
    world.play("a");
    world.ok(&["send", "a", "hello", "--wait", "240s"]);
    let id = world.told("a", "later_line_1000000");
    world.message("a", &id, "delivered");
    let before = taped(&world);
    if !daemon_lives {
        world.kill_daemon();
    }
    disk.fill();
    std::fs::write(world.path("go"), "").unwrap();
    if daemon_lives {
        let why = world.until("it is said", || {
            let why = world.run(&["why", "a"]).stdout;
            why.contains("its output cannot be written").then_some(why)
        });
        assert!(why.contains("No space left"), "{why}");
    }
    disk.free();
    world.ok(&["up"]);
    assert_eq!(world.message("a", &id, "done")["answer"], "printed");
    assert!(taped(&world) > before + 1_000_000, "nothing is missing");
    assert_eq!(world.ok(&["send", "a", "hello", "--wait", "240s"]).stdout, "played\n");
    world.assert_said_once();
}

#[test]
fn an_agent_on_a_full_disk_waits_that_is_said_and_it_goes_on() {
    needs!(Mount);
    on_a_full_disk(true);
}

#[test]
fn an_agent_on_a_full_disk_without_a_daemon_waits_and_goes_on() {
    needs!(Mount);
    on_a_full_disk(false);
}
