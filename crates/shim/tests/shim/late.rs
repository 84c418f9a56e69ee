//! A shim that listens only when a client may come.

use crate::world::{Daemon, Ends, PATIENCE, World, command, welcome};
use pinfold_core::exit::Exit;
use pinfold_core::ids::RunNumber;
use pinfold_shim::client::{Opening, ShimConnection, spawn};
use pinfold_shim::{Command, Keeping, Listens, Size, Start};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn late(world: &World) -> Daemon {
    late_at(world, world.opening("api").listen)
}

fn late_at(world: &World, listen: PathBuf) -> Daemon {
    let guard = world.lock("api");
    let opening = Opening { listen, listens: Listens::Late, ..world.opening("api") };
    let (child, mut link) = spawn(&opening, &[(&world.folder, &guard)]).unwrap();
    link.send(&Command::Hello { generation: 1 }).unwrap();
    let welcome = welcome(&mut link);
    let _receipt = guard.surrender();
    link.send(&Command::Go).unwrap();
    Daemon { child, link, welcome, passed: Vec::new() }
}

/// Connects as soon as the shim listens.
fn connect(world: &World) -> ShimConnection {
    connect_at(&world.opening("api").listen)
}

fn connect_at(socket: &Path) -> ShimConnection {
    let until = Instant::now() + PATIENCE;
    loop {
        match ShimConnection::connect(socket) {
            Ok(link) => return link,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn it_listens_when_it_has_lost_its_daemon_and_takes_its_socket_with_it() {
    let world = World::new();
    let mut daemon = late(&world);
    daemon.start(command(1, &["sleep", "1000"]));
    let (_, pid, _) = daemon.started();
    let listen = world.opening("api").listen;
    assert!(!listen.exists());
    // The first daemon leaves without a word: its end of the connection is closed.
    rustix::net::shutdown(&daemon.link, rustix::net::Shutdown::Both).unwrap();
    daemon.link = connect(&world);
    daemon.send(&Command::Hello { generation: 2 });
    let seen = welcome(&mut daemon.link);
    assert!(
        matches!(seen.keeping, Keeping::Running { run: RunNumber(1), process, .. } if process.pid == pid)
    );
    daemon.send(&Command::Stop { run: RunNumber(1), grace: PATIENCE });
    assert_eq!(daemon.exited().ended.exit, Exit::Signal(15));
    daemon.send(&Command::Release);
    daemon.gone();
    assert!(!listen.exists());
}

#[test]
fn it_listens_when_it_has_a_terminal() {
    let world = World::new();
    let mut daemon = late(&world);
    daemon.start(Start { terminal: Some(Size::new(24, 80)), ..command(1, &["sleep", "1000"]) });
    let (_, pid, _) = daemon.started();
    let mut link = world.connect("api", 2);
    let seen = welcome(&mut link);
    assert!(
        matches!(seen.keeping, Keeping::Running { run: RunNumber(1), process, .. } if process.pid == pid),
        "{seen:?}"
    );
}

#[test]
fn without_a_daemon_it_listens_again_where_its_socket_was_removed() {
    let world = World::new();
    let listen = world.path("sockets/api.sock");
    let mut daemon = late_at(&world, listen.clone());
    daemon.start(command(1, &["sleep", "1000"]));
    daemon.started();
    rustix::net::shutdown(&daemon.link, rustix::net::Shutdown::Both).unwrap();
    drop(connect_at(&listen));
    std::fs::remove_dir_all(world.path("sockets")).unwrap();
    daemon.link = connect_at(&listen);
    daemon.send(&Command::Hello { generation: 2 });
    assert!(matches!(welcome(&mut daemon.link).keeping, Keeping::Running { run: RunNumber(1), .. }));
}

#[test]
fn told_to_listen_it_makes_a_socket_again_that_was_removed_and_leaves_one_alone_that_is_there() {
    let world = World::new();
    let listen = world.opening("api").listen;
    let mut daemon = late(&world);
    daemon.start(Start { terminal: Some(Size::new(24, 80)), ..command(1, &["sleep", "1000"]) });
    daemon.started();
    let kept = ShimConnection::connect(&listen).unwrap();
    daemon.send(&Command::Listen);
    std::fs::remove_file(&listen).unwrap();
    daemon.send(&Command::Listen);
    drop((connect_at(&listen), kept));
}

#[test]
fn where_it_cannot_listen_it_listens_beside_its_records() {
    let world = World::new();
    std::fs::write(world.path("file"), "").unwrap();
    let mut daemon = late_at(&world, world.path("file/shims/api.sock"));
    daemon.start(command(1, &["sleep", "1000"]));
    daemon.started();
    rustix::net::shutdown(&daemon.link, rustix::net::Shutdown::Both).unwrap();
    let beside = world.opening("api").records.with_file_name(pinfold_shim::BESIDE_RECORDS);
    daemon.link = connect_at(&beside);
    daemon.send(&Command::Hello { generation: 2 });
    welcome(&mut daemon.link);
    daemon.send(&Command::Stop { run: RunNumber(1), grace: PATIENCE });
    daemon.exited();
    daemon.send(&Command::Release);
    daemon.gone();
    assert!(!beside.exists());
}

#[test]
fn it_leaves_when_whoever_started_it_is_gone_before_it_looks() {
    let world = World::new();
    let opening = Opening { listens: Listens::Late, ..world.opening("api") };
    for hello in [true, false].into_iter().cycle().take(20) {
        let guard = world.lock("api");
        let (mut child, mut link) = spawn(&opening, &[(&world.folder, &guard)]).unwrap();
        if hello {
            link.send(&Command::Hello { generation: 1 }).unwrap();
        }
        drop(link);
        child.ended();
        drop(guard.surrender());
    }
    drop(world.lock("api"));
}
