//! A client at a shim's socket is identified by its user alone: a pid may mean nothing there.

use super::{LIMIT, until};
use crate::processes;
use crate::rights::needs;
use crate::tty::Tty;
use crate::world::World;
use pinfold_core::RunNumber;
use pinfold_shim::Size;
use pinfold_shim::attach::{Join, Seat, ViewerInput};
use rustix::process::Uid;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A daemon in its own pid namespace, as in a container; the namespace ends with it.
struct Contained(Child);

impl Contained {
    fn start(world: &World) -> Contained {
        // It admits clients whose process it cannot see only if it is told to.
        std::fs::create_dir(&world.home).unwrap();
        std::fs::write(world.home.join("config.toml"), "[policy]\nconfined = \"allow\"\n").unwrap();
        let inner = world.command(&["up", "--foreground"]);
        let mut outer = Command::new("unshare");
        outer.args(["--pid", "--fork", "--kill-child", "--mount-proc"]).arg(inner.get_program());
        outer.args(inner.get_args()).current_dir(&world.root).stdin(Stdio::null()).stderr(Stdio::null());
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => outer.env(name, value),
                None => outer.env_remove(name),
            };
        }
        let contained = Contained(outer.spawn().unwrap());
        until("a daemon in a namespace", || world.run(&["--no-start", "status"]).code == 0);
        contained
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

#[test]
fn a_terminal_is_attached_to_from_where_the_shim_sees_no_pid() {
    needs!(Namespaces);
    let world = World::new();
    let _daemon = Contained::start(&world);
    let script = "echo ready; while read line; do echo \"heard $line\"; done";
    world.ok(&["new", "a", "--pty", "--", "sh", "-c", script]);
    let mut tty = Tty::start(world.command(&["attach", "a"]), 24, 80);
    tty.shows("ready");
    tty.keys(b"hello\r");
    tty.shows("heard hello");
    tty.detach();
    assert_eq!(world.within(LIMIT, &["stop", "a"]).code, 0);
}

/// The socket of the only shim.
fn socket(world: &World) -> PathBuf {
    let folder = world.home.join("run/shims");
    let folder = if folder.exists() { folder } else { world.home.join("shims") };
    let mut all = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    all.next().expect("a shim that listens").unwrap().path()
}

/// Joins the terminal of the first run as a user; returns what arrives until the secret is seen, or the end.
fn join(socket: &PathBuf, user: u32) -> Vec<u8> {
    let join = Join { run: RunNumber(1), size: Size::default(), seat: Seat::Watches };
    let mut words = Vec::new();
    ViewerInput::Join(join).encode(&mut words);
    // A thread has its own user ids: the rest of the test stays root.
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let uid = Uid::from_raw(user);
            rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
            let mut stream = UnixStream::connect(socket).unwrap();
            stream.set_read_timeout(Some(processes::PATIENCE)).unwrap();
            // The connection may already be closed.
            _ = stream.write_all(&words);
            let (mut all, mut bytes) = (Vec::new(), [0; 256]);
            while let Ok(count @ 1..) = stream.read(&mut bytes) {
                all.extend_from_slice(&bytes[..count]);
                if String::from_utf8_lossy(&all).contains("secret") {
                    break;
                }
            }
            all
        });
        asking.join().unwrap()
    })
}

#[test]
fn another_user_is_not_shown_a_terminal_whatever_the_modes_of_its_socket() {
    needs!(OtherUser);
    let world = World::new();
    world.ok(&["new", "a", "--pty", "--", "sh", "-c", "echo secret; exec sleep 1000"]);
    world.printed("a", "secret");
    let socket = socket(&world);
    for folder in socket.ancestors().take_while(|path| path.starts_with(&world.root)) {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    assert!(String::from_utf8_lossy(&join(&socket, 0)).contains("secret"), "our own user is shown it");
    assert_eq!(join(&socket, 65534), b"", "another user is shown nothing");
}
