//! The successor of a run that is to be repeated waits at its gate before it is asked for.

use crate::world::{Daemon, PATIENCE, World, children_of, kill, shell, wait_for_end};
use pinfold_core::exit::Exit;
use pinfold_core::ids::RunNumber;
use pinfold_shim::{Command, Start, Stdin};
use std::time::{Duration, Instant};

const STAYS: &str = "echo run $PINFOLD_RUN fence $PINFOLD_FENCE; while :; do sleep 1000; done";

/// A run that will be repeated.
fn repeated(run: u64) -> Start {
    Start { repeats: true, ..shell(run, STAYS) }
}

/// Kills the first run; returns the successor that waits then.
fn spare_of(daemon: &mut Daemon) -> u32 {
    daemon.start(repeated(1));
    let (_, pid, _) = daemon.started();
    daemon.printed("fence");
    kill(pid);
    assert_eq!(daemon.exited().ended.exit, Exit::Signal(9));
    let until = Instant::now() + PATIENCE;
    loop {
        if let [spare] = children_of(daemon.child.id())[..] {
            return spare;
        }
        assert!(Instant::now() < until, "nobody waits");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn the_successor_that_waits_becomes_the_next_run() {
    // It waits for a quarter of a second, which a loaded machine may need to ask for it; but not ten times in
    // a row.
    let taken = (0..10).any(|_| the_next_run_is_the_successor());
    assert!(taken, "no successor that waited was ever taken");
}

/// Returns whether the successor was still there when it was asked for; what holds in either case is
/// asserted.
fn the_next_run_is_the_successor() -> bool {
    let world = World::new();
    let mut daemon = world.shim("api");
    let spare = spare_of(&mut daemon);
    let start = repeated(2);
    let name = start.run_id.clone();
    daemon.start(start);
    let (run, pid, fence) = daemon.started();
    assert_eq!(run, 2);
    daemon.printed(&format!("run {name} fence {fence}"));
    assert_eq!(children_of(daemon.child.id()), [pid], "beside {spare}, which waited");
    pid == spare
}

#[test]
fn a_successor_that_nobody_asks_for_goes() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let spare = spare_of(&mut daemon);
    wait_for_end(spare);
    daemon.start(repeated(2));
    daemon.printed("fence");
}

#[test]
fn a_successor_goes_with_the_shim() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let spare = spare_of(&mut daemon);
    daemon.send(&Command::Release);
    daemon.gone();
    assert!(!crate::world::lives(spare));
    drop(world.lock("api"));
}

#[test]
fn a_start_of_another_kind_takes_no_successor() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let spare = spare_of(&mut daemon);
    daemon.start(Start { stdin: Stdin::Null, ..shell(2, "cat; echo no input") });
    daemon.printed("no input");
    assert_eq!(daemon.exited().ended.exit, Exit::Code(0));
    assert!(!crate::world::lives(spare));
}

#[test]
fn a_successor_that_somebody_killed_is_made_anew() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let spare = spare_of(&mut daemon);
    kill(spare);
    wait_for_end(spare);
    daemon.start(repeated(2));
    let (_, pid, _) = daemon.started();
    assert_ne!(pid, spare);
    daemon.printed("fence");
}

#[test]
fn a_run_that_was_stopped_or_is_not_to_be_repeated_has_no_successor() {
    let world = World::new();
    let mut daemon = world.shim("api");
    for (run, start) in [(1, repeated(1)), (2, shell(2, STAYS))] {
        daemon.start(start);
        let (_, pid, _) = daemon.started();
        match run {
            1 => daemon.send(&Command::Stop { run: RunNumber(1), grace: PATIENCE }),
            _ => kill(pid),
        }
        daemon.exited();
        daemon.let_settle();
        assert_eq!(children_of(daemon.child.id()), [] as [u32; 0], "run {run}");
    }
}
