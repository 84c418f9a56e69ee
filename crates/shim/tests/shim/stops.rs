//! How runs are ended, with everything they started.

use crate::rights::needs;
use crate::world::{Ends, PATIENCE, World, children_of, lives, shell, wait_for_end};
use pinfold_core::exit::Exit;
use pinfold_core::ids::RunNumber;
use pinfold_shim::{Command, Contain, Report, Start};
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};

/// Prints its pid, ignores SIGTERM, and has a grandchild that left its session and cleared its environment.
const STUBBORN: &str = "trap '' TERM
setsid env -i sh -c 'trap \"\" TERM; (echo grandchild $$; exec sleep 1000 </dev/null) & wait' &
while :; do sleep 1000; done";

fn grandchild(daemon: &mut crate::world::Daemon) -> u32 {
    let mut text = String::new();
    daemon.expect("the grandchild's pid", |report| {
        if let Report::Output(output) = report {
            text.push_str(&String::from_utf8_lossy(&output.bytes));
        }
        let (line, _) = text.split_once('\n')?;
        line.strip_prefix("grandchild ")?.parse().ok()
    })
}

fn a_stubborn_tree_is_ended(contain: Contain) {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(Start { contain, ..shell(1, STUBBORN) });
    let (_, pid, _) = daemon.started();
    let grandchild = grandchild(&mut daemon);
    let grace = Duration::from_millis(300);
    let begin = Instant::now();
    daemon.send(&Command::Stop { run: RunNumber(1), grace });
    let exited = daemon.exited();
    let took = begin.elapsed();
    assert!(took >= grace && took < grace + Duration::from_secs(30), "{took:?}");
    assert_eq!((exited.ended.exit, exited.ended.forced), (Exit::Signal(9), true));
    assert!(!lives(pid) && !lives(grandchild));
    assert_eq!(children_of(daemon.child.id()), [] as [u32; 0]);
}

#[test]
fn a_tree_that_ignores_sigterm_is_ended_within_the_grace_and_a_second() {
    a_stubborn_tree_is_ended(Contain::Group);
}

#[test]
fn a_tree_is_ended_without_a_control_group_too() {
    a_stubborn_tree_is_ended(Contain::Reaper);
}

#[test]
fn a_tree_is_ended_with_a_memory_group_too() {
    a_stubborn_tree_is_ended(Contain::GroupAndMemory);
}

#[test]
fn an_agent_that_obeys_is_not_forced() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(shell(1, "trap 'exit 4' TERM; echo ready; while :; do sleep 0.05; done"));
    daemon.printed("ready");
    daemon.send(&Command::Stop { run: RunNumber(1), grace: PATIENCE });
    let exited = daemon.exited();
    assert_eq!((exited.ended.exit, exited.ended.forced), (Exit::Code(4), false));
}

#[test]
fn a_second_stop_with_a_shorter_grace_takes_the_shorter() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(shell(1, STUBBORN));
    grandchild(&mut daemon);
    let begin = Instant::now();
    // In one write: the shim reads the third before it acts on the second.
    let mut stops = Vec::new();
    for grace in [Duration::from_secs(1000), Duration::ZERO, Duration::from_secs(1000)] {
        Command::Stop { run: RunNumber(1), grace }.encode(&mut stops);
    }
    assert_eq!(rustix::io::write(&daemon.link, &stops), Ok(stops.len()));
    assert!(daemon.exited().ended.forced);
    assert!(begin.elapsed() < PATIENCE);
}

#[test]
fn what_an_agent_leaves_behind_is_ended_before_its_exit_is_told() {
    for contain in [Contain::Group, Contain::Reaper] {
        let world = World::new();
        let mut daemon = world.shim("api");
        let script = "setsid env -i sh -c 'trap \"\" TERM HUP; echo grandchild $$; exec sleep 1000' & \
                      read line; exit 6";
        daemon.start(Start { contain, ..shell(1, script) });
        let grandchild = grandchild(&mut daemon);
        daemon.send(&Command::CloseInput { run: RunNumber(1) });
        let exited = daemon.exited();
        assert_eq!((exited.ended.exit, exited.ended.forced), (Exit::Code(6), false));
        assert!(!lives(grandchild));
    }
}

