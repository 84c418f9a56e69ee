//! Promises whose breaking would otherwise not show: marks, gaps, full rings, signals to the whole tree.

use crate::world::{Ends, World, kill, lives, shell};
use pinfold_core::exit::Exit;
use pinfold_core::ids::RunNumber;
use pinfold_shim::log::Stream;
use pinfold_shim::{Command, Report};
use std::time::{Duration, Instant};

#[test]
fn a_lock_that_was_given_back_in_order_costs_the_next_holder_no_search() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let start = shell(1, "exit 0");
    // A search for survivors of this run would find this process, and end it.
    let mut bystander = std::process::Command::new("sleep")
        .arg("1000")
        .env(pinfold_lock::RUN_VARIABLE, &start.run_id)
        .spawn()
        .unwrap();
    daemon.start(start);
    daemon.exited();
    daemon.send(&Command::Release);
    daemon.gone();
    drop(world.lock("api").release());
    let lived = bystander.try_wait().unwrap().is_none();
    kill(bystander.id());
    bystander.ended();
    assert!(lived, "the lock was searched for survivors although it was given back in order");
}

#[test]
fn a_restart_gap_is_two_seconds_and_not_more() {
    let shortest = (0..3).map(|_| gap()).min().unwrap();
    assert!(shortest > Duration::from_millis(1500) && shortest < Duration::from_secs(3), "{shortest:?}");
}

fn gap() -> Duration {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(shell(1, "exit 0"));
    daemon.exited();
    let begun = Instant::now();
    assert!(world.holder("api").is_some(), "the lock is free in the gap");
    assert_eq!(daemon.gone().last(), Some(&Report::Leaving));
    let gap = begun.elapsed();
    assert!(world.holder("api").is_none());
    gap
}

#[test]
fn a_stop_asks_the_whole_tree_and_not_only_the_agent() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let child = "(trap 'echo child-bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done) &";
    daemon.start(shell(1, &format!("trap : TERM; {child} wait; wait")));
    daemon.started();
    daemon.printed("ready");
    daemon.send(&Command::Stop { run: RunNumber(1), grace: Duration::from_secs(30) });
    let exited = daemon.exited();
    assert!(!exited.ended.forced, "{exited:?}");
    assert!(String::from_utf8_lossy(&world.log("api", Stream::Out)).contains("child-bye"));
}

#[test]
fn ends_that_no_daemon_has_stored_are_never_overwritten() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let mut run = 0;
    // A daemon that acknowledges nothing.
    let refused = loop {
        run += 1;
        assert!(run < 1000, "ends are overwritten, or their number has no bound");
        daemon.start(shell(run, "exit 7"));
        let refused = daemon.expect("an end or a refusal", |report| match report {
            Report::Exited(exited) if exited.run == RunNumber(run) => Some(false),
            Report::StartFailed { run: failed, .. } if *failed == RunNumber(run) => Some(true),
            _ => None,
        });
        if refused {
            break run;
        }
    };
    let records = world.records("api");
    assert_eq!(records.len() as u64, refused - 1, "an end was lost");
    assert_eq!((records[0].run, &records[0].ended.exit), (RunNumber(1), &Exit::Code(7)));
    daemon.send(&Command::Ack { run: RunNumber(refused - 1) });
    daemon.start(shell(refused + 1, "exit 0"));
    let (started, pid, _) = daemon.started();
    assert_eq!(started, refused + 1);
    daemon.exited();
    assert!(!lives(pid));
}
