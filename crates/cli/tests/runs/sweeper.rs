//! Ends what a test started when the test program itself is killed: by a time limit, a person or the kernel.

use crate::again;
use crate::lines::Lines;
use crate::processes::Held;
use crate::world::{Ends, World};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Waits for a word, or for the end of the process that would send it; then kills everything with the folder
/// in its environment, until nothing is left.
const SWEEP: &str = "read -r word && exit; \
    for round in 1 2 3 4 5 6 7 8 9 10; do found=; for place in /proc/[0-9]*; do \
        if grep -qaF \"$0\" $place/environ 2>/dev/null; then kill -9 ${place#/proc/} 2>/dev/null && found=yes; fi; \
    done; test $found || break; sleep 0.1; done; rm -rf \"$0\"";

/// A small process beside a test. It is not in the test's group, which is killed as a whole.
pub(crate) struct Sweeper(Child);

impl Sweeper {
    pub(crate) fn over(folder: &Path) -> Sweeper {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SWEEP]).arg(folder).env_clear().env("PATH", "/usr/bin:/bin").current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Sweeper(command.spawn().unwrap())
    }
}

impl Drop for Sweeper {
    /// The test has cleaned up by itself.
    fn drop(&mut self) {
        _ = self.0.stdin.take().map(|mut stdin| stdin.write_all(b"over\n"));
        _ = self.0.wait();
    }
}

/// The variable that makes this program a test that will be killed.
const ROLE: &str = "SWEEPER_IS_KILLED";

/// Not a test: starts a daemon, and waits to be killed.
#[test]
fn is_killed() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let world = World::new();
    world.ok(&["up"]);
    println!("daemon {}", world.daemon_pid());
    std::thread::sleep(Duration::from_secs(1000));
}

#[test]
fn what_a_test_started_ends_although_the_test_was_killed() {
    let [program, words @ ..] = again::words("sweeper::is_killed");
    let mut command = Command::new(program);
    command.args(words).env(ROLE, "1").stdout(Stdio::piped());
    let mut test = command.spawn().unwrap();
    let lines = Lines::of(test.stdout.take().unwrap());
    let daemon = lines.until("its daemon", |line| line.starts_with("daemon "));
    let daemon = daemon.trim_start_matches("daemon ").parse().unwrap();
    let daemon = Held::open(daemon).unwrap();
    test.kill().unwrap();
    test.ended();
    assert!(daemon.ends_within(crate::processes::PATIENCE), "the daemon of a killed test lives on");
}
