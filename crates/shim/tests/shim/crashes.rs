//! The shim aborts at every step in turn. Whatever is left, there are never two agents, and the next holder
//! recovers.

use crate::world::{Ends, PATIENCE, World, kill, lives, read, shell, wait_for_end, welcome};
use pinfold_core::exit::Exit;
use pinfold_core::ids::RunNumber;
use pinfold_shim::client::{ShimConnection, spawn};
use pinfold_shim::{Command, Report, Start, crash};
use std::time::{Duration, Instant};

/// Returns everything a shim says until it is gone; an agent is killed as soon as it is started.
fn listen(link: &mut ShimConnection) -> Vec<Report> {
    let until = Instant::now() + PATIENCE;
    let mut said = Vec::new();
    loop {
        match link.receive(Some(until)) {
            Ok(Some(report)) => {
                if let Report::Started { process, .. } = report {
                    kill(process.pid);
                }
                if let Report::Exited(_) = report {
                    let _ = link.send(&Command::Release);
                }
                said.push(report);
            }
            Ok(None) | Err(pinfold_shim::client::ReceiveError::Kernel(_)) => return said,
            Err(error) => panic!("{error} after {said:?}"),
        }
    }
}

/// Returns the living agents of this world: they have its path in their arguments and lead their sessions,
/// unlike a shell that is just being forked.
fn agents(mark: &str) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap();
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let marked = |pid: &u32| {
        // In this order: a process that made itself a session leader has another command line by then.
        let leader = *pid != std::process::id() && leads(*pid);
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        leader && line.starts_with(b"/bin/sh") && String::from_utf8_lossy(&line).contains(mark) && lives(*pid)
    };
    pids.filter(marked).collect()
}

fn leads(pid: u32) -> bool {
    let stat = crate::world::read(format!("/proc/{pid}/stat").as_ref());
    let session =
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(3)?.parse().ok());
    session == Some(pid)
}

fn crash_at(point: &str) {
    let world = World::new();
    let mark = world.path("mark").display().to_string();
    let script = format!("setsid sleep 1000 & echo {mark}; while :; do sleep 1000; done");
    let guard = world.lock("api");
    let fence = guard.fence();
    let opening = pinfold_shim::client::Opening { crash_at: Some(point.into()), ..world.opening("api") };
    let (mut child, mut link) = spawn(&opening, &[(&world.folder, &guard)]).unwrap();
    let start = Start { repeats: true, ..shell(1, &script) };
    for command in [Command::Hello { generation: 1 }, Command::Go, Command::Start(Box::new(start))] {
        // The shim may already be gone.
        let _ = link.send(&command);
    }
    let said = listen(&mut link);
    let status = child.ended();
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(status.signal(), Some(6), "{point} was not passed: {said:?}");
    drop(guard.surrender());

    // A reported exit is recorded.
    let told = said.iter().any(|report| matches!(report, Report::Exited(_)));
    let records = world.records("api");
    assert!(!told || records.len() == 1, "{point}: {records:?}");

    // The next holder gets the lock, and nothing of the old run is alive then.
    let guard = world.lock("api");
    assert_eq!(agents(&mark), [] as [u32; 0], "{point}: before the next start");
    assert!(guard.fence() > fence, "{point}");
    let (child, mut link) = spawn(&world.opening("api"), &[(&world.folder, &guard)]).unwrap();
    link.send(&Command::Hello { generation: 2 }).unwrap();
    let seen = welcome(&mut link);
    drop(guard.surrender());
    assert_eq!(seen.exits, records, "{point}");
    let mut daemon = crate::world::Daemon { child, link, welcome: seen, passed: Vec::new() };
    daemon.send(&Command::Go);
    daemon.start(shell(2, &script));
    let (_, pid, _) = daemon.started();
    assert_eq!(agents(&mark), [pid], "{point}: after the next start");
    daemon.send(&Command::Stop { run: RunNumber(2), grace: Duration::from_secs(5) });
    assert_eq!(daemon.exited().ended.exit, Exit::Signal(15), "{point}");
    wait_for_end(pid);
    daemon.send(&Command::Release);
    daemon.gone();
}

#[test]
fn there_are_never_two_agents_wherever_the_shim_dies() {
    // No daemon acknowledges an end here, so the shim syncs it itself.
    let points = crash::POINTS.iter().chain(&["record.synced"]);
    let passed = points.map(|point| crash_at(point)).count();
    println!("{passed} crash points, 0 violations");
}