#[test]
fn sigterm_to_the_shim_stops_its_agent_gracefully_and_frees_the_locks() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(shell(1, "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done"));
    daemon.printed("ready");
    kill_process(Pid::from_child(&daemon.child), Signal::TERM).unwrap();
    let exited = daemon.exited();
    assert_eq!((exited.ended.exit, exited.ended.forced), (Exit::Code(0), false));
    assert_eq!(daemon.gone().last(), Some(&Report::Leaving));
    assert!(world.holder("api").is_none());
}

#[test]
fn killing_the_shim_ends_its_agent_and_the_next_holder_ends_the_rest() {
    for contain in [Contain::Group, Contain::Reaper] {
        let world = World::new();
        let mut daemon = world.shim("api");
        // The grandchild keeps the marker: without a control group nothing else identifies it.
        let script = "setsid sh -c 'echo grandchild $$; exec sleep 1000' & while :; do sleep 1000; done";
        daemon.start(Start { contain, ..shell(1, script) });
        let (_, pid, fence) = daemon.started();
        let grandchild = grandchild(&mut daemon);
        daemon.child.kill().unwrap();
        daemon.child.ended();
        wait_for_end(pid);
        let guard = world.lock("api");
        assert!(!lives(pid) && !lives(grandchild), "{contain:?}");
        assert!(guard.fence().0 > fence);
    }
}

#[test]
fn an_agent_starts_also_where_the_kernel_ends_what_is_forked_into_a_group() {
    needs!(Groups);
    // Linux 6.18 does that below a group in which something was killed before: the shim is put into one.
    let unified = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];
    let root = unified.into_iter().find(|root| std::path::Path::new(root).join("cgroup.procs").exists());
    let group = std::path::Path::new(root.unwrap()).join(format!("pinfold-test-{}", std::process::id()));
    std::fs::create_dir(&group).unwrap();
    let world = World::new();
    let mut daemon = world.shim("api");
    let prepared = std::fs::write(group.join("cgroup.kill"), "1")
        .and_then(|()| std::fs::write(group.join("cgroup.procs"), daemon.child.id().to_string()));
    daemon.start(shell(1, "echo ready; read line; exit 5"));
    daemon.printed("ready");
    daemon.send(&Command::CloseInput { run: RunNumber(1) });
    let exited = daemon.exited();
    daemon.send(&Command::Release);
    daemon.gone();
    std::fs::remove_dir(&group).unwrap();
    prepared.unwrap();
    assert_eq!(exited.ended.exit, Exit::Code(5));
}

#[test]
fn a_shim_that_is_killed_at_any_moment_leaves_a_lock_that_can_be_taken_and_no_agent() {
    let world = World::new();
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    for round in 1..=40 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let guard = world.lock("api");
        let (mut child, mut link) =
            pinfold_shim::client::spawn(&world.opening("api"), &[(&world.folder, &guard)]).unwrap();
        let contain = if round % 2 == 0 { Contain::Group } else { Contain::Reaper };
        let start = Start { contain, ..shell(round, "setsid sleep 1000 & while :; do sleep 1000; done") };
        let run_id = start.run_id.clone();
        for command in [
            Command::Hello { generation: round },
            Command::Go,
            Command::Start(Box::new(start)),
            Command::Stop { run: RunNumber(round), grace: PATIENCE },
        ] {
            link.send(&command).unwrap();
        }
        // Whatever it says until then; only the moment counts.
        let until = Instant::now() + Duration::from_micros(random >> 50);
        while let Ok(Some(_)) = link.receive(Some(until)) {}
        child.kill().unwrap();
        child.ended();
        drop(guard.surrender());
        drop(world.lock("api").release());
        assert_eq!(marked(&run_id), [] as [u32; 0], "round {round}");
    }
}

/// Returns the living processes that carry the name of a run.
pub(crate) fn marked(run_id: &str) -> Vec<u32> {
    let mark = format!("PINFOLD_RUN={run_id}");
    let all = std::fs::read_dir("/proc").unwrap();
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let carries = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes()) && lives(*pid)
    };
    pids.filter(carries).collect()
}
