//! What is older than `[retention]` allows is deleted, and that is said.

use crate::world::World;
use pinfold_core::{EventKind, Wall};
use pinfold_store::{AuditEvent, Batch, CheckPace, Reader, Store};
use serde_json::{Map, Value, json};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A home with this many events from `days` ago, each of this size.
fn world_with(count: u32, days: u64, bytes: usize) -> World {
    let world = World::new();
    std::fs::DirBuilder::new().mode(0o700).create(&world.home).unwrap();
    let store = Store::open(&world.home.join("pinfold.db"), &pinfold_store::StoreOptions::default()).unwrap();
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
    // No daemon ever had this home, so it needs to be trusted first.
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
        // The daemon prunes once at its start; a later verb that writes comes after that or at the same time.
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

/// Makes a file look as if it had been written this many days ago.
fn aged(path: &Path, days: u64) {
    let at = SystemTime::now() - Duration::from_secs(days * 86_400);
    std::fs::File::options().append(true).open(path).unwrap().set_modified(at).unwrap();
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn what_agents_printed_is_private_goes_by_age_but_for_the_newest_and_goes_with_rm() {
    let world = World::new();
    world.with_player("");
    world.play("talks");
    world.ok(&["send", "talks", "hello", "--wait", "240s"]);
    world.ok(&["new", "prints", "--mode", "once", "--", "echo", "hello"]);
    world.printed("prints", "hello");
    world.ok(&["stop", "talks"]);
    world.ok(&["stop", "prints"]);
    let folder = |name: &str| world.home.join("sessions").join(world.show(name)["id"].as_str().unwrap());
    let (talks, prints) = (folder("talks"), folder("prints"));
    let tapes = files(&talks.join("tape"));
    let log = prints.join("output.log");
    assert_eq!(tapes.len(), 1, "{tapes:?}");
    for file in files(&world.home.join("sessions")) {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", file.display());
    }
    world.ok(&["down"]);
    let older = ["output.log.1", "output.log.2"].map(|name| prints.join(name));
    for (file, days) in older.iter().zip([399, 401]) {
        std::fs::copy(&log, file).unwrap();
        aged(file, days);
    }
    aged(&log, 1000);
    aged(&tapes[0], 1000);
    world.ok(&["up"]);
    world.until("the oldest is gone", || (!older[1].exists()).then_some(()));
    assert!(older[0].exists() && log.exists() && tapes[0].exists());
    for (name, folder) in [("talks", talks), ("prints", prints)] {
        world.ok(&["archive", name]);
        world.ok(&["rm", name, "--yes"]);
        world.until("nothing is left", || files(&folder).is_empty().then_some(()));
    }
}

/// Waits for something in the database that has no event.
fn until(what: &str, world: &World, holds: impl Fn(&Reader) -> bool) {
    let (reader, begun) = (Reader::open(&world.home.join("pinfold.db")).unwrap(), Instant::now());
    while !holds(&reader) {
        assert!(begun.elapsed() < crate::processes::PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_daemon_that_is_killed_while_it_forgets_leaves_nothing_half_and_the_next_one_tells_of_all() {
    let world = world_with(20_000, 401, 10);
    for round in 1..=3 {
        world.ok(&["up"]);
        until("some of it is gone", &world, |reader| {
            reader.complete_from().unwrap().is_some_and(|from| from.seq > 2_000 * round)
        });
        world.kill_daemon();
        let store =
            Store::open(&world.home.join("pinfold.db"), &pinfold_store::StoreOptions::default()).unwrap();
        let mut reader = store.reader().unwrap();
        let (gone, left) = (reader.untold().unwrap().tally.events, reader.complete_from().unwrap().unwrap());
        let told = !world_told(&reader).is_empty();
        assert!(told || left.seq == gone + 1, "{gone} are gone, and all from {} on are there", left.seq);
        assert_eq!(reader.check(&CheckPace::at_once()).unwrap(), [""; 0]);
    }
    world.ok(&["up"]);
    let pruned = world.watch().event("what was forgotten", |event| event["kind"] == "pruned");
    assert_eq!(pruned["events"], 20_000, "{pruned}");
}

fn world_told(reader: &Reader) -> Vec<u64> {
    let events = reader.events(&pinfold_store::EventQuery { after: 20_000, ..Default::default() }).unwrap();
    events.iter().filter(|event| event.kind == EventKind::Pruned).map(|event| event.seq).collect()
}

#[test]
fn what_went_is_told_once_a_day_and_events_say_from_where_on_all_are_there() {
    let world = world_with(1200, 401, 10);
    world.ok(&["up"]);
    world.watch().event("what was forgotten", |event| event["kind"] == "pruned");
    let said = world.ok(&["events"]).stderr;
    assert!(said.starts_with("every event from 1201 on is there ("), "{said}");
    let said = world.ok(&["events", "-n", "1"]).stderr;
    assert!(!said.contains("every event"), "nothing is missing from these: {said}");
    // More is pruned, and reported tomorrow.
    world.ok(&["down"]);
    let store = Store::open(&world.home.join("pinfold.db"), &pinfold_store::StoreOptions::default()).unwrap();
    let config = world.home.join("config.toml");
    std::fs::write(config, "[retention]\nevents = \"1s\"\n").unwrap();
    let mut batch = Batch::new();
    for _ in 0..5 {
        let (kind, why, data) = (EventKind::HealthWarn, "old".to_owned(), Map::new());
        batch.event(AuditEvent { at: Wall(1), session: None, run: None, kind, why, data });
    }
    store.commit(batch).wait().unwrap();
    drop(store);
    // What comes before them is pruned first, and has to be old as well.
    let written = Instant::now();
    until("all of it is old", &world, |_| written.elapsed() > Duration::from_millis(1_100));
    world.ok(&["up"]);
    until("it is gone", &world, |reader| reader.untold().unwrap().tally.events >= 5);
    let told = world.events().iter().filter(|event| event["kind"] == "pruned").count();
    assert!(told <= 1, "{told}");
}

#[test]
fn the_key_of_a_message_that_was_forgotten_is_still_one_message() {
    let world = World::new();
    std::fs::DirBuilder::new().mode(0o700).create(&world.home).unwrap();
    let world = configured(world, "messages = \"1s\"");
    let chat = "while IFS= read -r line; do echo \"PINFOLD_DONE $line\"; done";
    world.ok(&["--trust", "new", "a", "--mode", "on-demand", "--turns", "done", "--", "sh", "-c", chat]);
    let sent = world.json(&["send", "a", "hello", "--key", "k", "--wait", "240s"]);
    assert_eq!(sent["state"], "done", "{sent}");
    let done = world.json(&["inbox", "a"]);
    assert_eq!(done.as_array().map(Vec::len), Some(1), "{done}");
    // It is old when the clock says so; the daemon looks when it starts.
    until("it is old", &world, |_| {
        let at = done[0]["done_at"].as_str().and_then(pinfold_api::time::moment).unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        i64::try_from(now).unwrap() > at + 1_000
    });
    world.kill_daemon();
    world.ok(&["up"]);
    until("it is gone", &world, |reader| reader.untold().unwrap().tally.messages == 1 || gone(reader));
    for words in
        [&["send", "a", "hello", "--key", "k"][..], &["send", "a", "b", "--key", "k", "--wait", "240s"]]
    {
        let again = world.json(words);
        assert_eq!((&again["id"], &again["state"]), (&sent["id"], &json!("done")), "{again}");
        assert_eq!((&again["pruned"], &again["text"]), (&json!(true), &json!("")), "{again}");
    }
    assert_eq!(world.json(&["inbox", "a"]), json!([]));
}

fn gone(reader: &Reader) -> bool {
    !reader.events(&Default::default()).unwrap().iter().all(|event| event.kind != EventKind::Pruned)
}