/// Starts a shim that records which steps it passes.
pub(crate) fn traced(world: &World) -> (crate::world::Daemon, std::path::PathBuf) {
    let trace = world.path("trace");
    let crash_at = Some(format!("trace:{}", trace.display()).into());
    let opening = pinfold_shim::client::Opening { crash_at, ..world.opening("api") };
    let guard = world.lock("api");
    let (child, mut link) = spawn(&opening, &[(&world.folder, &guard)]).unwrap();
    link.send(&Command::Hello { generation: 1 }).unwrap();
    let seen = welcome(&mut link);
    drop(guard.surrender());
    link.send(&Command::Go).unwrap();
    (crate::world::Daemon { child, link, welcome: seen, passed: Vec::new() }, trace)
}

/// Returns the steps between a step and the next one of another name.
pub(crate) fn between<'a>(trace: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    let after = trace.lines().skip_while(|step| *step != from);
    let steps: Vec<&str> = after.take_while(|step| *step != to).collect();
    assert!(!steps.is_empty() && trace.contains(to), "{from} and {to} are not among {trace}");
    steps
}

#[test]
fn an_end_that_no_daemon_has_stored_is_on_disk_before_the_locks_are_free() {
    let world = World::new();
    let (mut daemon, trace) = traced(&world);
    daemon.start(shell(1, "read line; exit 3"));
    daemon.started();
    // It ends while no daemon is there, and the shim leaves at once.
    daemon.send(&Command::CloseInput { run: RunNumber(1) });
    rustix::net::shutdown(&daemon.link, rustix::net::Shutdown::Both).unwrap();
    daemon.child.ended();
    let trace = read(&trace);
    let steps = between(&trace, "record.written", "leave.marked");
    assert!(steps.contains(&"record.synced"), "{steps:?} of {trace}");
}

#[test]
fn an_end_that_no_daemon_has_stored_is_on_disk_before_the_next_run() {
    let world = World::new();
    let (mut daemon, trace) = traced(&world);
    // An end is synced after 20 ms: the next start comes sooner, if not each time.
    for run in 1..=10 {
        daemon.start(shell(run, "exit 0"));
        daemon.exited();
    }
    let trace = read(&trace);
    let mut rest = trace.as_str();
    for run in 1..10 {
        rest = &rest[rest.find("record.written").unwrap()..];
        let steps = between(rest, "record.written", "start.fenced");
        assert!(steps.contains(&"record.synced"), "after run {run}: {steps:?} of {trace}");
        rest = &rest[rest.find("start.fenced").unwrap()..];
    }
}

/// Plays a run with a guest, whose shim aborts at a point.
fn crash_with_guest_at(point: &str) {
    let world = World::new();
    let guard = world.lock("api");
    let opening = pinfold_shim::client::Opening { crash_at: Some(point.into()), ..world.opening("api") };
    let (child, mut link) = spawn(&opening, &[(&world.folder, &guard)]).unwrap();
    link.send(&Command::Hello { generation: 1 }).unwrap();
    let seen = welcome(&mut link);
    drop(guard.surrender());
    let mut daemon = crate::world::Daemon { child, link, welcome: seen, passed: Vec::new() };
    daemon.send(&Command::Go);
    let mark = world.path("mark").display().to_string();
    daemon.start(crate::taped::taped(1, 1 << 20, &format!("echo {mark}; while :; do sleep 1000; done")));
    let (_, agent, _) = daemon.started();
    let visits = format!("echo {mark}; setsid sleep 1000 & read line");
    crate::guests::start_guest(&mut daemon, crate::guests::guest(1, &visits));
    // A guest that ends by itself passes the last point; the others abort before.
    let _ = daemon.link.send(&Command::GuestStop { run: RunNumber(1), guest: 1, grace: PATIENCE });
    let said = daemon.gone();
    wait_for_end(agent);
    let guests = said.iter().filter_map(|report| match report {
        Report::Guest(pinfold_shim::GuestReport::Started { pid, .. }) => Some(*pid),
        _ => None,
    });
    guests.for_each(wait_for_end);
    // The next holder gets the lock: no copy of it is left, and nothing of the run or its guest is alive.
    drop(world.lock("api"));
    assert_eq!(agents(&mark), [] as [u32; 0], "{point}");
}

#[test]
fn nothing_of_a_guest_is_left_wherever_the_shim_dies() {
    let points = crash::SOMETIMES.iter().filter(|point| point.starts_with("guest."));
    assert_eq!(points.map(|point| crash_with_guest_at(point)).count(), 4);
}
