//! The edge cases of locks: directories too deep for a record, inode numbers used again, locks that come free
//! at the wrong moment, records not written yet.

use crate::lines::Lines;
use crate::processes::{self, lives};
use crate::world::{Ends, World, finish_within, number};
use pinfold_lock::{Folder, Request, Resource, SessionName};
use rustix::fs::FlockOperation;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// Long enough for every verb here on the slowest machine.
const SOON: Duration = crate::processes::PATIENCE;

/// Runs a session in `directory`, then kills both its shim and its daemon; returns its child, which lives on.
fn survivor_in(world: &World, directory: &Path) -> u32 {
    let script = "setsid sleep 100000 & echo child $!; exec sleep 100000";
    let directory = directory.to_str().unwrap();
    world.json(&["new", "s", "--dir", directory, "--", "sh", "-c", script]);
    let child: u32 = world.printed("s", "child ").parse().unwrap();
    let shim = number(&world.show("s")["shim_pid"]);
    world.kill_daemon();
    processes::kill(shim);
    assert!(lives(child), "nobody is there to end it yet");
    child
}

fn nothing_is_granted_beside_a_survivor_below(parts: impl Iterator<Item = String>, above: usize) {
    let world = World::new();
    let directory: PathBuf = parts.fold(world.path("top"), |path, part| path.join(part));
    std::fs::create_dir_all(&directory).unwrap();
    let ancestor: PathBuf = world.path("top").join(
        directory.strip_prefix(world.path("top")).unwrap().components().take(above).collect::<PathBuf>(),
    );
    let child = survivor_in(&world, &directory);
    // Directories below share this lock; only taking it reveals that there is a survivor to look for.
    let taken = world.within(SOON, &["lock", ancestor.to_str().unwrap(), "--", "true"]);
    assert!(!lives(child) || taken.code == 75, "granted beside {child}: {taken:?}");
}

#[test]
fn an_ancestor_of_a_deep_directory_is_not_granted_beside_a_survivor() {
    nothing_is_granted_beside_a_survivor_below((0..260).map(|n| format!("d{n}")), 2);
}

#[test]
fn a_deep_ancestor_of_a_deep_directory_is_not_granted_beside_a_survivor() {
    nothing_is_granted_beside_a_survivor_below((0..260).map(|n| format!("d{n}")), 240);
}

#[test]
fn an_ancestor_of_a_directory_with_a_long_path_is_not_granted_beside_a_survivor() {
    nothing_is_granted_beside_a_survivor_below((0..14).map(|n| format!("{n}-{}", "x".repeat(240))), 1);
}

#[test]
fn a_directory_is_not_busy_because_a_removed_one_had_its_number() {
    let world = World::new();
    let inode = |path: &Path| std::fs::metadata(path).unwrap().ino();
    let old = world.path("r");
    std::fs::create_dir(&old).unwrap();
    let number = inode(&old);
    let mut command =
        world.command(&["lock", old.to_str().unwrap(), "--", "sh", "-c", "echo $$; exec sleep 100000"]);
    let mut wrapper = command.stdout(Stdio::piped()).spawn().unwrap();
    let output = Lines::of(wrapper.stdout.take().unwrap());
    let child = output.next("the pid of who was given the lock").parse().unwrap();
    processes::kill(wrapper.id());
    wrapper.ended();
    assert!(lives(child), "it was given the lock");
    std::fs::remove_dir(&old).unwrap();
    for n in 0..200 {
        let twin = world.path(&format!("twin{n}"));
        std::fs::create_dir(&twin).unwrap();
        if inode(&twin) == number {
            let taken = world.within(SOON, &["lock", twin.to_str().unwrap(), "--", "true"]);
            assert_eq!(taken.code, 0, "{taken:?}");
        }
    }
    // The path itself still belongs to its holder.
    std::fs::create_dir(&old).unwrap();
    let again = world.within(SOON, &["lock", old.to_str().unwrap(), "--", "true"]);
    assert_eq!(again.code, 75, "{again:?}");
    processes::kill(child);
}

#[test]
fn a_busy_lock_is_named_as_people_write_it_before_its_record_is_written() {
    let world = World::new();
    std::fs::create_dir_all(&world.home).unwrap();
    // A lock's file is named after the resource alone, so one elsewhere gives the name.
    let elsewhere = Folder::open(world.path("elsewhere")).unwrap();
    let resource = Resource::Session(SessionName::new("a").unwrap());
    drop(elsewhere.try_acquire(&resource, &Request::default()).unwrap());
    let files = std::fs::read_dir(world.path("elsewhere")).unwrap().flatten().map(|entry| entry.file_name());
    let name = files.into_iter().find(|name| name.to_string_lossy().starts_with("s-")).unwrap();
    Folder::open(world.home.join("locks")).unwrap();
    let file = std::fs::File::create(world.home.join("locks").join(name)).unwrap();
    // Like a process that has just got the lock.
    rustix::fs::flock(&file, FlockOperation::LockExclusive).unwrap();
    let said = finish_within(&mut world.command(&["run", "a", "--", "true"]), SOON);
    assert_eq!(said.code, 75, "{said:?}");
    assert!(said.stderr.contains("error: `session:a` is held by "), "{said:?}");
    assert!(said.stderr.contains("pinfold unlock session:a --kill"), "{said:?}");
    let said = finish_within(&mut world.command(&["lock", "session:a", "--", "true"]), SOON);
    assert_eq!(said.code, 75, "{said:?}");
    assert!(!said.stderr.contains("`s-"), "{said:?}");
}

#[test]
fn a_name_that_is_no_directory_is_bad_configuration_with_a_hint() {
    let world = World::new();
    let said = world.within(SOON, &["lock", "deploy", "--", "true"]);
    assert_eq!(said.code, 78, "{said:?}");
    assert!(said.stderr.contains("`key:deploy`"), "{said:?}");
    let asked = world.within(SOON, &["who", "deploy"]);
    assert_eq!(asked.code, 78, "{asked:?}");
}
