//! Shims of older versions, checked in as binaries: this version's daemon starts them, talks to them, and
//! finds them again.
//!
//! `tests/fixtures/shims` has one for each version with different frames, and says how each was made. They
//! are x86-64 programs.
#![cfg(target_arch = "x86_64")]

use crate::inbox::PARROT;
use crate::world::{GUARD, World, number};
use serde_json::{Value, json};
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/shims")
}

/// The commits whose shims are checked in, each with the checksum of the unpacked program.
fn known() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(fixtures().join("SHA256SUMS")).unwrap();
    let line = |line: &str| line.split_once("  ").map(|(sum, commit)| (commit.to_owned(), sum.to_owned()));
    let all: Vec<_> = text.lines().filter_map(line).collect();
    assert!(!all.is_empty(), "no shim is checked in");
    all
}

/// A world with this version's `pinfold` and an old `pinfold-shim`.
fn with_shim_of(commit: &str, sum: &str) -> World {
    let mut world = World::new();
    let bin = world.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let shim = bin.join("pinfold-shim");
    let mut unpack = Command::new("gzip");
    unpack
        .args(["-d", "-c"])
        .arg(fixtures().join(format!("{commit}.gz")))
        .stdout(File::create(&shim).unwrap());
    assert!(unpack.status().unwrap().success(), "the shim of {commit} cannot be unpacked");
    assert_eq!(checksum(&shim), sum, "the shim of {commit} is not the one that was checked in");
    std::fs::set_permissions(&shim, PermissionsExt::from_mode(0o755)).unwrap();
    let program = bin.join("pinfold");
    crate::program::link(&world.binary, &program);
    world.binary = program;
    world
}

fn checksum(file: &Path) -> String {
    let said = Command::new("sha256sum").arg(file).output().unwrap();
    String::from_utf8(said.stdout).unwrap().split(' ').next().unwrap().to_owned()
}

/// The program of a session's shim.
fn shim_of(world: &World, name: &str) -> PathBuf {
    std::fs::read_link(format!("/proc/{}/exe", number(&world.show(name)["shim_pid"]))).unwrap()
}

/// The facts that stay the same when one daemon replaces another.
fn facts(world: &World, name: &str) -> [Value; 4] {
    let session = world.show(name);
    ["pid", "shim_pid", "run", "fence"].map(|field| session[field].clone())
}

#[test]
fn every_old_shim_is_started_spoken_to_found_again_and_stopped() {
    for (commit, sum) in known() {
        let world = with_shim_of(&commit, &sum);
        is_served(&world);
        world.check_history();
        world.ok(&["down"]);
        world.assert_no_members();
    }
}

/// Start, message, answer, the daemon's death, adoption, stop, exit record.
fn is_served(world: &World) {
    let script = format!("{GUARD}{PARROT}");
    let options = ["--env", "ROOT", "--mode", "always", "--turns", "done"];
    world.ok(&[&["new", "chat"], &options[..], &["--", "sh", "-c", &script]].concat());
    world.wait("chat", "running");
    assert_eq!(shim_of(world, "chat"), world.path("bin/pinfold-shim"), "another shim was started");
    assert_eq!(world.ok(&["send", "chat", "one", "--wait", "240s"]).stdout, "one\n");
    let before = facts(world, "chat");
    world.kill_daemon();
    world.ok(&["up"]);
    world.wait("chat", "running");
    assert_eq!(facts(world, "chat"), before, "it was not adopted");
    assert_eq!(world.ok(&["send", "chat", "two", "--wait", "240s"]).stdout, "two\n");
    world.ok(&["stop", "chat"]);
    let exits = world.events_of("chat", "run_exited");
    assert_eq!(exits.len(), 1, "{exits:?}");
    assert_eq!((&exits[0]["run"], &exits[0]["verdict"]), (&before[2], &json!("clean")), "{exits:?}");
    exits_while_no_daemon_lives(world);
}

/// The shim records the exit of its agent, and a later daemon reads it.
fn exits_while_no_daemon_lives(world: &World) {
    let script = format!("{GUARD}echo ready; while test ! -e \"$ROOT/go\"; do sleep 0.01; done; exit 7");
    world.ok(&["new", "job", "--env", "ROOT", "--mode", "once", "--", "sh", "-c", &script]);
    world.printed("job", "ready");
    let agent = crate::world::held(world.pid("job"));
    world.kill_daemon();
    std::fs::write(world.path("go"), "").unwrap();
    agent.wait();
    world.ok(&["up"]);
    world.wait("job", "failed");
    let exits = world.events_of("job", "run_exited");
    assert_eq!((exits.len(), &exits[0]["code"]), (1, &json!(7)), "{exits:?}");
}
