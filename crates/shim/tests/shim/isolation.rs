//! What must not leak: descriptors, locks, names.

use crate::world::{Daemon, World, command, read, shell};
use pinfold_lock::{Request, Resource};
use pinfold_shim::client::spawn;
use pinfold_shim::{Command, Start};
use std::path::PathBuf;

fn descriptors(pid: u32) -> Vec<(u32, PathBuf)> {
    let folder = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let mut all: Vec<_> = folder
        .filter_map(|entry| {
            let entry = entry.unwrap();
            let number = entry.file_name().to_str().unwrap().parse().unwrap();
            // A descriptor that was closed meanwhile does not count.
            Some((number, std::fs::read_link(entry.path()).ok()?))
        })
        .collect();
    all.sort();
    all
}

#[test]
fn an_agent_has_its_three_descriptors_and_no_other() {
    let world = World::new();
    let mut daemon = world.shim("api");
    for run in 1..=3 {
        daemon.start(shell(run, "echo ready; read line"));
        let (_, pid, _) = daemon.started();
        // An agent that prints is loaded: a loader has files of its own open.
        daemon.printed("ready");
        let numbers: Vec<u32> = descriptors(pid).into_iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, [0, 1, 2]);
        daemon.send(&Command::CloseInput { run: pinfold_core::ids::RunNumber(run) });
        daemon.exited();
    }
}

#[test]
fn a_shim_keeps_no_descriptor_of_a_run_that_ended_or_of_its_parent() {
    let world = World::new();
    // A descriptor of the daemon that is not close-on-exec.
    let leak = std::fs::File::open("/dev/zero").unwrap();
    rustix::io::fcntl_setfd(&leak, rustix::io::FdFlags::empty()).unwrap();
    let mut daemon = world.shim("api");
    let before = descriptors(daemon.child.id());
    assert!(before.iter().all(|(_, to)| to.to_str() != Some("/dev/zero")), "{before:?}");
    for run in 1..=3 {
        daemon.start(command(run, &["true"]));
        daemon.exited();
        daemon.let_settle();
    }
    let after = descriptors(daemon.child.id());
    assert_eq!(before.len(), after.len(), "{after:?}");
}

#[test]
fn an_agent_is_given_the_locks_only_when_that_is_asked_for() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(Start { give_locks: true, ..command(1, &["cat"]) });
    let (_, pid, _) = daemon.started();
    let numbers = || descriptors(pid).into_iter().map(|(number, _)| number).collect::<Vec<u32>>();
    // A program that is being loaded has files of its own open for a moment.
    let mut looks = (0..1000).map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        numbers()
    });
    assert!(looks.any(|seen| seen == [0, 1, 2, 100]), "{:?}", numbers());
}

#[test]
fn of_twenty_shims_started_at_once_no_agent_has_anothers_lock() {
    let world = World::new();
    let mut daemons: Vec<Daemon> = std::thread::scope(|scope| {
        let world = &world;
        let started: Vec<_> = (0..20)
            .map(|number| {
                scope.spawn(move || {
                    let name = format!("s{number}");
                    let session = world.lock(&name);
                    let work = world.path(&format!("work/{number}"));
                    std::fs::create_dir(&work).unwrap();
                    let directory = Resource::Directory(work);
                    let directory = world.folder.acquire(&directory, &Request::default()).unwrap();
                    let locks = [(&world.folder, &session), (&world.folder, &directory)];
                    let (child, mut link) = spawn(&world.opening(&name), &locks).unwrap();
                    link.send(&Command::Hello { generation: 1 }).unwrap();
                    let welcome = crate::world::welcome(&mut link);
                    drop((session.surrender(), directory.surrender()));
                    let mut daemon = Daemon { child, link, welcome, passed: Vec::new() };
                    daemon.send(&Command::Go);
                    daemon.start(shell(1, "echo ready; read line"));
                    daemon
                })
            })
            .collect();
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let locks = world.path("locks");
    let mut names = Vec::new();
    for daemon in &mut daemons {
        let (_, pid, _) = daemon.started();
        daemon.printed("ready");
        assert_eq!(descriptors(pid).len(), 3);
        // A shim's exclusive locks are its own: each file is held by one shim.
        for (number, path) in descriptors(daemon.child.id()) {
            let info = read(format!("/proc/{}/fdinfo/{number}", daemon.child.id()).as_ref());
            if path.starts_with(&locks) && info.contains("FLOCK") && info.contains("WRITE") {
                names.push(path);
            }
        }
    }
    let count = names.len();
    names.sort();
    names.dedup();
    // The session and the two names of its directory.
    assert_eq!((names.len(), count), (60, 60));
}
