//! Rights that not every user has. A test that needs one gets it as root, in a user namespace or by `sudo -n`;
//! where none is to be had, it is listed as not run. For root nothing is ever listed: what cannot be done fails.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::process::{Command, Stdio};

/// Names the file in which tests are listed that are not run.
const LIST: &str = "PINFOLD_TEST_NOT_RUN";
/// Names, in a test that was started again, what it was given.
const GIVEN: &str = "PINFOLD_TEST_GIVEN";

/// What a test needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// It mounts a file system.
    Mount,
    /// It starts processes in other pid and time namespaces.
    Namespaces,
    /// It puts processes into user namespaces.
    UserNamespaces,
    /// It has files and processes of a second user.
    OtherUser,
    /// It has a second user who mounts file systems in a user namespace.
    OtherUsersMount,
    /// It makes control groups of version 2.
    Groups,
    /// It freezes a process so that no signal ends it.
    Freezer,
    /// It starts a program that works for the machine's own root only.
    Root,
}

/// The beginning of a command that runs another one with rights; an empty one runs it as it is.
type Way = &'static [&'static str];

const HERE: Way = &[];
const NAMESPACE: Way = &["unshare", "--user", "--map-root-user", "--mount"];
/// With a range of user ids from /etc/subuid, which the set-uid program `newuidmap` maps.
const NAMESPACE_OF_USERS: Way = &["unshare", "--user", "--map-root-user", "--map-auto", "--mount"];
const SUDO: Way = &["sudo", "-n", "--"];

impl Need {
    const ALL: [Need; 8] = [
        Need::Mount,
        Need::Namespaces,
        Need::UserNamespaces,
        Need::OtherUser,
        Need::OtherUsersMount,
        Need::Groups,
        Need::Freezer,
        Need::Root,
    ];

    fn reason(self) -> &'static str {
        match self {
            Need::Mount => "mounts a file system",
            Need::Namespaces => "starts processes in other pid and time namespaces",
            Need::UserNamespaces => "puts processes into user namespaces",
            Need::OtherUser => "has files and processes of a second user",
            Need::OtherUsersMount => "has a second user who mounts file systems in a user namespace",
            Need::Groups => "makes control groups",
            Need::Freezer => "freezes a process",
            Need::Root => "starts a program that works for root only",
        }
    }

    /// The ways to get it, in the order in which they are tried.
    fn ways(self) -> &'static [Way] {
        match self {
            Need::Mount | Need::Namespaces => &[NAMESPACE, SUDO],
            Need::OtherUser | Need::OtherUsersMount => &[NAMESPACE_OF_USERS, SUDO],
            // A namespace owns no group; one may have been delegated to the user.
            Need::UserNamespaces | Need::Groups | Need::Freezer => &[HERE, SUDO],
            Need::Root => &[SUDO],
        }
    }

    /// A shell script that succeeds where it is to be had.
    fn probe(self) -> &'static str {
        match self {
            Need::Mount => "unshare --mount mount -t tmpfs tmpfs /tmp",
            Need::Namespaces => {
                "unshare --pid --fork --mount-proc true && unshare --time --boottime 100 --fork true"
            }
            Need::Root => "true",
            Need::UserNamespaces => "unshare -Urmpf --mount-proc true && unshare -Urn true",
            Need::OtherUser => "exec setpriv --reuid 54321 --regid 54321 --clear-groups true",
            Need::OtherUsersMount => {
                "exec setpriv --reuid 54321 --regid 54321 --clear-groups unshare -Urm mount -t tmpfs tmpfs /tmp"
            }
            Need::Groups => {
                "mount=$(awk '$3 == \"cgroup2\" { print $2; exit }' /proc/self/mounts); \
                 group=$mount$(sed -n 's/^0:://p' /proc/self/cgroup)/pinfold-test-probe-$$; \
                 mkdir \"$group\" && { sh -c 'echo $$ >\"$0/cgroup.procs\"' \"$group\"; code=$?; \
                 rmdir \"$group\"; exit $code; }"
            }
            Need::Freezer => {
                "mount=$(awk '$3 == \"cgroup\" && $4 ~ /freezer/ { print $2; exit }' /proc/self/mounts); \
                 if [ -z \"$mount\" ]; then exec unshare --mount mount -t cgroup -o freezer freezer /tmp; fi; \
                 mkdir \"$mount/pinfold-test-probe-$$\" && rmdir \"$mount/pinfold-test-probe-$$\""
            }
        }
    }

    fn is_had_by(self, way: Way) -> bool {
        // Where the kernel refuses the namespace, `unshare --map-auto` leaves a process behind.
        let is_possible = way != NAMESPACE_OF_USERS || works(&[NAMESPACE, &["true"]].concat());
        // With the environment of the test: another PATH may find other programs.
        let variables = variables(way);
        let variables: Vec<&str> = variables.iter().map(String::as_str).collect();
        is_possible && works(&[way, &["env"], &variables, &["sh", "-c", self.probe()]].concat())
    }
}

