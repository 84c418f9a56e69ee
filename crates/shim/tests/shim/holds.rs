//! Locks that a living shim takes for its run, and releases with it.

use crate::world::{PATIENCE, World, command, shell, wait_until};
use pinfold_core::ids::RunNumber;
use pinfold_lock::{Guard, Request};
use pinfold_shim::client::lend;
use pinfold_shim::{Command, Report};
use std::time::{Duration, Instant};

const RUN: RunNumber = RunNumber(1);

pub(crate) fn other(world: &World, name: &str) -> Guard {
    let until = Instant::now() + PATIENCE;
    world.folder.acquire_until(&World::session(name), &Request::default(), until).unwrap()
}

pub(crate) fn held(daemon: &mut crate::world::Daemon) -> Vec<String> {
    daemon.expect("Held", |report| match report {
        Report::Held { resources, .. } => Some(resources.clone()),
        _ => None,
    })
}

#[test]
fn a_living_shim_takes_more_locks_and_keeps_them_until_the_run_ends() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(shell(1, "read line"));
    let (_, pid, _) = daemon.started();
    let (one, two) = (other(&world, "vendor-1"), other(&world, "vendor-2"));
    let names = [one.resource().to_owned(), two.resource().to_owned()];
    daemon.link.hold(RUN, &[(&world.folder, &one), (&world.folder, &two)]).unwrap();
    assert_eq!(held(&mut daemon), names);
    drop((one.surrender(), two.surrender()));
    for name in ["vendor-1", "vendor-2"] {
        let holder = world.holder(name).unwrap();
        assert_eq!(holder.session.as_deref(), Some("api"), "{name}");
        // The process that it is held for, as in the session's own lock.
        assert_eq!(holder.holder.identity.unwrap().pid, pid, "{name}");
        assert!(holder.run.is_some(), "{name}");
    }
    // A newly started agent has none of them.
    daemon.send(&Command::CloseInput { run: RUN });
    daemon.exited();
    assert!(world.holder("vendor-1").is_none() && world.holder("vendor-2").is_none());
    daemon.start(command(2, &["/bin/true"]));
    daemon.exited();
}

#[test]
fn the_locks_of_a_shim_that_is_killed_are_free() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(shell(1, "read line"));
    daemon.started();
    let guard = other(&world, "vendor");
    daemon.link.hold(RUN, &[(&world.folder, &guard)]).unwrap();
    assert_eq!(held(&mut daemon).len(), 1);
    drop(guard.surrender());
    crate::world::kill(daemon.child.id());
    wait_until("the lock is free", || world.holder("vendor").is_none());
}

#[test]
fn what_cannot_be_held_is_not_named_and_a_run_that_is_gone_holds_nothing() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(shell(1, "read line"));
    daemon.started();
    let guard = other(&world, "vendor");
    // Its descriptors do not come along.
    let (locks, _) = lend(&[(&world.folder, &guard)]).unwrap();
    daemon.send(&Command::Hold { run: RUN, locks });
    assert_eq!(held(&mut daemon), [] as [String; 0]);
    daemon.link.hold(RunNumber(7), &[(&world.folder, &guard)]).unwrap();
    daemon.expect("NoSuchRun", |report| matches!(report, Report::NoSuchRun { .. }).then_some(()));
    // Descriptors that belong to no command are closed.
    let before = open_files(daemon.child.id());
    let (_, descriptors) = lend(&[(&world.folder, &guard)]).unwrap();
    let mut bytes = Vec::new();
    Command::Follow { on: true }.encode(&mut bytes);
    pinfold_kernel::socket::send_with(&daemon.link, &bytes, &descriptors).unwrap();
    daemon.let_settle();
    assert_eq!(open_files(daemon.child.id()), before);
    drop(guard);
    assert!(world.holder("vendor").is_none(), "nobody else has it");
    daemon.send(&Command::Stop { run: RUN, grace: Duration::from_secs(30) });
    daemon.exited();
}

fn open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}
