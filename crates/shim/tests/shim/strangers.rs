//! Which clients a shim takes for its daemon.

use crate::rights::needs;
use crate::world::{PATIENCE, World, command, wait_until};
use pinfold_shim::{Command, Report};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn a_generation_far_above_the_last_is_made_up() {
    let world = World::new();
    let daemon = world.shim("api");
    for generation in [1 << 33, 1 << 63, u64::MAX] {
        let mut link = world.connect("api", generation);
        let answer = link.receive(Some(Instant::now() + PATIENCE)).unwrap();
        assert_eq!(answer, None, "{generation}");
    }
    let mut link = world.connect("api", (1 << 32) - 1);
    let answer = link.receive(Some(Instant::now() + PATIENCE)).unwrap();
    assert!(matches!(answer, Some(Report::Welcome(_))), "{answer:?}");
    link.send(&Command::Release).unwrap();
    drop(daemon);
}

#[test]
fn a_daemon_is_who_has_the_lock_of_the_home() {
    let world = World::new();
    let daemon = world.shim("api");
    world.lose_home();
    let mut link = world.connect("api", 2);
    assert_eq!(link.receive(Some(Instant::now() + PATIENCE)).unwrap(), None);
    // The lock is looked up by its path too, so a recreated file counts.
    world.take_home_anew();
    let mut link = world.connect("api", 2);
    let answer = link.receive(Some(Instant::now() + PATIENCE)).unwrap();
    assert!(matches!(answer, Some(Report::Welcome(_))), "{answer:?}");
    link.send(&Command::Release).unwrap();
    drop(daemon);
}

/// A user other than the one that runs the tests.
const NOBODY: u32 = 65534;

/// Connects as another user; only the thread that does it changes its user.
fn connect_as_nobody(socket: &Path) -> UnixStream {
    let socket = socket.to_owned();
    let nobody = move || {
        let nobody = rustix::process::Uid::from_raw(NOBODY);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).expect("a second user");
        UnixStream::connect(socket).expect("the socket is open to all")
    };
    std::thread::spawn(nobody).join().unwrap()
}

#[test]
fn another_user_is_not_listened_to_although_the_socket_is_open_to_all() {
    needs!(OtherUser);
    let world = World::new();
    let mut daemon = world.shim("api");
    // With a run it stays; without one it would leave, and all connections would read the end.
    daemon.start(command(1, &["sleep", "1000"]));
    daemon.started();
    let listen = world.opening("api").listen;
    wait_until("the shim listens", || listen.exists());
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open(listen.parent().unwrap(), 0o755);
    open(&listen, 0o666);
    // Our own user may take its time to say which it is.
    let mut own = UnixStream::connect(&listen).unwrap();
    let mut stranger = connect_as_nobody(&listen);
    stranger.set_read_timeout(Some(PATIENCE / 6)).unwrap();
    assert_eq!(stranger.read(&mut [0]).expect("a stranger is let in, and waited for"), 0);
    own.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    assert_eq!(own.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    drop(daemon);
}
