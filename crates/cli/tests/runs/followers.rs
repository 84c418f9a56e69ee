//! Commands that follow something: what they do when the daemon goes, and when their reader goes.

use crate::lines::Lines;
use crate::processes::{self, PATIENCE};
use crate::world::{Ends, World};
use serde_json::json;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::Instant;

/// Everything that follows, with what its first line contains.
const FOLLOWERS: [(&[&str], &str); 3] = [
    (&["logs", "-f", "a"], "begun"),
    (&["--json", "events", "-f", "--since", "0"], "daemon_started"),
    (&["ls", "-w"], "NAME"),
];

/// A command whose streams are read by the test.
struct Follower {
    child: Child,
    stdout: Lines,
    stderr: Lines,
}

impl Follower {
    fn of(world: &World, words: &[&str]) -> Follower {
        let mut command = world.command(words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdout, stderr) =
            (Lines::of(child.stdout.take().unwrap()), Lines::of(child.stderr.take().unwrap()));
        Follower { child, stdout, stderr }
    }

    /// All of them, once each has printed something.
    fn all(world: &World) -> Vec<Follower> {
        let begin = |(words, first): &(&[&str], &str)| {
            let follower = Follower::of(world, words);
            follower.stdout.until("its first line", |line| line.contains(first));
            follower
        };
        FOLLOWERS.iter().map(begin).collect()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn chatty() -> World {
    let world = World::new();
    world.guarded("a", &["--stop-grace", "1s"], "echo begun; exec sleep 100000");
    world
}

#[track_caller]
fn assert_down(world: &World) {
    let status = world.run(&["--no-start", "status"]);
    assert_eq!(status.code, 69, "a daemon runs after `down`: {status:?}");
}

#[test]
fn a_daemon_that_was_stopped_is_not_started_by_what_follows_it() {
    let world = chatty();
    for words in [&["down"][..], &["down", "--keep"]] {
        world.ok(&["up"]);
        world.wait("a", "running");
        let followers = Follower::all(&world);
        world.ok(words);
        for mut follower in followers {
            follower.stderr.until("the reason", |line| line == "the daemon was stopped");
            assert!(follower.child.ended().success());
        }
        assert_down(&world);
    }
    world.ok(&["up"]);
    world.ok(&["down"]);
}

#[test]
fn a_daemon_that_is_asked_to_end_by_a_signal_is_not_started_by_what_follows_it() {
    let world = chatty();
    let followers = Follower::all(&world);
    let daemon = processes::Held::open(world.daemon_pid()).unwrap();
    daemon.signal(rustix::process::Signal::TERM);
    daemon.wait();
    for mut follower in followers {
        follower.stderr.until("the reason", |line| line == "the daemon was stopped");
        assert!(follower.child.ended().success());
    }
    assert_down(&world);
}

#[test]
fn a_daemon_that_crashed_is_started_by_what_follows_it_unless_it_is_stopped_before() {
    let world = chatty();
    for (words, first) in FOLLOWERS {
        let mut follower = Follower::of(&world, words);
        follower.stdout.until("its first line", |line| line.contains(first));
        let crashed = world.daemon_pid();
        world.kill_daemon();
        let until = Instant::now() + PATIENCE;
        while world.run(&["--no-start", "status"]).code != 0 {
            assert!(Instant::now() < until, "{words:?} starts no daemon");
        }
        assert_ne!(world.daemon_pid(), crashed);
        world.ok(&["down"]);
        follower.stderr.until("the reason", |line| line == "the daemon was stopped");
        assert!(follower.child.ended().success());
        world.ok(&["up"]);
        world.wait("a", "running");
    }
    // A follower that is kept from looking until the user has said `down`.
    let follower = Follower::of(&world, &["logs", "-f", "a"]);
    follower.stdout.until("its first line", |line| line == "begun");
    let held = processes::Held::open(follower.child.id()).unwrap();
    held.signal(rustix::process::Signal::STOP);
    world.kill_daemon();
    assert_eq!(world.run(&["down"]).code, 1, "an agent runs on");
    held.signal(rustix::process::Signal::CONT);
    follower.stderr.until("the reason", |line| line == "the daemon was stopped");
    assert_down(&world);
    world.ok(&["up"]);
    world.ok(&["down"]);
}

#[test]
fn what_follows_goes_on_with_the_daemon_that_takes_over() {
    let world = chatty();
    let mut followers = Follower::all(&world);
    for _ in 0..3 {
        world.ok(&["up", "--replace"]);
    }
    world.ok(&["new", "later", "--", "sleep", "100000"]);
    followers[1].stdout.until("an event of the last daemon", |line| line.contains("later"));
    followers[2].stdout.until("a session of the last daemon", |line| line.contains("later"));
    for follower in &mut followers {
        assert!(follower.child.try_wait().unwrap().is_none());
    }
}

#[test]
fn a_message_that_is_waited_for_stays_queued_and_starts_no_daemon_that_was_stopped() {
    let world = World::new();
    let script = "while read -r line; do test -e \"$ROOT/go\" && echo \"PINFOLD_DONE $line\"; done";
    world.guarded("chat", &["--mode", "on-demand", "--turns", "done", "--stop-grace", "1s"], script);
    let mut waits = Follower::of(&world, &["send", "chat", "hello", "--wait"]);
    let until = Instant::now() + PATIENCE;
    while world.show("chat")["inbox"]["in_flight"] != json!(1) {
        assert!(Instant::now() < until, "the message is not delivered");
    }
    world.ok(&["down"]);
    waits.stderr.until("what it waits for", |line| line.contains("until `pinfold up`"));
    assert_down(&world);
    let limited = world.command(&["--no-start", "send", "chat", "x"]).output().unwrap();
    assert_eq!(limited.status.code(), Some(69), "nothing is queued without a daemon");
    std::fs::write(world.path("go"), "").unwrap();
    world.ok(&["up"]);
    assert_eq!(waits.stdout.next("the answer"), "hello");
    assert!(waits.child.ended().success());
}

#[test]
fn waiting_for_an_answer_of_a_stopped_daemon_has_its_limit() {
    let world = World::new();
    world.guarded("chat", &["--mode", "on-demand", "--turns", "done", "--stop-grace", "1s"], "exec cat");
    let mut waits = Follower::of(&world, &["send", "chat", "hello", "--wait", "3s"]);
    let until = Instant::now() + PATIENCE;
    while world.show("chat")["inbox"]["in_flight"] != json!(1) {
        assert!(Instant::now() < until, "the message is not delivered");
    }
    world.ok(&["down"]);
    waits.stderr.until("the end", |line| line.starts_with("error:"));
    assert_eq!(waits.child.ended().code(), Some(124));
    assert_down(&world);
}

/// Both ends of a stream: ours, and one for a command.
fn ends() -> [(OwnedFd, OwnedFd); 2] {
    let (read, write) = std::io::pipe().unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    [(read.into(), write.into()), (ours.into(), theirs.into())]
}

#[test]
fn what_follows_ends_when_nobody_reads_it_even_if_nothing_is_printed() {
    let world = chatty();
    let followers: [(&[&str], i32); 5] = [
        (&["logs", "-f", "a"], 0),
        (&["events", "-f"], 0),
        (&["ls", "-w"], 0),
        (&["attach", "a", "--read-only"], 0),
        // Not done: there is no answer.
        (&["send", "chat", "hello", "--wait"], 1),
    ];
    world.guarded("chat", &["--mode", "on-demand", "--turns", "done"], "exec cat");
    for (words, code) in followers {
        for (ours, theirs) in ends() {
            let mut child = world.command(words).stdout(Stdio::from(theirs)).spawn().unwrap();
            drop(ours);
            assert_eq!(child.ended().code(), Some(code), "{words:?}");
        }
    }
    let until = Instant::now() + PATIENCE;
    while world.show("a")["consumers"] != json!(0) {
        assert!(Instant::now() < until, "a follower without a reader is a consumer");
    }
}
