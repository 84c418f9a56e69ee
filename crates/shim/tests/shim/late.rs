//! A shim that listens only when somebody may come.

use crate::world::{Daemon, PATIENCE, World, command, welcome};
use pinfold_core::exit::Exit;
use pinfold_core::ids::RunNumber;
use pinfold_shim::client::{Link, Opening, spawn};
use pinfold_shim::{Command, Keeping, Listens, Size, Start};
use std::time::{Duration, Instant};

fn late(world: &World) -> Daemon {
    let guard = world.lock("api");
    let opening = Opening { listens: Listens::Late, ..world.opening("api") };
    let (child, mut link) = spawn(&opening, &[(&world.folder, &guard)]).unwrap();
    link.send(&Command::Hello { generation: 1 }).unwrap();
    let welcome = welcome(&mut link);
    let _receipt = guard.surrender();
    link.send(&Command::Go).unwrap();
    Daemon { child, link, welcome, passed: Vec::new() }
}

/// Connects as soon as somebody listens.
fn connect(world: &World) -> Link {
    let until = Instant::now() + PATIENCE;
    loop {
        match Link::connect(&world.opening("api").listen) {
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
    // The first daemon goes without a word: its end of the connection is closed.
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
    daemon.started();
    Link::connect(&world.opening("api").listen).unwrap();
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
        child.wait().unwrap();
        drop(guard.surrender());
    }
    drop(world.lock("api"));
}
