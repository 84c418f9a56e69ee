//! The shim aborts at every step in turn. Whatever is left, there are never two agents, and the next holder
//! finds its way.

use crate::world::{PATIENCE, World, kill, lives, shell, wait_for_end, welcome};
use pinfold_core::exit::Exit;
use pinfold_core::ids::RunNumber;
use pinfold_shim::client::{Link, spawn};
use pinfold_shim::{Command, Report, Start, crash};
use std::time::{Duration, Instant};

/// Everything a shim says until it is gone; an agent is killed as soon as it is started.
fn listen(link: &mut Link) -> Vec<Report> {
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

/// The agents of this world that live: they carry its path in their arguments and lead their sessions, which
/// a shell that is just being forked does not.
fn agents(mark: &str) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap();
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let marked = |pid: &u32| {
        // In this order: what leads a session by its own doing has another command line by then.
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
        // The shim may be gone already.
        let _ = link.send(&command);
    }
    let said = listen(&mut link);
    let status = child.wait().unwrap();
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(status.signal(), Some(6), "{point} was not passed: {said:?}");
    drop(guard.surrender());

    // An exit that was told is written.
    let told = said.iter().any(|report| matches!(report, Report::Exited(_)));
    let records = world.records("api");
    assert!(!told || records.len() == 1, "{point}: {records:?}");

    // The next holder gets the lock, and nothing of the old run lives then.
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
    for point in crash::POINTS {
        crash_at(point);
    }
    println!("{} crash points, 0 violations", crash::POINTS.len());
}
