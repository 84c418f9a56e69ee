//! A home, shims and verbs of the version before, together with those of this one.

use crate::processes::{self, Held};
use crate::tty::Tty;
use crate::world::{Answer, World, finish, number};
use std::path::{Path, PathBuf};

/// The `pinfold` of the version before, with its `pinfold-shim` beside it.
fn before() -> PathBuf {
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/before");
    let folder = std::env::var_os("PINFOLD_BEFORE").map_or_else(usual, PathBuf::from);
    for program in ["pinfold", "pinfold-shim"] {
        let path = folder.join(program);
        assert!(path.is_file(), "{} is missing: `./test before` makes it", path.display());
    }
    folder.join("pinfold").canonicalize().unwrap()
}

/// Two versions that share a home.
struct Versions {
    now: World,
    before: PathBuf,
}

impl Versions {
    fn new() -> Versions {
        Versions { now: World::new(), before: before() }
    }

    /// A verb of the version before, as a command.
    fn command(&self, words: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(&self.before);
        let new = self.now.command(words);
        command.args(words).stdin(std::process::Stdio::null()).current_dir(&self.now.root);
        for (name, value) in new.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    /// Runs a verb of the version before.
    fn old(&self, words: &[&str]) -> Answer {
        let answer = finish(&mut self.command(words));
        assert_eq!(answer.code, 0, "{words:?} of the version before: {answer:?}\n{}", self.now.daemon_log());
        answer
    }

    /// The program of the home's daemon.
    fn program(&self) -> PathBuf {
        std::fs::read_link(format!("/proc/{}/exe", self.now.daemon_pid())).unwrap()
    }

    fn is_of_this_version(&self) -> bool {
        self.program() == self.now.binary.canonicalize().unwrap()
    }

    /// Creates sessions with verbs of the version before: one that prints, one with a terminal, one that chats.
    fn inhabit(&self) {
        self.old(&["new", "plain", "--", "sh", "-c", "echo home=$PINFOLD_HOME; exec sleep 100000"]);
        self.old(&["new", "screen", "--pty", "--", "sh", "-c", "echo here I am; exec cat"]);
        let chat = "while read -r line; do echo \"PINFOLD_DONE $line\"; done";
        self.old(&["new", "chat", "--mode", "always", "--turns", "done", "--", "sh", "-c", chat]);
        assert_eq!(self.old(&["send", "chat", "one", "--wait", "30s"]).stdout.trim(), "one");
        self.now.printed("screen", "here I am");
    }
}

const ALL: [&str; 3] = ["plain", "screen", "chat"];

/// What must not change when a daemon is replaced.
fn facts(world: &World) -> Vec<[serde_json::Value; 4]> {
    let of = |name| {
        let session = world.show(name);
        ["pid", "shim_pid", "run", "fence"].map(|field| session[field].clone())
    };
    ALL.map(of).to_vec()
}

/// Checks everything that this version's daemon does with shims of the version before.
fn check_taken_over(versions: &Versions, before: &[[serde_json::Value; 4]]) {
    let world = &versions.now;
    assert!(versions.is_of_this_version());
    for name in ALL {
        world.wait(name, "running");
    }
    assert_eq!(facts(world), before);
    assert_eq!(world.ok(&["send", "chat", "two", "--wait", "30s"]).stdout.trim(), "two");
    let tty = Tty::start(world.command(&["attach", "screen"]), 24, 80);
    tty.shows("here I am");
    // A run that this version starts under such a shim gets this version's variables.
    world.ok(&["restart", "plain"]);
    world.wait("plain", "running");
    assert_eq!(world.printed("plain", "home=/"), world.home.to_str().unwrap()[1..]);
    world.check_history();
    world.ok(&["down"]);
    world.assert_no_members();
}

#[test]
fn the_first_up_of_this_version_takes_over_a_home_of_the_version_before_with_its_live_shims() {
    let versions = Versions::new();
    versions.inhabit();
    assert_eq!(versions.program(), versions.before);
    let before = facts(&versions.now);
    versions.now.ok(&["up", "--replace"]);
    check_taken_over(&versions, &before);
}

#[test]
fn shims_of_the_version_before_whose_daemon_was_killed_are_found() {
    let versions = Versions::new();
    versions.inhabit();
    let before = facts(&versions.now);
    processes::kill(versions.now.daemon_pid());
    versions.now.ok(&["up"]);
    check_taken_over(&versions, &before);
}

#[test]
fn verbs_of_the_version_before_work_with_this_daemon() {
    let versions = Versions::new();
    versions.now.ok(&["up"]);
    let daemon = versions.now.daemon_pid();
    versions.inhabit();
    assert_eq!(number(&versions.old(&["--json", "status"]).json()["pid"]), daemon);
    for words in [&["ls"][..], &["why", "plain"], &["logs", "plain"], &["events"], &["stop", "plain"]] {
        versions.old(words);
    }
    assert!(versions.is_of_this_version());
    versions.old(&["down"]);
    Held::open(daemon).into_iter().for_each(|daemon| daemon.wait());
    versions.now.assert_no_members();
}

#[test]
fn verbs_of_this_version_work_with_a_daemon_of_the_version_before() {
    let versions = Versions::new();
    versions.inhabit();
    let (world, daemon) = (&versions.now, versions.now.daemon_pid());
    for words in [&["ls"][..], &["why", "plain"], &["logs", "plain"], &["events"], &["stop", "plain"]] {
        world.ok(words);
    }
    assert_eq!(world.ok(&["send", "chat", "two", "--wait", "30s"]).stdout.trim(), "two");
    assert_eq!(versions.program(), versions.before);
    assert_eq!(world.json(&["down"])["was_up"], true);
    Held::open(daemon).into_iter().for_each(|daemon| daemon.wait());
    world.assert_no_members();
}

#[test]
fn the_version_before_refuses_a_home_of_this_one_and_changes_nothing() {
    let versions = Versions::new();
    versions.now.ok(&["up"]);
    versions.inhabit();
    let before = facts(&versions.now);
    versions.now.ok(&["down", "--keep"]);
    let refused = finish(&mut versions.command(&["up"]));
    assert_eq!(refused.code, 65, "{refused:?}");
    assert!(refused.stderr.contains("schema version"), "{refused:?}");
    versions.now.ok(&["up"]);
    assert_eq!(facts(&versions.now), before);
    versions.now.ok(&["down"]);
    versions.now.assert_no_members();
}

#[test]
fn the_last_exit_of_a_database_of_the_version_before_is_told_from_its_events() {
    let versions = Versions::new();
    versions.old(&["new", "a", "--mode", "once", "--", "sh", "-c", "echo last words; exit 9"]);
    versions.old(&["wait", "a", "--for", "failed", "--timeout", "240s"]);
    versions.old(&["down"]);
    let session = versions.now.show("a");
    assert_eq!(session["last_exit"]["code"], 9, "{session}");
    assert_eq!(session["last_exit"]["last_line"], "last words", "{session}");
}

#[test]
fn an_agent_that_the_version_before_started_is_of_its_own_home_too() {
    let versions = Versions::new();
    versions.old(&["new", "x", "--mode", "on-demand", "--", "cat"]);
    versions.old(&["stop", "x"]);
    // The agent is told its socket, but not its home.
    let home = format!("HOME={}", versions.now.path("elsewhere").display());
    let script = format!("unset XDG_STATE_HOME; '{}' send x hello", versions.now.binary.display());
    versions.old(&["new", "agent", "--mode", "once", "--env", &home, "--", "sh", "-c", &script]);
    versions.now.wait("agent", "stopped");
    assert_eq!(versions.now.json(&["inbox", "x"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_daemon_of_the_version_before_that_lost_its_socket_is_named() {
    let versions = Versions::new();
    versions.old(&["up"]);
    let daemon = versions.now.daemon_pid();
    std::fs::remove_file(versions.now.home.join("pinfold.sock")).unwrap();
    std::thread::scope(|scope| {
        for words in [&["ls"][..], &["down"]] {
            let now = &versions.now;
            scope.spawn(move || {
                let answer = now.within(crate::processes::PATIENCE, words);
                assert_eq!(answer.code, 69, "{answer:?}");
                assert!(answer.stderr.contains(&format!("kill -9 {daemon}")), "{answer:?}");
            });
        }
    });
    assert!(processes::lives(daemon));
}
