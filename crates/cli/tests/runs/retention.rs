//! What is older than `[retention]` allows is forgotten, and that is said.

use crate::world::World;
use pinfold_core::{EventKind, Wall};
use pinfold_store::{AuditEvent, Batch, Store};
use serde_json::{Map, Value, json};
use std::os::unix::fs::DirBuilderExt;
use std::time::{SystemTime, UNIX_EPOCH};

/// A home with events of so many days ago, each of a size.
fn world_with(count: u32, days: u64, bytes: usize) -> World {
    let world = World::new();
    std::fs::DirBuilder::new().mode(0o700).create(&world.home).unwrap();
    let store = Store::open(&world.home.join("pinfold.db"), &pinfold_store::Options::default()).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let at = Wall(i64::try_from(now).unwrap() - i64::try_from(days * 86_400_000).unwrap());
    let word = Value::from("x".repeat(bytes));
    let mut batch = Batch::new();
    for number in 0..count {
        let data = Map::from_iter([("word".to_owned(), word.clone())]);
        let (kind, why) = (EventKind::HealthWarn, format!("number {number}"));
        batch.event(AuditEvent { at, session: None, run: None, kind, why, data });
    }
    store.commit(batch).wait().unwrap();
    drop(store);
    // No daemon ever had this home, so it is asked about.
    assert_eq!(world.run(&["--trust", "--no-start", "ls"]).code, 69);
    world
}

fn configured(world: World, retention: &str) -> World {
    std::fs::write(world.home.join("config.toml"), format!("[retention]\n{retention}\n")).unwrap();
    world
}

#[test]
fn old_events_are_forgotten_when_the_daemon_starts_and_that_is_said() {
    let world = world_with(1200, 401, 10);
    world.ok(&["up"]);
    let pruned = world.watch().event("what was forgotten", |event| event["kind"] == "pruned");
    assert_eq!(
        (&pruned["events"], &pruned["runs"], &pruned["messages"]),
        (&json!(1200), &json!(0), &json!(0))
    );
    assert_eq!(
        pruned["why"],
        "1200 events, 0 runs and 0 messages were forgotten: they were older than [retention] allows"
    );
    let left = world.events();
    assert_eq!(
        (&left[0]["seq"], &left[0]["kind"]),
        (&json!(1201), &json!("daemon_started")),
        "no number is used again"
    );
}

#[test]
fn what_is_young_enough_or_kept_for_ever_stays() {
    for (days, retention) in [(399, ""), (4000, "events = \"off\"")] {
        let world = configured(world_with(20, days, 10), retention);
        world.ok(&["up"]);
        // The daemon looks once at its start; a verb behind it that writes comes after that or beside it.
        world.ok(&["new", "a", "--mode", "on-demand", "--", "true"]);
        world.ok(&["down"]);
        world.ok(&["up"]);
        assert_eq!(world.events()[0]["seq"], 1, "{retention}");
    }
}

#[test]
fn past_its_size_the_oldest_events_go_and_the_newest_stay() {
    let world = configured(world_with(3000, 1, 1000), "size = \"2M\"");
    world.ok(&["up"]);
    let pruned = world.watch().event("what was forgotten", |event| event["kind"] == "pruned");
    assert_eq!(pruned["reason"], "size", "{pruned}");
    let gone = pruned["events"].as_u64().unwrap();
    assert!((1000..=2100).contains(&gone), "{pruned}");
    assert_eq!(world.events()[0]["seq"], gone + 1);
}
