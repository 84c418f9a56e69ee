//! What an orderly end leaves behind.

use crate::world::World;

#[test]
fn after_down_the_database_alone_is_whole() {
    let world = World::new();
    world.ok(&["new", "kept", "--mode", "on-demand", "--", "cat"]);
    world.ok(&["send", "kept", "acknowledged"]);
    // A client that follows has the database open until the daemon is gone.
    let _following = world.watch();
    world.ok(&["down"]);
    assert!(!world.home.join("pinfold.db-wal").exists(), "a log is left");

    let mut copy = World::new();
    copy.home = copy.path("copy");
    std::fs::create_dir(&copy.home).unwrap();
    std::fs::copy(world.home.join("pinfold.db"), copy.home.join("pinfold.db")).unwrap();
    assert_eq!(copy.json(&["inbox", "kept"])[0]["text"], "acknowledged");
    copy.ok(&["down"]);
}
