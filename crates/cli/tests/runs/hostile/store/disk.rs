//! A full disk: what was acknowledged stays, and people can still look and stop.

use crate::processes::lives;
use crate::rights::needs;
use crate::world::World;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

const SOON: Duration = crate::processes::PATIENCE;

/// A file system of a few megabytes that is gone with the test.
pub(in crate::hostile) struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    fn new() -> SmallDisk {
        SmallDisk::with("size=14m")
    }

    pub(in crate::hostile) fn with(options: &str) -> SmallDisk {
        let folder = tempfile::tempdir().unwrap();
        let mount = ["-t", "tmpfs", "-o", options, "tmpfs"];
        let mounted = Command::new("mount").args(mount).arg(folder.path()).status().unwrap();
        assert!(mounted.success(), "a tmpfs is mounted");
        SmallDisk { folder }
    }

    pub(in crate::hostile) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Fills the disk to the last byte, including what was freed since.
    pub(in crate::hostile) fn fill(&self) {
        for (number, piece) in [4096, 64].into_iter().enumerate() {
            let filler = self.path(&format!("filler-{number}"));
            let mut file = std::fs::OpenOptions::new().append(true).create(true).open(filler).unwrap();
            while file.write(&vec![0; piece]).is_ok_and(|written| written > 0) {}
        }
    }

    /// Uses up the last inode.
    pub(super) fn use_up_inodes(&self) {
        let last = (0..).find(|number| std::fs::File::create(self.path(&format!("inode-{number}"))).is_err());
        assert!(last.is_some_and(|last| last > 0), "there was none");
    }

    pub(in crate::hostile) fn free(&self) {
        for entry in std::fs::read_dir(self.folder.path()).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if name.starts_with("filler-") || name.starts_with("inode-") {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        _ = Command::new("umount").arg("-l").arg(self.folder.path()).status();
    }
}

/// A home on a small disk, with a running agent and a session that only collects messages.
fn on(disk: &SmallDisk) -> World {
    let mut world = World::new();
    world.home = disk.path("home");
    world.ok(&["new", "runs", "--", "sleep", "1000"]);
    world.ok(&["new", "collects", "--mode", "on-demand", "--", "cat"]);
    world.ok(&["stop", "collects"]);
    world
}

