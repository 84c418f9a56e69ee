//! Sandboxes that an agent may put itself into, and what it tries from there.
#![expect(unsafe_code, reason = "seccomp and Landlock have no safe form")]

use crate::again;
use crate::processes::PATIENCE;
use crate::world::World;
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

/// The variable that makes this program confine itself, and the one with the command it runs then.
const ROLE: &str = "SANDBOX_ROLE";
const THEN: &str = "SANDBOX_THEN";

/// Not a test: confines itself, and runs a command.
#[test]
fn confines_itself() {
    let Ok(role) = std::env::var(ROLE) else { return };
    rustix::thread::set_no_new_privs(true).unwrap();
    match role.as_str() {
        "seccomp" => filter_nothing(),
        "landlock" => write_nowhere(),
        other => panic!("there is no role {other}"),
    }
    let then = std::env::var(THEN).unwrap();
    let error = Command::new("/bin/sh").args(["-c", &then]).env_remove(ROLE).env_remove(THEN).exec();
    panic!("{error}");
}

/// Installs a filter that allows everything: what counts is that there is one.
fn filter_nothing() {
    const ALLOW: u32 = 0x7fff_0000;
    let mut program = [libc::sock_filter { code: 6, jt: 0, jf: 0, k: ALLOW }];
    let program = libc::sock_fprog { len: 1, filter: program.as_mut_ptr() };
    // SAFETY: the program and its one instruction live through the call.
    let done = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// Landlock: forbids writing anywhere. Connecting to a socket stays possible.
fn write_nowhere() {
    const WRITE_FILE: u64 = 1 << 1;
    let handled = WRITE_FILE;
    // SAFETY: the attribute lives through the call, and its length is given with it.
    let ruleset = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &raw const handled, 8, 0) };
    assert!(ruleset >= 0, "needs Landlock: {}", std::io::Error::last_os_error());
    // SAFETY: takes integers only.
    let done = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// The outcome of one attempt.
#[derive(Debug)]
pub(super) struct Tried {
    pub(super) code: i32,
    pub(super) said: String,
}

impl Tried {
    /// Checks that it was refused as not permitted, with these words.
    #[track_caller]
    pub(super) fn is_refused(&self, words: &str) {
        assert!(self.code == 77 && self.said.contains(words), "{self:?}");
    }
}

/// A shell script that runs a command in a sandbox; `$@` is the command.
pub(super) fn entering(sandbox: &str) -> String {
    match sandbox {
        "" => "\"$@\"".to_owned(),
        "namespaces" => "unshare -Urm \"$@\"".to_owned(),
        "processes" => "unshare -Urpf \"$@\"".to_owned(),
        "network" => "unshare -Urn \"$@\"".to_owned(),
        "no_new_privs" => "setpriv --no-new-privs \"$@\"".to_owned(),
        "bare" => "setsid env -i \"PATH=$PATH\" \"PINFOLD_HOME=$PINFOLD_HOME\" \"PINFOLD_LOCKS=$PINFOLD_LOCKS\" \"$@\"".to_owned(),
        role => {
            // The words pass through a shell: they have no quotes in them.
            let own = again::words("security::sandbox::confines_itself").join(" ");
            format!("{ROLE}={role} {THEN}=\"exec $*\" {own}")
        }
    }
}

/// Polls until `look` finds something.
#[track_caller]
pub(super) fn wait_for<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "waited for {what} in vain");
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl World {
    /// Makes a session's agent try named verbs in a sandbox; returns their outcomes.
    pub(super) fn try_in(
        &self,
        session: &str,
        options: &[&str],
        sandbox: &str,
        verbs: &[(&str, &str)],
    ) -> BTreeMap<String, Tried> {
        let (home, locks) = (self.home.display(), self.path("locks"));
        let mut script = format!(
            "export PINFOLD_HOME={home} PINFOLD_LOCKS={}; attempt() {{ {}; }}; cd \"$ROOT\"; ",
            locks.display(),
            entering(sandbox)
        );
        for (name, words) in verbs {
            let program = self.binary.display();
            let file = format!("\"$ROOT/{session}-{name}\"");
            script.push_str(&format!(
                "attempt timeout 30 {program} {words} >{file}.said 2>&1; echo $? >{file}.code; "
            ));
        }
        script.push_str(&format!("echo over >\"$ROOT/{session}-over\"; exec sleep 100000"));
        let new = ["new", session, "--mode", "once", "--env", "ROOT"];
        self.ok(&[&new, options, &["--", "sh", "-c", &script]].concat());
        wait_for("the end of what is tried", || self.path(&format!("{session}-over")).exists().then_some(()));
        let tried = |name: &str| {
            let read =
                |kind: &str| std::fs::read_to_string(self.path(&format!("{session}-{name}.{kind}"))).unwrap();
            Tried { code: read("code").trim().parse().unwrap(), said: read("said") }
        };
        verbs.iter().map(|(name, _)| ((*name).to_owned(), tried(name))).collect()
    }
}
