//! The memory watchdog: page cache and forked copies drain no session, and one that uses too much is drained,
//! whichever process of its tree does so, and whatever the machine lets us read.

use crate::eater::{self, MIB};
use crate::processes::{Held, PATIENCE};
use crate::world::World;
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What a machine may lack: nothing, a group that counts memory, any group.
const MACHINES: [&str; 3] = ["", "memory-cgroup", "cgroup"];

/// A home whose daemon does without some capabilities, and reads often.
fn lacking(without: &str) -> World {
    let world = World::new();
    std::fs::create_dir_all(&world.home).unwrap();
    let config =
        "[policy]\nmemory_sample = \"100ms\"\ndrain_backoff = \"10ms\"\nbackoff_initial = \"10ms\"\n";
    std::fs::write(world.home.join("config.toml"), config).unwrap();
    up(&world, without);
    world
}

fn up(world: &World, without: &str) {
    let answer = crate::world::finish(world.command(&["up"]).env("PINFOLD_WITHOUT", without));
    assert_eq!(answer.code, 0, "{answer:?}");
}

/// A session whose agent is the eater itself.
fn eats(world: &World, name: &str, limit: &str, role: &str, options: &[&str]) {
    let (words, role) = (eater::words(), eater::role(role));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let new = ["new", name, "--memory", limit, "--env", &role];
    world.ok(&[&new, options, &["--"], &words].concat());
}

/// A session whose agent is a shell, in which `"$@"` is the eater.
fn shell_eats(world: &World, name: &str, limit: &str, role: &str, script: &str, options: &[&str]) {
    let (words, role) = (eater::words(), eater::role(role));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let new = ["new", name, "--memory", limit, "--env", &role];
    world.ok(&[&new, options, &["--", "sh", "-c", script, "sh"], &words].concat());
}

/// Waits until the first run of a session has ended.
fn first_exit(world: &World, name: &str) -> Value {
    let watching = world.watch();
    watching.event("an exit", |event| event["kind"] == "run_exited" && event["session"] == name)
}

fn assert_drained(world: &World, name: &str, limit: usize, forced: bool) {
    let exit = first_exit(world, name);
    assert_eq!((&exit["verdict"], &exit["forced"]), (&"drained".into(), &forced.into()), "{exit}");
    assert_eq!(exit["crashes"], 0, "{exit}");
    assert_eq!(world.show(name)["crashes"], 0);
    let drained = &world.events_of(name, "drained")[0];
    assert_eq!(drained["limit"], limit, "{drained}");
    assert!(drained["bytes"].as_u64().unwrap() >= limit as u64, "{drained}");
    world.check_history();
}

/// Waits until a memory reading of a session is within bounds.
fn read_between(world: &World, name: &str, least: usize, most: usize) {
    let until = Instant::now() + PATIENCE;
    let mut bytes = Value::Null;
    while Instant::now() < until {
        bytes = world.show(name)["memory_bytes"].clone();
        if bytes.as_u64().is_some_and(|bytes| (least as u64..=most as u64).contains(&bytes)) {
            return;
        }
    }
    panic!("the last reading of {name} was {bytes}, not from {least} to {most}");
}

fn assert_left_alone(world: &World, name: &str, pid: u32) {
    assert_eq!(world.events_of(name, "run_exited"), Vec::<Value>::new());
    assert_eq!(world.events_of(name, "drained"), Vec::<Value>::new());
    assert_eq!(world.pid(name), pid);
}

/// A sparse file on a disk: reading it fills the page cache all the same. A temporary folder may be in memory.
struct Holes(PathBuf);

