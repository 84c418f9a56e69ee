//! What becomes of a test that needs root where it cannot have it, and where it can.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod rights;

use crate::rights::needs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

/// The variable that makes this program a test in need.
const ROLE: &str = "NEEDS_A_MOUNT";

/// Not a test of its own: says where it runs.
#[test]
fn needs_a_mount() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    needs!(Mount);
    println!("\nit runs here");
}

/// Makes a program, in another process: no thread that forks here has it open for writing.
fn make_program(script: &str, words: &[&Path]) {
    let made = Command::new("sh").args(["-c", script]).args(words).status().unwrap();
    assert!(made.success(), "{script} {words:?}");
}

fn write_program(path: &Path, script: &str) {
    make_program("printf '#!/bin/sh\\n%s\\n' \"$1\" >\"$0\" && chmod 755 \"$0\"", &[path, Path::new(script)]);
}

/// Runs the test in need as a user without rights, whose `unshare` and `sudo` are these scripts; returns the
/// list as well.
fn in_need(unshare: &str, sudo: &str) -> (Output, String) {
    let temp = tempfile::tempdir().unwrap();
    std::fs::set_permissions(temp.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    write_program(&temp.path().join("unshare"), unshare);
    write_program(&temp.path().join("sudo"), sudo);
    // A copy: that user may not be able to enter the repository.
    let program = temp.path().join("needs");
    make_program("cp \"$1\" \"$0\" && chmod 755 \"$0\"", &[&program, &std::env::current_exe().unwrap()]);
    let list = temp.path().join("list");
    let mut command = Command::new(program);
    command.args(["--exact", "needs_a_mount", "--nocapture"]).env(ROLE, "1").current_dir("/");
    command.env("PATH", format!("{}:/usr/bin:/bin", temp.path().display()));
    command.env("PINFOLD_TEST_NOT_RUN", &list);
    if rustix::process::geteuid().is_root() {
        command.uid(61_234).gid(61_234);
    }
    let output = command.output().unwrap();
    (output, std::fs::read_to_string(list).unwrap_or_default())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn what_cannot_be_had_is_listed_and_no_failure() {
    let (output, list) = in_need("exit 1", "exit 1");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(list, "pinfold-lock::needs needs_a_mount\tmounts a file system\n");
    assert!(said(&output).contains("not run: needs root: mounts a file system"), "{}", said(&output));
    assert!(!said(&output).contains("it runs here"), "{}", said(&output));
}

#[test]
fn a_namespace_is_asked_for_before_sudo() {
    let passes =
        "case \"$*\" in *needs_a_mount*) printf 'by %s\\ntest result: ok. 1 passed;\\n' \"$0\";; esac";
    for (unshare, sudo, way) in [(passes, "exit 1", "/unshare"), ("exit 1", passes, "/sudo")] {
        let (output, list) = in_need(unshare, sudo);
        assert!(output.status.success() && said(&output).contains(way), "{way}: {}", said(&output));
        assert_eq!(list, "", "{way}");
        // The runner of this test counts its own summary only.
        assert_eq!(said(&output).matches("\ntest result: ").count(), 1, "{}", said(&output));
    }
}

#[test]
fn a_test_that_fails_elsewhere_or_is_not_found_there_fails() {
    for outcome in ["printf '\\ntest result: ok. 0 passed;\\n'", "echo it failed; exit 101"] {
        let unshare = format!("case \"$*\" in *needs_a_mount*) {outcome};; esac");
        let (output, list) = in_need(&unshare, "exit 1");
        assert!(!output.status.success(), "{outcome}: {}", said(&output));
        assert_eq!(list, "", "{outcome}");
    }
}
