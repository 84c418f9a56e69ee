//! A disk that is full: what was acknowledged stays, and people can still look and stop.

use crate::processes::lives;
use crate::world::World;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(20);

/// A file system of a few megabytes, gone with the test.
struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    fn new() -> SmallDisk {
        let folder = tempfile::tempdir().unwrap();
        let mount = ["-t", "tmpfs", "-o", "size=14m", "tmpfs"];
        let mounted = Command::new("mount").args(mount).arg(folder.path()).status().unwrap();
        assert!(mounted.success(), "mounting must be possible for this test");
        SmallDisk { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn fill(&self) {
        for (number, piece) in [4096, 64].into_iter().enumerate() {
            let mut file = std::fs::File::create(self.path(&format!("filler-{number}"))).unwrap();
            while file.write(&vec![0; piece]).is_ok_and(|written| written > 0) {}
        }
    }

    fn free(&self) {
        for number in 0..2 {
            _ = std::fs::remove_file(self.path(&format!("filler-{number}")));
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        _ = Command::new("umount").arg("-l").arg(self.folder.path()).status();
    }
}

/// A home on a small disk, with an agent that runs and a session that only collects.
fn on(disk: &SmallDisk) -> World {
    let mut world = World::new();
    world.home = disk.path("home");
    world.ok(&["new", "runs", "--", "sleep", "1000"]);
    world.ok(&["new", "collects", "--mode", "on-demand", "--", "cat"]);
    world.ok(&["stop", "collects"]);
    world
}

fn until(limit: Duration, holds: impl Fn() -> bool) -> bool {
    let end = Instant::now() + limit;
    while Instant::now() < end {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    holds()
}

fn has_reserve(world: &World) -> bool {
    world.home.join("reserve").exists()
}

/// Sends until no more is taken; how many were acknowledged.
fn send_all(world: &World) -> usize {
    let text = "x".repeat(100_000);
    for sent in 0..200 {
        if world.within(SOON, &["send", "collects", &text]).code != 0 {
            return sent;
        }
    }
    panic!("the disk is never full");
}

#[test]
fn on_a_full_disk_people_look_and_stop_and_nothing_acknowledged_is_lost() {
    let disk = SmallDisk::new();
    let world = on(&disk);
    // An older one keeps none.
    until(Duration::from_secs(3), || has_reserve(&world));
    let pid = world.pid("runs");
    disk.fill();
    let acknowledged = send_all(&world);
    let why = world.within(SOON, &["why", "runs"]);
    assert_eq!(why.code, 0, "{why:?}");
    assert!(why.stdout.contains("the disk is full"), "{why:?}");
    for words in [&["ls"][..], &["status"], &["show", "runs"], &["logs", "runs"], &["inbox", "collects"]] {
        assert_eq!(world.within(SOON, words).code, 0, "{words:?}");
    }
    assert_eq!(world.within(SOON, &["stop", "runs"]).code, 0);
    assert!(!lives(pid), "the agent lives");
    disk.free();
    assert!(until(SOON, || world.run(&["send", "collects", "again"]).code == 0), "there is room again");
    let inbox = world.json(&["inbox", "collects"]);
    let texts: Vec<usize> =
        inbox.as_array().unwrap().iter().map(|row| row["text"].as_str().unwrap().len()).collect();
    assert!(
        texts.iter().filter(|length| **length == 100_000).count() >= acknowledged,
        "{acknowledged}: {texts:?}"
    );
    assert!(world.events().iter().any(|event| event["kind"] == "disk_full"));
    assert_eq!(world.events_of("runs", "stopped").len(), 1);
    world.ok(&["down"]);
}

#[test]
fn when_nothing_can_be_recorded_a_stop_acts_first_and_is_recorded_later() {
    let disk = SmallDisk::new();
    let world = on(&disk);
    until(Duration::from_secs(3), || has_reserve(&world));
    let pid = world.pid("runs");
    // As if it had been used up.
    _ = std::fs::remove_file(world.home.join("reserve"));
    disk.fill();
    send_all(&world);
    let stopped = world.within(SOON, &["stop", "runs"]);
    assert_eq!(stopped.code, 0, "{stopped:?}");
    assert!(!lives(pid), "the agent lives");
    let why = world.within(SOON, &["why", "runs"]);
    assert!(why.stdout.contains("not recorded yet"), "{why:?}");
    disk.free();
    assert!(until(SOON, || !world.run(&["why", "runs"]).stdout.contains("not recorded")), "it is recorded");
    assert_eq!(world.events_of("runs", "stopped").len(), 1);
    world.ok(&["down"]);
}

#[test]
fn a_holder_that_was_ended_on_a_full_disk_is_a_success() {
    let disk = SmallDisk::new();
    let world = on(&disk);
    let pid = world.pid("runs");
    world.kill_daemon();
    disk.fill();
    let ended = world.within(SOON, &["unlock", "session:runs", "--kill"]);
    assert_eq!((ended.code, lives(pid)), (0, false), "{ended:?}");
    disk.free();
}
