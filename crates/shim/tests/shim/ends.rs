//! What is known when a run has ended.

use crate::world::{World, shell};
use pinfold_core::exit::Exit;
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
