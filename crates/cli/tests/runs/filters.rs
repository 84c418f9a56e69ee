//! Kernels and sandboxes without the calls by which processes are started and watched, by a filter.
#![expect(unsafe_code, reason = "seccomp has no safe form")]

use crate::again;
use crate::world::{Answer, World, finish};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The variable with the calls that are refused, each with its error, and the one with the script to run then.
const ROLE: &str = "FILTER_ROLE";
const THEN: &str = "FILTER_THEN";

/// Not a test: refuses calls, and runs a script.
#[test]
fn refuses_calls() {
    let (Ok(role), Ok(then)) = (std::env::var(ROLE), std::env::var(THEN)) else { return };
    let refused: Vec<(&str, u32)> = role
        .split(' ')
        .filter_map(|call| call.split_once('='))
        .map(|(name, errno)| (name, errno.parse().unwrap()))
        .collect();
    refuse(&refused);
    let error = Command::new("/bin/sh").args(["-c", &then]).env_remove(ROLE).env_remove(THEN).exec();
    panic!("{error}");
}

/// Installs a filter that answers some calls with an error, and allows all others.
fn refuse(calls: &[(&str, u32)]) {
    const LOAD: u16 = 0x20;
    const IF_EQUAL: u16 = 0x15;
    const IF_ANY: u16 = 0x45;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const ERROR: u32 = 0x0005_0000;
    /// The lower half of the first argument, where the number comes first.
    const FIRST: u32 = if cfg!(target_endian = "little") { 16 } else { 20 };
    let line = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = Vec::new();
    for (name, errno) in calls {
        let number = match *name {
            "clone3" => libc::SYS_clone3,
            "pidfd_open" => libc::SYS_pidfd_open,
            "clone_pidfd" => libc::SYS_clone,
            other => panic!("{other}"),
        };
        let of_its_flags = *name == "clone_pidfd";
        program.push(line(LOAD, 0, 0, 0));
        program.push(line(IF_EQUAL, 0, if of_its_flags { 3 } else { 1 }, u32::try_from(number).unwrap()));
        if of_its_flags {
            program.push(line(LOAD, 0, 0, FIRST));
            program.push(line(IF_ANY, 0, 1, libc::CLONE_PIDFD as u32));
        }
        program.push(line(RETURN, 0, 0, ERROR | errno));
    }
    program.push(line(RETURN, 0, 0, ALLOW));
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: takes integers only.
    let bound = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(bound, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the program and its instructions live through the call.
    let done = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// Runs a verb where calls are refused.
fn without(world: &World, calls: &str, words: &[&str]) -> Answer {
    let [program, arguments @ ..] = again::words("filters::refuses_calls");
    let mut command = Command::new(program);
    let script = format!("exec '{}' {}", world.binary.display(), words.join(" "));
    command.args(arguments).stdin(Stdio::null()).current_dir(&world.root).env(ROLE, calls).env(THEN, script);
    for (name, value) in world.command(&[]).get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    finish(&mut command)
}

const NO_CALL: u32 = libc::ENOSYS as u32;
const FORBIDDEN: u32 = libc::EPERM as u32;

#[test]
fn agents_start_end_and_start_again_where_neither_clone3_nor_pidfds_by_number_are_known() {
    for errno in [NO_CALL, FORBIDDEN] {
        // The C library takes another error of clone3 for the last word.
        let calls = format!("clone3={NO_CALL} pidfd_open={errno}");
        let world = World::new();
        let up = without(&world, &calls, &["up"]);
        assert_eq!(up.code, 0, "{up:?}");
        world.guarded("a", &["--stop-grace", "1s"], "sleep 100001 & exec sleep 100000");
        world.wait("a", "running");
        let run = world.show("a")["run"].clone();
        crate::processes::kill(world.pid("a"));
        world.ok(&["wait", "a", "--for", "backoff,running", "--timeout", "60s"]);
        world.wait("a", "running");
        assert_ne!(world.show("a")["run"], run);
        world.ok(&["stop", "a"]);
        world.assert_no_members();
        world.ok(&["down"]);
    }
}

#[test]
fn a_daemon_that_no_end_would_be_told_to_does_not_start() {
    let world = World::new();
    let calls = format!("clone3={NO_CALL} pidfd_open={NO_CALL} clone_pidfd={}", libc::EINVAL);
    for words in [&["up"][..], &["up", "--foreground"]] {
        let up = without(&world, &calls, words);
        assert_eq!(up.code, 78, "{up:?}");
        assert!(up.stderr.contains("none of pidfd_open, clone3 and clone with a pidfd"), "{up:?}");
        assert!(up.stderr.contains("seccomp profile"), "{up:?}");
    }
    world.ok(&["up"]);
}

#[cfg(target_env = "gnu")]
#[test]
fn a_filter_that_forbids_clone3_is_named() {
    let world = World::new();
    for words in [&["up"][..], &["up", "--foreground"], &["ls"]] {
        let up = without(&world, &format!("clone3={FORBIDDEN}"), words);
        assert_eq!(up.code, 78, "{words:?} {up:?}");
        assert!(up.stderr.contains("a seccomp filter forbids new threads"), "{up:?}");
        assert!(up.stderr.contains("seccomp=unconfined"), "{up:?}");
    }
    world.ok(&["up"]);
}
