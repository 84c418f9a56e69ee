//! What is known when a run has ended.

use crate::world::{World, shell};
use pinfold_core::exit::Exit;
use pinfold_core::ids::RunNumber;
use pinfold_shim::{Command, Contain, Start};
use std::time::Duration;

#[test]
fn a_run_knows_how_long_it_lived() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(shell(1, "sleep 0.3"));
    let exited = daemon.exited();
    assert_eq!(exited.ended.exit, Exit::Code(0));
    assert!(exited.ended.lived >= Duration::from_millis(300), "{:?}", exited.ended.lived);
}

#[test]
fn the_last_lines_are_found_from_the_end() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(shell(1, "seq 1 100000"));
    daemon.exited();
    let entries = pinfold_shim::log::tail(&world.opening("api").log, 3, None).unwrap();
    let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.bytes.clone()).collect();
    assert!(bytes.ends_with(b"\n99998\n99999\n100000\n"));
    assert!(bytes.len() < 200_000, "{}", bytes.len());
}

/// If a run can have no group that counts memory, nothing can know why it was killed, and the shim does not say so.
#[test]
fn a_run_that_the_kernel_killed_for_memory_is_told_as_such() {
    let world = World::new();
    let mut daemon = world.shim("api");
    // `tail` keeps the last line of an endless file without lines.
    let hungry = "read line; exec tail /dev/zero";
    daemon.start(Start { contain: Contain::GroupAndMemory, ..shell(1, hungry) });
    let (_, pid, _) = daemon.started();
    // Asked of the kernel, not of the program under test.
    let known = counts_memory();
    assert_eq!(pinfold_shim::groups::probe().memory.is_some(), known);
    if known {
        limit_group_of(pid);
        daemon.send(&Command::CloseInput { run: RunNumber(1) });
    } else {
        let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    let exited = daemon.exited();
    assert_eq!((exited.ended.exit, exited.ended.oom_killed), (Exit::Signal(9), known));

    // SIGKILL alone does not count as one.
    daemon.start(Start { contain: Contain::GroupAndMemory, ..shell(2, "kill -9 $$") });
    let exited = daemon.exited();
    assert_eq!((exited.ended.exit, exited.ended.oom_killed), (Exit::Signal(9), false));
}

/// Whether a group that counts memory can be made beside one that can be killed at once; tried by making both.
fn counts_memory() -> bool {
    let groups = crate::world::read("/proc/self/cgroup".as_ref());
    let mounts = crate::world::read("/proc/self/mounts".as_ref());
    let make = |kind: &str, option: &str, group: &str, file: &str| {
        let is_it = |words: &[&str]| words[2] == kind && words[3].split(',').any(|word| word == option);
        let mount = mounts.lines().find_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            is_it(&words).then(|| words[1].to_owned())
        });
        let Some(mount) = mount else { return false };
        let folder = format!("{mount}{group}/pinfold-test-memory-{}", std::process::id());
        let made = std::fs::create_dir(&folder).is_ok();
        let has = made && std::path::Path::new(&folder).join(file).exists();
        _ = std::fs::remove_dir(&folder);
        has
    };
    let group =
        |mark: &str| groups.lines().find_map(|line| line.split_once(mark).map(|(_, path)| path.to_owned()));
    let Some(second) = group("0::") else { return false };
    let first = group(":memory:");
    make("cgroup2", "rw", &second, "cgroup.kill")
        && (make("cgroup2", "rw", &second, "memory.events")
            || first.is_some_and(|first| make("cgroup", "memory", &first, "memory.oom_control")))
}

/// Sets the limit that pinfold never sets.
fn limit_group_of(pid: u32) {
    let groups = crate::world::read(format!("/proc/{pid}/cgroup").as_ref());
    let first = groups.lines().find_map(|line| line.split_once(":memory:").map(|(_, path)| path.to_owned()));
    let second = groups.lines().find_map(|line| line.strip_prefix("0::").map(str::to_owned));
    let limited = match (first, second) {
        (Some(path), _) => {
            std::fs::write(format!("/sys/fs/cgroup/memory{path}/memory.limit_in_bytes"), "50000000")
        }
        (None, Some(path)) => std::fs::write(format!("/sys/fs/cgroup{path}/memory.max"), "50000000"),
        (None, None) => panic!("no control groups: {groups}"),
    };
    limited.unwrap();
}
