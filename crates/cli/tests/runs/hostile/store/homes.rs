//! Homes left by older versions, with what those versions said about them: this version says the same.
//!
//! Each was made by the binaries of a commit (schema 1: bc249cc, which had no messages yet; schema 2:
//! 481a7f6), in `/`, and stored beside the JSON that they gave for `show`, `inbox` and `events`. Fields may
//! have been added since; what was there still is, and equal.

use crate::world::World;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The field that differs on purpose: it now says in words how a run ended.
const RETOLD: &str = "why";

struct Home {
    world: World,
    told: Value,
}

impl Home {
    fn of(version: &str) -> Home {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/homes");
        let world = World::new();
        std::fs::create_dir(&world.home).unwrap();
        std::fs::set_permissions(&world.home, PermissionsExt::from_mode(0o700)).unwrap();
        std::fs::copy(fixtures.join(format!("{version}.db")), world.home.join("pinfold.db")).unwrap();
        std::fs::set_permissions(world.home.join("pinfold.db"), PermissionsExt::from_mode(0o600)).unwrap();
        // The home was not made here.
        world.ok(&["--trust", "up"]);
        let told = std::fs::read_to_string(fixtures.join(format!("{version}.json"))).unwrap();
        Home { world, told: serde_json::from_str(&told).unwrap() }
    }

    /// The differences between what was said then and now.
    fn differences(&self) -> Vec<String> {
        let mut found = Vec::new();
        for session in list(&self.told["sessions"]) {
            let id = session["id"].as_str().unwrap();
            let mut now = self.world.show(id);
            assert!(now[RETOLD].is_string(), "{now}");
            now[RETOLD] = session[RETOLD].clone();
            compare(&format!("session {}", session["name"]), session, &now, &mut found);
            let (told, now) = (&self.told["inboxes"][id], self.world.json(&["inbox", id, "-n", "all"]));
            compare_rows("message", list(told), list(&now), &mut found);
        }
        let now = self.world.json(&["events"]);
        compare_rows("event", list(&self.told["events"]), list(&now), &mut found);
        found
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// Rows keep their order; new ones come after them.
fn compare_rows(what: &str, told: &[Value], now: &[Value], found: &mut Vec<String>) {
    for (index, row) in told.iter().enumerate() {
        compare(&format!("{what} {index}"), row, now.get(index).unwrap_or(&Value::Null), found);
    }
}

/// Everything said then is said now; there may be more.
fn compare(what: &str, told: &Value, now: &Value, found: &mut Vec<String>) {
    match told.as_object() {
        Some(fields) => {
            for (field, value) in fields {
                compare(&format!("{what}: {field}"), value, now.get(field).unwrap_or(&Value::Null), found);
            }
        }
        None if told != now => found.push(format!("{what}: {told} became {now}")),
        None => {}
    }
}

/// Checks that the home loads, says the same, can be written, and says the same once more.
fn tells_the_same(version: &str) {
    let home = Home::of(version);
    assert_eq!(home.differences(), [""; 0]);
    home.world.ok(&["new", "new", "--mode", "on-demand", "--", "cat"]);
    home.world.ok(&["down"]);
    assert_eq!(home.differences(), [""; 0], "after it was written by this version");
    assert_eq!(home.world.json(&["status"])["database"], serde_json::json!([]));
    home.world.ok(&["down"]);
}

#[test]
fn a_home_of_schema_1_tells_what_it_told() {
    tells_the_same("schema-1");
}

#[test]
fn a_home_of_schema_2_tells_what_it_told() {
    tells_the_same("schema-2");
}

#[test]
fn what_was_queued_in_an_older_home_is_delivered() {
    let home = Home::of("schema-2");
    home.world.ok(&["start", "child"]);
    let line = home.world.printed("child", "{\"id\":");
    assert!(line.contains("queued one"), "{line}");
    home.world.ok(&["down"]);
}
