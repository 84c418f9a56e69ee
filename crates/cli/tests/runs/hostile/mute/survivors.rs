//! Processes that no signal of the shim can end: another user's, and one that the kernel keeps.

use super::plain::{Plain, as_nobody};
use super::{LIMIT, number, session, until, why};
use crate::processes::{self, lives};
use crate::rights::needs;
use crate::world::{World, held};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// A world of a user without rights, and a program that becomes root, as sudo does.
struct Sudo {
    plain: Plain,
    program: PathBuf,
}

impl Sudo {
    fn new() -> Sudo {
        let plain = Plain::new();
        let program = become_root(&plain);
        Sudo { plain, program }
    }

    /// A session with a child that belongs to root; returns its shim and the child.
    fn with_child(&self, name: &str) -> (u32, u32) {
        let script = format!("'{}' & echo child $!; exec sleep 1000", self.program.display());
        let shim = session(&self.plain.world, name, &[], &script);
        let child = self.plain.world.printed(name, "child ").parse().unwrap();
        let user = || {
            let status = std::fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
            status.lines().any(|line| line.starts_with("Uid:\t0\t0\t0"))
        };
        until("a child of root's", user);
        (shim, child)
    }
}

/// Compiles a program that takes all of root's ids and waits, if the file system allows setuid.
fn become_root(plain: &Plain) -> PathBuf {
    let text = "#define _GNU_SOURCE\n#include <unistd.h>\n\
                int main(int argc, char **argv) {\n\
                  (void)argv;\n\
                  if (setresgid(0, 0, 0) || setresuid(0, 0, 0)) return 1;\n\
                  if (argc > 1) return 0;\n\
                  for (;;) pause();\n\
                }\n";
    let places = [plain.world.root.clone(), env!("CARGO_TARGET_TMPDIR").into()];
    for place in &places {
        let program = place.join(format!("sudo-{}", std::process::id()));
        plain.build(text, &program);
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
        let line = format!("{} '{}' try", as_nobody(), program.display());
        if Command::new("sh").args(["-c", &line]).status().unwrap().success() {
            return program;
        }
    }
    panic!("no place where a program may become root's: {places:?} are all nosuid, or closed to others");
}

fn assert_names(text: &str, child: u32) {
    assert!(text.contains(&format!("pid {child} ")) && text.contains("runs as user 0"), "{text}");
}