/// Whether a command succeeds; one whose program is missing does not.
fn works(words: &[&str]) -> bool {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Goes on with the test that this is called in if it may do what it needs; else runs it in another process
/// that may, or lists it as not run, and returns from it.
macro_rules! needs {
    ($need:ident) => {{
        fn test() {}
        // Not the thread's name: with one thread, tests run in the main one.
        let name = std::any::type_name_of_val(&test);
        if $crate::rights::was_run_elsewhere(name, $crate::rights::Need::$need) {
            return;
        }
    }};
}
pub(crate) use needs;

/// Returns whether the test is over: it passed in another process, or is listed as not run.
pub(crate) fn was_run_elsewhere(name: &str, need: Need) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if let Ok(given) = std::env::var(GIVEN) {
        let given = Need::ALL.into_iter().find(|need| format!("{need:?}") == given);
        assert!(is_root && given == Some(need), "{given:?} was given where {need:?} is needed");
        return false;
    }
    if is_root {
        return false;
    }
    // The first word is the crate, the last one what the macro adds.
    let name = name.split_once("::").and_then(|(_, rest)| rest.rsplit_once("::")).expect("a path").0;
    match need.ways().iter().find(|way| need.is_had_by(way)) {
        Some(&HERE) => return false,
        Some(way) => run_by(way, name, need),
        None => list(name, need),
    }
    true
}

/// Runs one test of this program; fails if it fails.
fn run_by(way: Way, name: &str, need: Need) {
    let program = std::env::current_exe().expect("this program has a path");
    let mut output = tempfile::tempfile().expect("a temporary file");
    let mut command = Command::new(way[0]);
    command.args(&way[1..]).arg("env").args(variables(way)).arg(format!("{GIVEN}={need:?}")).arg(program);
    // With one thread, the runner prints the test's name and its first line on one.
    command.args(["--exact", name, "--include-ignored", "--nocapture", "--test-threads=2"]);
    // A file, because what a test leaves running may keep a pipe open.
    let writer = || Stdio::from(output.try_clone().expect("a descriptor"));
    command.stdin(Stdio::null()).stdout(writer()).stderr(writer());
    let status = command.status().expect("a way that was tried");
    let mut text = Vec::new();
    output.rewind().and_then(|()| output.read_to_end(&mut text)).expect("the output of the test");
    let text = String::from_utf8_lossy(&text);
    // Indented: whoever counts the summaries of test programs must not count this one.
    println!("by {way:?}:\n  {}", text.trim_end().replace('\n', "\n  "));
    assert!(status.success() && text.contains("\ntest result: ok. 1 passed"), "{name} by {way:?}: {status}");
}

/// What the test has in its environment and sudo would not pass on. Root's temporary folder is not another
/// user's.
fn variables(way: Way) -> Vec<String> {
    let is_passed = |name: &str| {
        let prefixes = ["PINFOLD_", "CARGO_", "RUST_", "INSTA_", "NEXTEST"];
        name == "PATH" || prefixes.iter().any(|prefix| name.starts_with(prefix))
    };
    let named = std::env::vars().filter(|(name, _)| way == SUDO && is_passed(name));
    named.map(|(name, value)| format!("{name}={value}")).collect()
}

/// Writes into the list, if there is one, that a test was not run.
fn list(name: &str, need: Need) {
    let reason = need.reason();
    println!("not run: needs root: {reason}");
    let Some(path) = std::env::var_os(LIST) else { return };
    let line = format!("{} {name}\t{reason}\n", binary());
    let file = File::options().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the list of tests that are not run");
}

/// The name of this test program, as nextest gives it.
fn binary() -> String {
    let (package, program) = (env!("CARGO_PKG_NAME"), env!("CARGO_CRATE_NAME"));
    if package.replace('-', "_") == program { package.to_owned() } else { format!("{package}::{program}") }
}
