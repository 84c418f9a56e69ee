//! Whom a shim takes for its daemon.

use crate::world::{PATIENCE, World};
use pinfold_shim::{Command, Report};
use std::time::Instant;

#[test]
fn a_generation_far_above_the_last_is_made_up() {
    let world = World::new();
    let daemon = world.shim("api");
    for generation in [1 << 33, 1 << 63, u64::MAX] {
        let mut link = world.connect("api", generation);
        let answer = link.receive(Some(Instant::now() + PATIENCE)).unwrap();
        assert_eq!(answer, None, "{generation}");
    }
    let mut link = world.connect("api", (1 << 32) - 1);
    let answer = link.receive(Some(Instant::now() + PATIENCE)).unwrap();
    assert!(matches!(answer, Some(Report::Welcome(_))), "{answer:?}");
    link.send(&Command::Release).unwrap();
    drop(daemon);
}

#[test]
fn a_daemon_is_who_has_the_lock_of_the_home() {
    let world = World::new();
    let daemon = world.shim("api");
    world.lose_home();
    let mut link = world.connect("api", 2);
    assert_eq!(link.receive(Some(Instant::now() + PATIENCE)).unwrap(), None);
    // The lock is looked for by its path too: a file that was made anew counts.
    world.take_home_anew();
    let mut link = world.connect("api", 2);
    let answer = link.receive(Some(Instant::now() + PATIENCE)).unwrap();
    assert!(matches!(answer, Some(Report::Welcome(_))), "{answer:?}");
    link.send(&Command::Release).unwrap();
    drop(daemon);
}