#[test]
fn a_child_of_another_user_is_named_by_stop_and_why() {
    needs!(OtherUser);
    let sudo = Sudo::new();
    let (world, (shim, child)) = (&sudo.plain.world, sudo.with_child("a"));
    let answer = world.within(LIMIT, &["stop", "a"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert_names(&answer.stderr, child);
    assert_names(&why(world, "a"), child);
    // The lock is held while anything of the run lives.
    let locks = world.json(&["locks"]);
    assert!(locks.as_array().unwrap().iter().any(|lock| lock["session"] == "a"), "{locks}");
    assert!(lives(shim));
    processes::kill(child);
    world.wait("a", "stopped");
    assert_eq!(world.events_of("a", "run_exited").len(), 1);
}

#[test]
fn down_leaves_a_child_of_another_user_with_its_shim_and_the_next_daemon_finds_both() {
    needs!(OtherUser);
    let sudo = Sudo::new();
    let (world, (shim, child)) = (&sudo.plain.world, sudo.with_child("a"));
    let daemon = held(world.daemon_pid());
    let answer = world.within(LIMIT, &["down"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert_names(&answer.stderr, child);
    daemon.wait();
    assert!(lives(shim) && lives(child), "shim {shim} and child {child}");
    world.ok(&["up"]);
    until("the survivor to be named again", || why(world, "a").contains(&format!("pid {child} ")));
    assert_eq!(number(&world.show("a")["shim_pid"]), shim);
    processes::kill(child);
    // Its mode is `always`: what was to end with the last daemon starts with this one.
    world.wait("a", "running");
    assert_eq!(world.events_of("a", "run_exited").len(), 1);
}

#[test]
fn an_end_without_a_daemon_is_written_down_by_the_shim_that_stayed() {
    needs!(OtherUser);
    let sudo = Sudo::new();
    let (world, (shim, child)) = (&sudo.plain.world, sudo.with_child("a"));
    assert_eq!(world.within(LIMIT, &["stop", "a"]).code, 1);
    assert_eq!(world.within(LIMIT, &["down"]).code, 1);
    let shim = held(shim);
    processes::kill(child);
    shim.wait();
    world.wait("a", "stopped");
    let ends = world.events_of("a", "run_exited");
    assert_eq!((ends.len(), ends[0]["verdict"].as_str()), (1, Some("clean")), "{ends:?}");
}

#[test]
fn what_an_agent_that_has_ended_left_behind_is_named() {
    needs!(OtherUser);
    let sudo = Sudo::new();
    let (world, (_, child)) = (&sudo.plain.world, sudo.with_child("a"));
    processes::kill(world.pid("a"));
    until("the survivor to be named", || why(world, "a").contains(&format!("pid {child} ")));
    processes::kill(child);
    until("the end of the run", || world.events_of("a", "run_exited").len() == 1);
}

/// A control group (v1) with frozen processes: the kernel lets no signal end them.
struct Frozen {
    group: PathBuf,
    _freezer: Freezer,
}

/// The hierarchy of such groups: where it is mounted, or mounted by the test on a machine that has only version 2.
struct Freezer {
    place: PathBuf,
    own: Option<tempfile::TempDir>,
}

impl Freezer {
    fn find() -> Freezer {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let mounted = mounts.lines().find_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            (words[2] == "cgroup" && words[3].split(',').any(|option| option == "freezer")).then(|| words[1])
        });
        mounted.map_or_else(Freezer::mount, |place| Freezer { place: place.into(), own: None })
    }

    fn mount() -> Freezer {
        let own = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "cgroup", "-o", "freezer", "freezer"]).arg(own.path());
        assert!(mount.status().unwrap().success(), "a freezer of the first hierarchy is mounted");
        Freezer { place: own.path().to_owned(), own: Some(own) }
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        if self.own.is_some() {
            _ = Command::new("umount").arg("-l").arg(&self.place).status();
        }
    }
}

impl Frozen {
    fn new(pid: u32) -> Frozen {
        let freezer = Freezer::find();
        let group = freezer.place.join(format!("pinfold-test-{pid}"));
        std::fs::create_dir(&group).expect("a group in the freezer");
        std::fs::write(group.join("cgroup.procs"), pid.to_string()).unwrap();
        std::fs::write(group.join("freezer.state"), "FROZEN").unwrap();
        let frozen = || std::fs::read_to_string(group.join("freezer.state")).unwrap().starts_with("FROZEN");
        until("a frozen process", frozen);
        Frozen { group, _freezer: freezer }
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        _ = std::fs::write(self.group.join("freezer.state"), "THAWED");
        let members = || std::fs::read_to_string(self.group.join("cgroup.procs")).unwrap_or_default();
        for pid in members().lines().filter_map(|line| line.parse().ok()) {
            processes::kill(pid);
        }
        until("an empty group", || std::fs::remove_dir(&self.group).is_ok());
    }
}

#[test]
fn a_process_that_the_kernel_keeps_is_named_and_the_stop_completes_when_it_is_let_go() {
    needs!(Freezer);
    let world = World::new();
    session(&world, "a", &[], "sleep 1000 & echo child $!; exec sleep 1000");
    let child: u32 = world.printed("a", "child ").parse().unwrap();
    let frozen = Frozen::new(child);
    let answer = world.within(LIMIT, &["stop", "a"]);
    let named = format!("pid {child} (sleep) does not end");
    assert!(answer.code == 1 && answer.stderr.contains(&named), "{answer:?}");
    assert!(why(&world, "a").contains(&named), "{}", why(&world, "a"));
    drop(frozen);
    world.wait("a", "stopped");
}

#[test]
fn down_ends_although_a_shim_cannot_be_ended() {
    needs!(Freezer);
    let world = World::new();
    let shim = session(&world, "a", &[], "exec sleep 1000");
    let frozen = Frozen::new(shim);
    let answer = world.within(LIMIT, &["down"]);
    assert!(answer.code == 1 && answer.stderr.contains(&format!("pid {shim} ")), "{answer:?}");
    drop(frozen);
    world.ok(&["up"]);
    world.wait("a", "running");
}