impl Holes {
    fn new(size: usize) -> Holes {
        let name = format!("holes-{}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::File::create(&path).unwrap().set_len(size as u64).unwrap();
        Holes(path)
    }
}

impl Drop for Holes {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn two_gibibytes_of_a_mapped_file_under_a_limit_of_256_mebibytes_are_left_alone() {
    let holes = Holes::new(2048 * MIB);
    for without in MACHINES {
        let world = lacking(without);
        eats(&world, "reader", "256M", &format!("file {} 2048", holes.0.display()), &[]);
        world.printed("reader", "eater has");
        let pid = world.pid("reader");
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let resident: usize = resident.trim().trim_end_matches(" kB").parse().unwrap();
        // Far over the limit; the kernel may take some pages back while other programs use the disk.
        assert!(resident > 1024 * 1024, "{resident} kB are there");
        read_between(&world, "reader", 40 * MIB, 200 * MIB);
        assert_left_alone(&world, "reader", pid);
    }
}

#[test]
fn a_gibibyte_of_its_own_is_drained_and_no_crash() {
    for without in MACHINES {
        let world = lacking(without);
        eats(&world, "hungry", "256M", "anonymous 1024", &[]);
        assert_drained(&world, "hungry", 256 * MIB, false);
    }
}

#[test]
fn a_child_and_a_grandchild_that_hides_are_part_of_the_run() {
    for without in MACHINES {
        let world = lacking(without);
        shell_eats(&world, "parent", "256M", "anonymous 1024", "\"$@\" & wait", &[]);
        assert_drained(&world, "parent", 256 * MIB, false);
        world.ok(&["stop", "parent"]);
        let hiding = "(setsid \"$@\" &); exec sleep 100000";
        shell_eats(&world, "grandparent", "256M", "anonymous 1024", hiding, &[]);
        assert_drained(&world, "grandparent", 256 * MIB, false);
        world.ok(&["stop", "grandparent"]);
        world.assert_no_members();
    }
}

#[test]
fn one_that_ignores_the_stop_signal_is_killed_after_the_grace_and_still_drained() {
    for without in MACHINES {
        let world = lacking(without);
        let script = "trap '' TERM; exec \"$@\"";
        shell_eats(&world, "deaf", "256M", "anonymous 1024", script, &["--stop-grace", "300ms"]);
        assert_drained(&world, "deaf", 256 * MIB, true);
    }
}

#[test]
fn twenty_forks_that_share_200_mebibytes_under_a_limit_of_512_are_left_alone() {
    for without in MACHINES {
        let world = lacking(without);
        eats(&world, "forking", "512M", "forks 20 200", &[]);
        world.printed("forking", "eater has");
        let pid = world.pid("forking");
        read_between(&world, "forking", 240 * MIB, 400 * MIB);
        assert_left_alone(&world, "forking", pid);
        assert_eq!(world.members()["forking"].len(), 21);
    }
}

#[test]
fn memory_close_to_the_limit_is_warned_of_once_with_the_numbers() {
    for without in MACHINES {
        let world = lacking(without);
        eats(&world, "high", "100M", "anonymous 85", &[]);
        let watching = world.watch();
        let warning = watching.event("a warning", |event| event["kind"] == "memory_warn");
        assert_eq!(warning["limit"], 100 * MIB, "{warning}");
        let bytes = warning["bytes"].as_u64().unwrap();
        assert!((80 * MIB as u64..100 * MIB as u64).contains(&bytes), "{warning}");
        read_between(&world, "high", 85 * MIB, 100 * MIB);
        assert_eq!(world.events_of("high", "memory_warn").len(), 1);
        assert_eq!(world.show("high")["memory_limit_bytes"], 100 * MIB);
        assert_left_alone(&world, "high", world.pid("high"));
    }
}

#[test]
fn drains_in_a_row_are_warned_of_once_and_never_fail() {
    let world = lacking("");
    eats(&world, "greedy", "64M", "anonymous 128", &[]);
    let watching = world.watch();
    watching.until("the sixth run", |line| {
        line.contains("\"run_started\"") && world.events_of("greedy", "run_started").len() >= 6
    });
    let warnings = world.events_of("greedy", "health_warn");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(warnings[0]["reason"], "memory_drain_loop");
    let exits = world.events_of("greedy", "run_exited");
    assert!(exits.iter().all(|exit| exit["verdict"] == "drained" && exit["crashes"] == 0), "{exits:?}");
}

#[test]
fn a_run_that_outlived_its_daemon_is_watched_by_the_next_one() {
    for without in MACHINES {
        let world = lacking(without);
        let file = world.path("now");
        eats(&world, "patient", "256M", &format!("when {} 512", file.display()), &[]);
        world.printed("patient", "eater waits");
        world.kill_daemon();
        up(&world, without);
        std::fs::write(&file, "").unwrap();
        assert_drained(&world, "patient", 256 * MIB, false);
    }
}

#[test]
fn a_limit_that_is_set_counts_from_the_next_run_on() {
    let world = lacking("");
    eats(&world, "changed", "1G", "anonymous 300", &[]);
    world.printed("changed", "eater has");
    let pid = world.pid("changed");
    world.ok(&["set", "changed", "--memory", "256M"]);
    read_between(&world, "changed", 300 * MIB, 400 * MIB);
    assert_left_alone(&world, "changed", pid);
    assert_eq!(world.show("changed")["memory_limit_bytes"], 1024 * MIB);
    world.ok(&["restart", "changed"]);
    let watching = world.watch();
    let drained = watching.event("a drain", |event| event["kind"] == "drained");
    assert_eq!(drained["limit"], 256 * MIB);
}

#[test]
fn who_has_no_limit_is_not_read_and_a_size_needs_a_unit() {
    let world = lacking("");
    world.guarded("free", &[], "exec sleep 100000");
    eats(&world, "limited", "1G", "anonymous 50", &[]);
    read_between(&world, "limited", 50 * MIB, 100 * MIB);
    let listed = world.json(&["ls"]);
    let free = listed.as_array().unwrap().iter().find(|session| session["name"] == "free").unwrap();
    assert_eq!(free["memory_bytes"], Value::Null, "nobody looks at it");
    assert!(world.show("free")["memory_bytes"].is_u64(), "somebody does");
    let answer = world.run(&["new", "bare", "--memory", "512", "--", "true"]);
    assert!(answer.code == 2 && answer.stderr.contains("512M, 2G"), "{answer:?}");
}

/// The kernel kills in a group that counts memory and has a limit, which the test sets and pinfold never
/// does. If a run has no such group, the reason of the kill cannot be known.
#[test]
fn a_kill_by_the_kernel_for_memory_is_named_where_it_can_be_known() {
    let world = lacking("");
    let file = world.path("now");
    eats(&world, "doomed", "1G", &format!("when {} 200", file.display()), &[]);
    world.printed("doomed", "eater waits");
    let pid = world.pid("doomed");
    // Asked of the kernel, not of the program under test.
    let known = counts_memory();
    assert_eq!(world.json(&["status"])["capabilities"]["memory_cgroup"]["available"], known);
    if known {
        limit_group_of(pid, 100 * MIB);
        std::fs::write(&file, "").unwrap();
    } else {
        Held::open(pid).unwrap().signal(Signal::KILL);
    }
    let exit = first_exit(&world, "doomed");
    let expected = if known { "out_of_memory" } else { "crash" };
    assert_eq!((&exit["verdict"], &exit["signal"]), (&expected.into(), &9.into()), "{exit}");
    assert_eq!(exit["crashes"], 1);
}

/// Whether a group that counts memory can be made beside one that can be killed at once; tried by making both.
fn counts_memory() -> bool {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let make = |kind: &str, option: &str, group: &str, file: &str| {
        let mount = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|words| {
            let [_, _, of, options, ..] = words[..] else { return false };
            of == kind && options.split(',').any(|word| word == option)
        });
        let Some(mount) = mount else { return false };
        let folder =
            Path::new(&format!("{}{group}", mount[1])).join(format!("counts-{}", std::process::id()));
        let has = std::fs::create_dir(&folder).is_ok() && folder.join(file).exists();
        _ = std::fs::remove_dir(&folder);
        has
    };
    let group = |mark: &str| groups.lines().find_map(|line| line.split_once(mark).map(|(_, path)| path));
    group("0::").is_some_and(|second| {
        let first =
            || group(":memory:").is_some_and(|group| make("cgroup", "memory", group, "memory.oom_control"));
        make("cgroup2", "rw", second, "cgroup.kill")
            && (make("cgroup2", "rw", second, "memory.events") || first())
    })
}

fn limit_group_of(pid: u32, limit: usize) {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let first = groups.lines().find_map(|line| line.split_once(":memory:").map(|(_, path)| path));
    let second = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let (mount, path, file) = match (first, second) {
        (Some(path), _) => ("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"),
        (None, Some(path)) => ("/sys/fs/cgroup", path, "memory.max"),
        (None, None) => panic!("no control groups: {groups}"),
    };
    std::fs::write(format!("{mount}{path}/{file}"), limit.to_string()).unwrap();
}

#[test]
fn status_says_what_this_machine_can_and_why_not() {
    let abilities = |world: &World| world.json(&["status"])["capabilities"].clone();
    let whole = lacking("");
    for ability in ["cgroup", "memory_cgroup", "memory_reading", "smaps_rollup", "pidfd", "memory_ceiling"] {
        let told = &abilities(&whole)[ability];
        assert!(told["available"].is_boolean() && told["detail"].is_string(), "{ability}: {told}");
        assert!(whole.ok(&["status"]).stdout.contains(ability));
    }
    let poor = lacking("cgroup,smaps-rollup");
    let told = abilities(&poor);
    for ability in ["cgroup", "memory_cgroup", "smaps_rollup"] {
        assert_eq!(told[ability]["available"], false, "{told}");
        assert!(told[ability]["detail"].as_str().unwrap().contains("PINFOLD_WITHOUT"), "{told}");
    }
    assert!(told["memory_reading"]["detail"].as_str().unwrap().contains("every process"), "{told}");
}

/// Without shares a sum over the limit proves nothing: the daemon says once that it cannot know, and drains
/// no session.
#[test]
fn a_sum_that_cannot_be_confirmed_drains_nobody_and_is_said() {
    let world = lacking("cgroup,smaps-rollup");
    eats(&world, "unsure", "64M", "anonymous 128", &[]);
    let watching = world.watch();
    let warning = watching.event("a warning", |event| event["kind"] == "health_warn");
    assert_eq!(warning["reason"], "memory_unreadable", "{warning}");
    read_between(&world, "unsure", 128 * MIB, 200 * MIB);
    assert_left_alone(&world, "unsure", world.pid("unsure"));
}
