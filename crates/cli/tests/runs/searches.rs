//! Full-text search through the real binaries: what is found at once, after a death, and by which caller.

use crate::inbox::PARROT;
use crate::world::World;
use serde_json::Value;

fn found(world: &World, text: &str) -> Vec<(String, String)> {
    let hits = world.json(&["search", text]);
    let word = |hit: &Value, key: &str| hit[key].as_str().unwrap().to_owned();
    hits.as_array().unwrap().iter().map(|hit| (word(hit, "session"), word(hit, "kind"))).collect()
}

fn pair(session: &str, kind: &str) -> (String, String) {
    (session.to_owned(), kind.to_owned())
}

#[test]
fn what_was_said_is_found_over_deaths_and_not_after_its_removal() {
    let world = World::new();
    for name in ["one", "two"] {
        let options = ["--mode", "on-demand", "--turns", "done", "--idle", "1h"];
        world.ok(&[&["new", name], &options[..], &["--", "sh", "-c", PARROT]].concat());
        world.ok(&["send", name, "the needle", "--wait", "240s"]);
    }
    let mut all = found(&world, "needle");
    all.sort();
    let both = [pair("one", "answer"), pair("one", "message"), pair("two", "answer"), pair("two", "message")];
    assert_eq!(all, both);
    world.kill_daemon();
    // Neither a missing index nor a file that is not one matters.
    std::fs::write(world.home.join("search.db"), "rubbish").unwrap();
    std::fs::remove_file(world.home.join("search.db-wal")).unwrap_or_default();
    world.ok(&["send", "two", "another needle", "--wait", "240s"]);
    assert_eq!(found(&world, "needle").len(), 6);
    assert_eq!(found(&world, "\u{1b}[2J needle *").len(), 0);
    world.ok(&["archive", "two"]);
    assert_eq!(found(&world, "needle").len(), 6, "the archive keeps everything");
    world.ok(&["rm", "two", "--yes"]);
    let mut rest = found(&world, "needle");
    rest.sort();
    assert_eq!(rest, [pair("one", "answer"), pair("one", "message")]);
}

#[test]
fn a_run_finds_only_what_it_may_read() {
    let world = World::new();
    world.ok(&["new", "secret", "--mode", "on-demand", "--", "cat"]);
    world.ok(&["stop", "secret"]);
    world.ok(&["send", "secret", "the needle of another"]);
    let script = format!("{} --json search needle; exec sleep 100000", world.binary.display());
    world.ok(&["new", "agent", "--mode", "always", "--", "sh", "-c", &script]);
    let said = world.printed("agent", "[");
    assert!(!said.contains("another"), "{said}");
    assert_eq!(found(&world, "needle"), [pair("secret", "message")]);
}
