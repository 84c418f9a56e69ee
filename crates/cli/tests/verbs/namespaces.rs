//! Holders in other pid and time namespaces: an unknown holder never loses its lock, and a shifted clock does
//! not kill.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use crate::rights::needs;
use crate::support::{Home, first_line};
use std::process::{Child, Command, Stdio};

/// Starts a holder in new namespaces and waits until it holds.
fn hold_in(home: &Home, unshare: &[&str]) -> Ended {
    let mut command = Command::new("unshare");
    command.args(unshare).arg(env!("CARGO_BIN_EXE_pinfold"));
    command.args(["lock", "key:k", "--", "sh", "-c", "echo ready; exec sleep 1000"]);
    home.settle(&mut command);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(first_line(&mut child), "ready");
    Ended(child)
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_holder_in_another_pid_namespace_is_unknown_and_keeps_its_lock() {
    needs!(Namespaces);
    let home = Home::new();
    // The whole namespace ends with its first process, and that one with unshare.
    let holder = hold_in(&home, &["--pid", "--fork", "--kill-child", "--mount-proc"]);
    let error = &home.json(&["lock", "key:k", "--", "true"])["error"];
    assert_eq!((&error["kind"], &error["holder"]["verdict"]), (&"busy".into(), &"unknown".into()));
    drop(holder);
    assert_eq!(home.run(&["lock", "key:k", "--wait", "240s", "--", "true"]).code, 0);
}

#[test]
fn from_inside_a_namespace_the_outer_holder_is_unknown_and_keeps_its_lock() {
    needs!(Namespaces);
    let home = Home::new();
    let _holder = home.hold("key:k");
    for proc in ["--mount-proc", "--fork"] {
        // The second time /proc is the outer one, whose pids mean nothing inside.
        let script = format!("unshare --pid --fork {proc} \"$PINFOLD\" --json lock key:k -- true");
        let answer = home.script(&script);
        assert_eq!(answer.code, 75, "{}", answer.stderr);
        assert!(answer.stdout.contains("\"verdict\":\"unknown\""), "{proc}: {}", answer.stdout);
    }
}

#[test]
fn a_free_lock_is_granted_inside_a_namespace_whose_proc_is_another_ones() {
    needs!(Namespaces);
    let home = Home::new();
    let answer = home.script("unshare --pid --fork \"$PINFOLD\" lock key:k -- true");
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_eq!(home.run(&["lock", "key:k", "--", "true"]).code, 0);
}

#[test]
fn a_holder_in_another_time_namespace_is_alive() {
    needs!(Namespaces);
    let home = Home::new();
    let _holder = hold_in(&home, &["--time", "--boottime", "100000", "--fork", "--kill-child"]);
    let error = &home.json(&["lock", "key:k", "--", "true"])["error"];
    assert_eq!(error["holder"]["verdict"], "alive");
}
