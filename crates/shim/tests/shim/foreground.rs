//! Agents with the streams of the process that started their shim.

use crate::world::{Daemon, World, shell, welcome};
use pinfold_shim::client::{Foreground, Opening, spawn};
use pinfold_shim::log::Stream;
use pinfold_shim::{Command, Tie};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// Starts a shim whose agents read and write the test's files; everything that it writes itself is in a
/// scratch folder.
fn shim(world: &World) -> (Daemon, PathBuf) {
    let scratch = world.path("scratch");
    std::fs::create_dir(&scratch).unwrap();
    std::fs::write(world.path("in"), "one\ntwo\n").unwrap();
    let made = |name: &str| OwnedFd::from(File::create(world.path(name)).unwrap());
    let streams = [File::open(world.path("in")).unwrap().into(), made("out"), made("err")];
    let guard = world.lock("api");
    let opening = Opening {
        tie: Tie::ToParent,
        foreground: Some(Foreground { streams: Arc::new(streams), scratch: scratch.clone() }),
        listen: scratch.join("api.sock"),
        records: scratch.join("exits"),
        ..world.opening("api")
    };
    let (child, mut link) = spawn(&opening, &[(&world.folder, &guard)]).unwrap();
    link.send(&Command::Hello { generation: 1 }).unwrap();
    let welcome = welcome(&mut link);
    drop(guard.surrender());
    link.send(&Command::Go).unwrap();
    (Daemon { child, link, welcome, passed: Vec::new() }, scratch)
}

#[test]
fn every_run_of_a_shim_goes_on_with_the_same_streams() {
    let world = World::new();
    let (mut daemon, scratch) = shim(&world);
    for run in [1, 2] {
        daemon.start(shell(run, "read -r line; echo \"out $line\"; echo \"err $line\" >&2"));
        assert_eq!(daemon.exited().run.0, run);
    }
    let read = |name: &str| std::fs::read_to_string(world.path(name)).unwrap();
    // The shell reads a file line by line: the second run begins where the first stopped.
    assert_eq!((read("out").as_str(), read("err").as_str()), ("out one\nout two\n", "err one\nerr two\n"));
    assert_eq!(world.log("api", Stream::Out), b"", "nothing passes through the shim");
    daemon.send(&Command::Release);
    daemon.gone();
    assert!(scratch.exists(), "whoever made it is there to remove it");
}

#[test]
fn the_scratch_folder_goes_with_a_shim_whose_parent_is_gone() {
    let world = World::new();
    let (mut daemon, scratch) = shim(&world);
    daemon.start(shell(1, "exec sleep 1000"));
    daemon.started();
    let Daemon { link, child, .. } = &mut daemon;
    link.send(&Command::Go).unwrap();
    let pid = child.id();
    // The end of the connection means the end of the parent.
    rustix::net::shutdown(&*link, rustix::net::Shutdown::Both).unwrap();
    crate::world::wait_for_end(pid);
    assert!(!scratch.exists());
    assert!(world.holder("api").is_none());
}
