//! The daemon's log: everything it can tell, and no secret among it.

use crate::security::secrets::{NOWHERE, files_with};
use crate::world::{World, finish};
use std::path::{Path, PathBuf};

const IN_COMMAND: &str = "--token=swordfish-swordfish";
const IN_VALUE: &str = "open-sesame-open-sesame";

/// Whether a secret is kept in this file on purpose: the database has the command, a private file the value,
/// and a lock's record names its holder by its command line.
fn is_kept_on_purpose(home: &Path, file: &Path, secret: &str) -> bool {
    let places: &[&str] = if secret == IN_VALUE { &["env-values/"] } else { &["pinfold.db", "locks/"] };
    let below = file.strip_prefix(home).unwrap().to_str().unwrap();
    places.iter().any(|place| below.starts_with(place))
}

fn told(world: &World, secret: &str) -> Vec<PathBuf> {
    let found = files_with(&world.home, secret).into_iter();
    found.filter(|file| !is_kept_on_purpose(&world.home, file, secret)).collect()
}

/// A session with secrets that crashes, is restarted, gets a message, is changed, refused and removed.
fn live(world: &World) {
    let value = format!("TOKEN={IN_VALUE}");
    let agent = "read line; exit 3";
    world.ok(&["up"]);
    let events = world.watch();
    world.ok(&["new", "a", "--mode", "on-demand", "--env", &value, "--", "sh", "-c", agent, IN_COMMAND]);
    world.ok(&["send", "a", "hello"]);
    events.event("the end of its run", |event| event["kind"] == "run_exited");
    drop(events);
    world.ok(&["set", "a", "--env", &value, "--idle", "1s"]);
    world.ok(&["restart", "a"]);
    world.kill_daemon();
    world.ok(&["up"]);
    world.run(&["new", "b", "--env", &value, "--", "/no/such/program", IN_COMMAND]);
    world.ok(&["stop", "a"]);
}

#[test]
fn no_command_line_and_no_value_is_logged_at_any_level() {
    let world = World::new();
    std::fs::create_dir_all(&world.home).unwrap();
    std::fs::write(world.home.join("config.toml"), "[log]\nlevel = \"trace\"\n").unwrap();
    live(&world);
    let log = world.daemon_log();
    for words in ["DEBUG decided event=\"run\" why=", "TRACE acts", "session=\"a\"", "run=1"] {
        assert!(log.contains(words), "no {words} in\n{log}");
    }
    assert_eq!(told(&world, IN_COMMAND), NOWHERE);
    assert_eq!(told(&world, IN_VALUE), NOWHERE);
    world.ok(&["down"]);
    assert_eq!(told(&world, IN_VALUE), NOWHERE);
}

/// The log of a daemon after a session has run, with this level in its configuration and environment.
fn logged(level: &str, environment: &str) -> String {
    let world = World::new();
    std::fs::create_dir_all(&world.home).unwrap();
    std::fs::write(world.home.join("config.toml"), format!("[log]\nlevel = \"{level}\"\n")).unwrap();
    assert_eq!(finish(world.command(&["up"]).env("RUST_LOG", environment)).code, 0);
    world.ok(&["new", "a", "--", "sleep", "1000"]);
    world.daemon_log()
}

#[test]
fn the_file_says_how_much_is_logged_and_the_environment_instead_of_it() {
    let usual = logged("info", "");
    assert!(usual.contains(" INFO  daemon ") && !usual.contains("decided"), "{usual}");
    assert_eq!(logged("error", ""), "");
    assert!(logged("error", "pinfold_daemon=debug").contains(" DEBUG decided "));
    let refused = logged("info", "all of it, please=yes");
    assert!(refused.contains(" WARN  RUST_LOG is not understood") && refused.contains(" is up"), "{refused}");
}
