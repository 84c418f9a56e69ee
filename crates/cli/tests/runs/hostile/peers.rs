//! Clients whose process daemon and shims cannot see: they are admitted if config.toml says so.

use crate::rights::needs;
use crate::world::World;
use std::process::{Command, Stdio};
use std::time::Instant;

#[test]
fn a_terminal_is_joined_from_outside_of_the_pid_namespace_of_its_shim() {
    needs!(Namespaces);
    let world = World::new();
    std::fs::create_dir(&world.home).unwrap();
    std::fs::write(world.home.join("config.toml"), "[policy]\nconfined = \"allow\"\n").unwrap();
    let outside = world.command(&[]);
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]).arg(&world.binary);
    command.args(["up", "--foreground"]).current_dir(&world.root).stdin(Stdio::null());
    for (name, value) in outside.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut daemon = command.stderr(Stdio::null()).spawn().unwrap();
    let until = Instant::now() + crate::processes::PATIENCE;
    while world.run(&["status"]).code != 0 {
        assert!(Instant::now() < until, "the daemon does not answer");
    }
    world.ok(&["new", "t", "--pty", "--", "sh", "-c", "echo joined; exec sleep 1000"]);
    let tty = world.attach("t", &[]);
    tty.shows("joined");
    _ = daemon.kill();
    _ = daemon.wait();
}