pub(super) fn until(limit: Duration, holds: impl Fn() -> bool) -> bool {
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

/// Sends until nothing more is accepted; returns how many were acknowledged.
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
    needs!(Mount);
    let disk = SmallDisk::new();
    let world = on(&disk);
    assert!(until(SOON, || has_reserve(&world)));
    let pid = world.pid("runs");
    disk.fill();
    let acknowledged = send_all(&world);
    let why = world.within(SOON, &["why", "runs"]);
    assert_eq!(why.code, 0, "{why:?}");
    assert!(why.stdout.contains("the disk is full"), "{why:?}");
    for words in [&["ls"][..], &["status"], &["show", "runs"], &["logs", "runs"], &["inbox", "collects"]] {
        assert_eq!(world.within(SOON, words).code, 0, "{words:?}");
    }
    let stop = world.within(SOON, &["stop", "runs"]);
    assert_eq!(stop.code, 0, "{stop:?}");
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
    needs!(Mount);
    let disk = SmallDisk::new();
    let world = on(&disk);
    assert!(until(SOON, || has_reserve(&world)));
    let pid = world.pid("runs");
    // As if the reserve had been used up.
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

/// A disk without a byte left and without the reserve; the stop of `runs` has taken effect.
fn stopped_on_a_full_disk(disk: &SmallDisk) -> World {
    let world = on(disk);
    assert!(until(SOON, || has_reserve(&world)));
    let pid = world.pid("runs");
    _ = std::fs::remove_file(world.home.join("reserve"));
    disk.fill();
    send_all(&world);
    let stopped = world.within(SOON, &["stop", "runs"]);
    assert_eq!((stopped.code, lives(pid)), (0, false), "{stopped:?}");
    world
}

#[test]
fn a_stop_on_a_full_disk_is_not_forgotten_when_the_daemon_is_killed() {
    needs!(Mount);
    let disk = SmallDisk::new();
    let world = stopped_on_a_full_disk(&disk);
    world.kill_daemon();
    disk.free();
    world.ok(&["up"]);
    let seen = world.show("runs");
    assert_eq!((seen["state"].as_str(), &seen["crashes"]), (Some("stopped"), &0.into()), "{seen}");
    assert_eq!(world.events_of("runs", "stopped").len(), 1);
    // It counts once: a session started after that is not stopped again.
    world.ok(&["start", "runs"]);
    world.kill_daemon();
    world.ok(&["up"]);
    world.wait("runs", "running");
    world.ok(&["down"]);
}

#[test]
fn after_a_down_on_a_full_disk_what_was_stopped_stays_and_what_ran_runs() {
    needs!(Mount);
    let disk = SmallDisk::new();
    let world = stopped_on_a_full_disk(&disk);
    disk.free();
    assert!(until(SOON, || world.run(&["new", "again", "--", "sleep", "1000"]).code == 0));
    disk.fill();
    until(SOON, || send_all(&world) == 0);
    let down = world.within(SOON, &["down"]);
    assert_eq!(down.code, 0, "{down:?}");
    disk.free();
    world.ok(&["up"]);
    assert_eq!(world.show("runs")["state"], "stopped");
    world.wait("again", "running");
    let again = world.show("again");
    assert_eq!((again["state"].as_str(), &again["crashes"]), (Some("running"), &0.into()), "{again}");
    world.ok(&["down"]);
}

#[test]
fn a_send_that_meets_the_full_disk_is_taken_or_says_which_message_may_still_be_stored() {
    needs!(Mount);
    let disk = SmallDisk::new();
    let world = on(&disk);
    assert!(until(SOON, || has_reserve(&world)));
    _ = std::fs::remove_file(world.home.join("reserve"));
    disk.fill();
    let filler = "x".repeat(100_000);
    let mut answers = Vec::new();
    for round in 0..100 {
        let texts: Vec<String> = (0..3).map(|one| format!("{round}-{one} {filler}")).collect();
        let sent: Vec<_> = std::thread::scope(|scope| {
            let send = |text: &str| world.within(SOON, &["--json", "send", "collects", text]);
            let threads: Vec<_> = texts.iter().map(|text| scope.spawn(move || send(text))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let refused = sent.iter().any(|answer| answer.code != 0);
        answers.extend(texts.into_iter().zip(sent));
        if refused {
            break;
        }
    }
    assert!(answers.iter().any(|(_, answer)| answer.code != 0), "the disk is never full");
    disk.free();
    assert!(until(SOON, || world.run(&["send", "collects", "again"]).code == 0), "there is room again");
    let inbox = world.json(&["inbox", "collects"]);
    for (text, answer) in &answers {
        let row = inbox.as_array().unwrap().iter().find(|row| row["text"] == text.as_str());
        match (answer.code, row) {
            (0, Some(_)) | (1, None) => {}
            (1, Some(row)) => {
                let said = answer.error()["message"].as_str().unwrap().to_owned();
                assert!(said.contains(row["id"].as_str().unwrap()), "stored, and refused with: {said}");
            }
            (code, row) => panic!("{code}, stored: {}", row.is_some()),
        }
    }
    world.ok(&["down"]);
}

#[test]
fn a_holder_that_was_ended_on_a_full_disk_is_a_success() {
    needs!(Mount);
    let disk = SmallDisk::new();
    let world = on(&disk);
    let pid = world.pid("runs");
    world.kill_daemon();
    disk.fill();
    let ended = world.within(SOON, &["unlock", "session:runs", "--kill"]);
    assert_eq!((ended.code, lives(pid)), (0, false), "{ended:?}");
    disk.free();
}
