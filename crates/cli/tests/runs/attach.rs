//! Terminals of sessions, on real pseudo-terminals: keys are typed, screens are read.

use crate::processes;
use crate::tty::Tty;
use crate::world::{Ends, World};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

impl World {
    /// Creates a session with a terminal.
    fn pty(&self, name: &str, command: &[&str]) {
        self.ok(&[&["new", name, "--pty", "--env", "ROOT", "--"], command].concat());
    }

    pub(crate) fn shell(&self, name: &str) {
        self.pty(name, &["env", "PS1=$ ", "sh", "-i"]);
    }

    pub(crate) fn attach(&self, name: &str, options: &[&str]) -> Tty {
        self.attach_at(name, options, 24, 80)
    }

    fn attach_at(&self, name: &str, options: &[&str], rows: u16, columns: u16) -> Tty {
        Tty::start(self.command(&[&["attach", name], options].concat()), rows, columns)
    }

    /// Waits until a session has another agent than this one.
    fn runs_anew(&self, name: &str, pid: u32) {
        let until = Instant::now() + processes::PATIENCE;
        while self.show(name)["pid"].as_u64().is_none_or(|now| now == u64::from(pid)) {
            assert!(Instant::now() < until, "{}", self.show(name));
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Waits until this many clients are attached or follow.
    pub(crate) fn counts(&self, name: &str, consumers: u64) {
        let until = Instant::now() + processes::PATIENCE;
        while self.show(name)["consumers"] != consumers {
            assert!(Instant::now() < until, "{}", self.show(name));
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

/// Types until it is seen: the keyboard passes on a moment after the client that had it is gone.
fn types(tty: &Tty, keys: &[u8], seen_by: &Tty, text: &str) {
    let until = Instant::now() + processes::PATIENCE;
    while !seen_by.contents().contains(text) {
        assert!(Instant::now() < until, "no {text} on:\n{}", seen_by.contents());
        tty.keys(keys);
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

#[test]
fn a_shell_is_typed_to_and_left_and_found_again() {
    let world = World::new();
    world.shell("sh");
    let mut first = world.attach("sh", &[]);
    let before = first.before.clone();
    first.shows("$");
    first.keys("echo one-$((40+2)) wörld 日本\r".as_bytes());
    first.shows("one-42 wörld 日本");
    first.detach();
    assert_eq!(first.settings(), before);
    let pid = world.pid("sh");
    let mut second = world.attach("sh", &[]);
    second.shows("one-42 wörld 日本");
    second.keys(b"echo two\r");
    second.shows("\ntwo\n");
    second.keys(b"exit\r");
    assert!(second.ended().success());
    second.shows("`sh` exited with 0 after ");
    assert_eq!(second.settings(), before);
    world.runs_anew("sh", pid);
}

#[test]
fn a_terminal_is_joined_in_a_home_whose_path_is_not_utf_8() {
    let mut world = World::new();
    world.home = world.root.join(OsStr::from_bytes(b"h\xffme"));
    world.shell("sh");
    let mut tty = world.attach("sh", &[]);
    tty.shows("$");
    tty.keys(b"echo one-$((40+2))\r");
    tty.shows("one-42");
    tty.detach();
}

#[test]
fn how_to_leave_is_said_once_before_the_screen_begins() {
    let world = World::new();
    world.shell("sh");
    let mut tty = world.attach("sh", &[]);
    tty.shows("$");
    let told = |tty: &Tty, text: &str| tty.everything().matches(text).count();
    assert_eq!(told(&tty, "joining `sh`; Ctrl-] detaches"), 1, "{}", tty.everything());
    assert!(!tty.contents().contains("Ctrl-]"), "the screen is the program's:\n{}", tty.contents());
    tty.keys(b"echo more\r");
    tty.shows("\nmore\n");
    assert_eq!(told(&tty, "Ctrl-]"), 1);
    tty.detach();
    let mut watching = world.attach("sh", &["--read-only"]);
    watching.shows("more");
    assert_eq!(told(&watching, "looking on at `sh`; Ctrl-] detaches"), 1, "{}", watching.everything());
    watching.detach();
    let mut quiet = world.attach("sh", &["--quiet"]);
    quiet.shows("more");
    assert_eq!(told(&quiet, "Ctrl-]"), 0, "{}", quiet.everything());
    quiet.keys(b"\x1d");
    assert!(quiet.ended().success());
}

#[test]
fn the_size_follows_whoever_types() {
    let world = World::new();
    world.shell("sh");
    let first = world.attach_at("sh", &[], 30, 100);
    first.shows("$");
    first.keys(b"stty size\r");
    first.shows("30 100");
    let small = world.attach_at("sh", &["--read-only"], 10, 40);
    small.shows("30 100");
    first.resize(20, 60);
    first.keys(b"clear; stty size\r");
    first.shows("20 60");
    small.shows("20 60");
    // A terminal of another size sees the same screen, as far as it has room.
    first.keys(b"clear; seq 1 60 | tr '\\n' ' '; printf '\\nthe end\\n'\r");
    small.shows("the end");
    assert_eq!(small.contents().lines().next(), Some("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 1"));
}

#[test]
fn one_types_the_others_look_on_until_it_goes() {
    let world = World::new();
    world.shell("sh");
    let mut first = world.attach("sh", &[]);
    first.shows("$");
    let mut second = world.attach("sh", &[]);
    second.shows("$");
    let shares = world.attach("sh", &["--share"]);
    shares.shows("$");
    world.counts("sh", 3);
    second.keys(b"echo sec''ond\r");
    second.shows(&format!("process {} types", first.child.id()));
    first.keys(b"echo fi''rst\r");
    second.shows("first");
    shares.keys(b"echo sha''red\r");
    first.shows("shared");
    assert!(!first.contents().contains("second"));
    first.detach();
    // The keyboard passes on to the client that has waited longest.
    types(&second, b"echo sec''ond\r", &shares, "second");
    let takes = world.attach("sh", &["--now"]);
    takes.shows("second");
    second.shows("second");
    takes.keys(b"echo ta''ken\r");
    second.shows("taken");
    second.keys(b"echo la''te\r");
    second.shows(&format!("process {} types", takes.child.id()));
    second.detach();
    assert!(!takes.contents().contains("late"));
}

#[test]
fn whoever_only_looks_on_changes_nothing() {
    let world = World::new();
    world.shell("sh");
    let mut watcher = world.attach_at("sh", &["--read-only"], 40, 120);
    watcher.shows("$");
    watcher.keys(b"echo no''thing\r");
    let first = world.attach("sh", &[]);
    first.shows("$");
    first.keys(b"stty size\r");
    watcher.shows("24 80");
    assert!(!watcher.contents().contains("nothing"));
    watcher.detach();
}

#[test]
fn a_killed_client_leaves_the_session_and_its_keyboard_to_others() {
    let world = World::new();
    world.shell("sh");
    let first = world.attach("sh", &[]);
    first.shows("$");
    let second = world.attach("sh", &[]);
    second.shows("$");
    let pid = world.pid("sh");
    processes::kill(first.child.id());
    world.counts("sh", 1);
    types(&second, b"echo st''ill\r", &second, "still");
    assert_eq!(world.pid("sh"), pid);
}

#[test]
fn a_terminal_stays_open_over_the_daemons_death() {
    let world = World::new();
    world.shell("sh");
    let mut tty = world.attach("sh", &[]);
    let before = tty.before.clone();
    tty.shows("$");
    let pid = world.pid("sh");
    world.kill_daemon();
    tty.keys(b"echo wi''thout\r");
    tty.shows("without");
    world.ok(&["up"]);
    // The next daemon counts it again.
    world.counts("sh", 1);
    assert_eq!(world.pid("sh"), pid);
    tty.keys(b"echo af''ter\r");
    tty.shows("after");
    world.kill_daemon();
    tty.detach();
    assert_eq!(tty.settings(), before);
    world.ok(&["up"]);
    world.counts("sh", 0);
    assert_eq!(world.pid("sh"), pid);
}

#[test]
fn a_terminal_is_given_back_when_the_shim_dies_or_the_client_is_asked_to_end() {
    let world = World::new();
    world.shell("sh");
    let mut tty = world.attach("sh", &[]);
    let before = tty.before.clone();
    tty.shows("$");
    assert_ne!(tty.settings(), before);
    let pid = world.pid("sh");
    processes::kill(crate::world::number(&world.show("sh")["shim_pid"]));
    assert_eq!(tty.ended().code(), Some(1));
    tty.shows("its shim died");
    assert_eq!(tty.settings(), before);
    world.runs_anew("sh", pid);
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::HUP] {
        let mut tty = world.attach("sh", &[]);
        tty.shows("$");
        let pid = rustix::process::Pid::from_raw(tty.child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        tty.ended();
        assert_eq!(tty.settings(), before);
    }
}

#[test]
fn a_client_that_does_not_read_stops_nobody_and_sees_the_end_later() {
    let world = World::new();
    world.shell("sh");
    let stopped = world.attach("sh", &[]);
    stopped.shows("$");
    let second = world.attach("sh", &["--share"]);
    second.shows("$");
    let pid = rustix::process::Pid::from_raw(stopped.child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    second.keys(b"yes 'a flood of words' | head -c 3000000; echo the-e''nd\r");
    second.shows("the-end");
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    stopped.shows("the-end");
    assert!(stopped.everything().len() < 2_000_000, "what it missed was not sent");
}

#[test]
fn a_stop_ends_a_shell_at_once_and_whoever_is_attached() {
    let world = World::new();
    world.shell("sh");
    let mut tty = world.attach("sh", &[]);
    tty.shows("$");
    let stopped = world.ok(&["stop", "sh"]);
    assert!(stopped.took < std::time::Duration::from_secs(9), "the grace was not needed");
    assert!(tty.ended().success());
    let refused = world.run(&["attach", "sh"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("`pinfold start sh` starts it"), "{refused:?}");
}

#[test]
fn a_terminal_is_not_shown_inside_itself() {
    let world = World::new();
    let home =
        format!("PINFOLD_HOME={} PINFOLD_LOCKS={}", world.home.display(), world.path("locks").display());
    let inside = format!("{home} {} attach sh; echo code $?; sleep 1000", world.binary.display());
    world.pty("sh", &["sh", "-c", &inside]);
    let tty = world.attach("sh", &[]);
    tty.shows("you are inside session `sh` already");
    tty.shows("code 2");
}

#[test]
fn a_session_that_sleeps_is_woken_and_sleeps_again() {
    let world = World::new();
    world.ok(&[
        "new",
        "sh",
        "--pty",
        "--mode",
        "on-demand",
        "--idle",
        "100ms",
        "--",
        "env",
        "PS1=$ ",
        "sh",
        "-i",
    ]);
    assert_eq!(world.show("sh")["state"], "idle");
    let mut tty = world.attach("sh", &[]);
    tty.shows("$");
    world.wait("sh", "running");
    tty.detach();
    world.wait("sh", "idle");
}

#[test]
fn who_holds_the_lock_is_said_to_whoever_attaches() {
    let world = World::new();
    std::fs::create_dir(world.path("work")).unwrap();
    let mut holder = world.command(&["lock", "work", "--", "sleep", "1000"]).spawn().unwrap();
    let until = Instant::now() + processes::PATIENCE;
    while world.json(&["locks"]).as_array().unwrap().is_empty() {
        assert!(Instant::now() < until);
    }
    world.ok(&["new", "sh", "--pty", "--dir", "work", "--", "sh", "-i"]);
    let refused = world.run(&["--json", "attach", "sh"]);
    assert_eq!(refused.code, 75, "{refused:?}");
    assert!(refused.stderr.contains("sleep 1000") && refused.stderr.contains("--kill"), "{refused:?}");
    assert!(refused.json()["error"]["holder"]["pid"].is_number(), "{refused:?}");
    holder.kill().unwrap();
    holder.ended();
}
