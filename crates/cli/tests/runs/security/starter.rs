//! A daemon keeps nothing of the process that started it, and only the named processes can keep it from starting.

use super::OTHER;
use crate::processes;
use crate::rights::needs;
use crate::world::{Ends, World, finish, finish_within};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Starts a daemon from a shell that runs a prologue first.
fn up_from(world: &World, prologue: &str) {
    let mut shell = Command::new("/bin/bash");
    let verb = world.command(&[]);
    for (name, value) in verb.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.args(["-c", &format!("{prologue} \"$0\" up")]).arg(&world.binary).current_dir(&world.root);
    let answer = finish(shell.stdin(Stdio::null()));
    assert_eq!(answer.code, 0, "{answer:?}");
}

fn environment(pid: u32) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let names = bytes.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    names.map(|entry| String::from_utf8_lossy(entry).into_owned()).collect()
}

#[test]
fn a_daemon_has_none_of_its_starters_secrets_in_its_environment() {
    let world = World::new();
    up_from(&world, "export CALLERSECRET=s3cret AWS_SECRET_ACCESS_KEY=s3cret GIT_DIR=/s3cret;");
    let found = environment(world.daemon_pid());
    assert!(!found.iter().any(|entry| entry.contains("s3cret")), "{found:?}");
    assert!(found.iter().any(|entry| entry.starts_with("PINFOLD_HOME=")), "{found:?}");
    world.ok(&["down"]);
}

#[test]
fn an_agent_still_has_what_its_maker_gave_it() {
    let world = World::new();
    up_from(&world, "export LANG=of-the-daemon;");
    let mut new =
        world.command(&["new", "a", "--env", "KEY", "--", "sh", "-c", "echo got $KEY $LANG; sleep 1000"]);
    assert_eq!(finish(new.env("KEY", "k1").env("LANG", "C")).code, 0);
    assert_eq!(world.printed("a", "got "), "k1 C");
    world.ok(&["down"]);
}

#[test]
fn a_daemon_has_none_of_its_starters_files_and_locks() {
    let world = World::new();
    std::fs::write(world.path("private"), "x").unwrap();
    up_from(&world, "exec 7<$ROOT/private 8>>$ROOT/userlock 123</dev/null; flock -n 8;");
    let open = processes::open_files(world.daemon_pid());
    let named = |name: &str| open.iter().any(|(_, file)| file.ends_with(name));
    assert!(!named("/private") && !named("/userlock"), "{open:?}");
    let again = Command::new("flock").args(["-n"]).arg(world.path("userlock")).arg("true").status().unwrap();
    assert!(again.success(), "the lock is held as long as the daemon lives");
    world.ok(&["down"]);
}

#[test]
fn a_daemon_in_the_foreground_has_none_of_its_starters_files() {
    let world = World::new();
    std::fs::write(world.path("private"), "x").unwrap();
    let mut shell = Command::new("/bin/bash");
    for (name, value) in world.command(&[]).get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let script = "exec 7<$ROOT/private; exec \"$0\" up --foreground";
    shell.args(["-c", script]).arg(&world.binary).current_dir(&world.root).stdin(Stdio::null());
    let mut daemon = shell.stderr(Stdio::null()).spawn().unwrap();
    let until = std::time::Instant::now() + processes::PATIENCE;
    while world.run(&["status"]).code != 0 {
        assert!(std::time::Instant::now() < until, "the daemon does not answer");
    }
    let open = processes::open_files(daemon.id());
    assert!(!open.iter().any(|(_, file)| file.ends_with("/private")), "{open:?}");
    world.ok(&["down"]);
    daemon.ended();
}

fn core_limit(pid: u32) -> String {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    line.split_whitespace().nth(4).unwrap().to_owned()
}

#[test]
fn no_daemon_and_no_shim_leaves_a_core_file_and_agents_have_the_limit_of_before() {
    let world = World::new();
    up_from(&world, "ulimit -S -c 123;");
    world.ok(&["new", "a", "--", "sleep", "1000"]);
    let agent = world.pid("a");
    let shim = processes::parent(agent).unwrap();
    assert_eq!((core_limit(world.daemon_pid()).as_str(), core_limit(shim).as_str()), ("0", "0"));
    assert_eq!(core_limit(agent), (123 * 1024).to_string());
    world.ok(&["down"]);
}

/// A process that only reads, and has the daemon's lock.
fn squat(world: &World, how: &str) -> std::process::Child {
    let mut command = Command::new("flock");
    command.args([how, "-F"]).arg(world.home.join("daemon.lock")).args(["sleep", "1000"]);
    let child = command.stdin(Stdio::null()).spawn().unwrap();
    let lock = world.home.join("daemon.lock");
    let until = std::time::Instant::now() + processes::PATIENCE;
    while Command::new("flock").args(["-n", "-x"]).arg(&lock).arg("true").status().unwrap().success() {
        assert!(std::time::Instant::now() < until, "the lock is not taken");
    }
    child
}

#[test]
fn a_stranger_that_has_the_daemons_lock_is_named_at_once() {
    let world = World::new();
    world.ok(&["up"]);
    world.ok(&["down"]);
    for how in ["-x", "-s"] {
        let mut stranger = squat(&world, how);
        for verb in ["up", "ls"] {
            let answer = finish_within(&mut world.command(&[verb]), crate::processes::PATIENCE);
            assert_eq!(answer.code, 69, "{how} {verb}: {answer:?}");
            let named = format!("pid {} (`sleep 1000`)", stranger.id());
            assert!(answer.stderr.contains(&named), "{how} {verb}: {answer:?}");
            assert!(answer.stderr.contains(&format!("`kill {}`", stranger.id())), "{answer:?}");
        }
        stranger.kill().unwrap();
        stranger.ended();
    }
    world.ok(&["up"]);
    world.ok(&["down"]);
}

#[test]
fn a_set_uid_copy_runs_nothing() {
    needs!(OtherUser);
    let world = World::new();
    std::fs::set_permissions(&world.root, std::fs::Permissions::from_mode(0o755)).unwrap();
    let copy = world.path("pinfold");
    crate::program::copy(&world.binary, &copy);
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let mut command = Command::new(&copy);
    command.args(["lock", "key:k", "--", "id"]).uid(OTHER).gid(OTHER).current_dir("/").env_clear();
    command.env("PINFOLD_LOCKS", world.path("locks")).env("PATH", "/usr/bin:/bin");
    let answer = finish(&mut command);
    assert_eq!(answer.code, 77, "{answer:?}");
    assert_eq!(answer.stdout, "");
    assert!(answer.stderr.contains("set-uid"), "{answer:?}");
    assert!(!world.path("locks").exists());
}
