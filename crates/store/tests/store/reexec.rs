//! Second processes without a second program: the test itself, started again with a role to play.

use std::process::{Command, Stdio};

/// The argument of a test that was started by another test.
pub(crate) fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// This test program, told to run `test` in a role; `before` goes in front of it, like `sudo`.
pub(crate) fn again(before: &[&str], test: &str, role: &str) -> Command {
    let program = std::env::current_exe().unwrap().into_os_string();
    let mut words = before.iter().map(Into::into).chain([program]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(["--exact", test, "--nocapture"]).env(ROLE, role).stdin(Stdio::piped());
    command
}

const ROLE: &str = "PINFOLD_STORE_TEST_ROLE";
