//! The shim aborts while it writes a tape. Whatever is left, the tape has everything that was reported, and
//! nothing is sent twice.

use crate::crashes::{between, traced};
use crate::holds::{held, other};
use crate::taped::{say, taped, word};
use crate::world::{Daemon, Ends, World, read, wait_until, welcome};
use pinfold_core::ids::RunNumber;
use pinfold_shim::client::{Opening, spawn};
use pinfold_shim::{Command, Say};
use std::os::unix::process::ExitStatusExt;

const RUN: RunNumber = RunNumber(1);

/// A shim that aborts at a step.
fn fragile(world: &World, point: &str) -> Daemon {
    let opening = Opening { crash_at: Some(point.into()), ..world.opening("api") };
    let guard = world.lock("api");
    let (child, mut link) = spawn(&opening, &[(&world.folder, &guard)]).unwrap();
    link.send(&Command::Hello { generation: 1 }).unwrap();
    let seen = welcome(&mut link);
    drop(guard.surrender());
    link.send(&Command::Go).unwrap();
    Daemon { child, link, welcome: seen, passed: Vec::new() }
}

/// Waits until a shim has aborted.
fn aborted(daemon: &mut Daemon, point: &str) {
    let status = daemon.child.ended();
    assert_eq!(status.signal(), Some(6), "{point} was not passed: {:?}", daemon.passed);
}

/// The next shim of the session goes on with the tape: a run of two messages, each of which its agent reads once.
fn goes_on(world: &World, point: &str) {
    let before = world.tape("api");
    let mut daemon = world.shim("api");
    assert_eq!(daemon.welcome.tape, None, "{point}");
    daemon.start(taped(2, 1 << 20, "while read -r line; do echo \"got $line\"; done"));
    for number in [1, 1, 2, 1, 2] {
        say(&mut daemon, Say { run: RunNumber(2), ..word(number, &format!("{number}\n")) });
    }
    daemon.send(&Command::CloseInput { run: RunNumber(2) });
    let end = daemon.exited().tape.unwrap().end;
    let next = crate::taped::Found::on(&world.opening("api").tape.unwrap(), RunNumber(2));
    assert_eq!(next.out, b"got 1\ngot 2\n", "{point}");
    assert_eq!((next.said.len(), next.end), (2, end), "{point}");
    let after = world.tape("api");
    assert_eq!((after.out, after.said), (before.out, before.said), "{point}");
}

#[test]
fn crashes_while_something_is_said_leave_it_on_the_tape_and_never_twice_with_the_agent() {
    let text = format!("{}\n", "x".repeat(400_000));
    for point in ["say.taped", "say.half", "say.written"] {
        let world = World::new();
        let mut daemon = fragile(&world, point);
        let heard = world.path("heard");
        daemon.start(taped(1, 1 << 20, &format!("exec cat > {}", heard.display())));
        daemon.started();
        say(&mut daemon, word(1, &text));
        aborted(&mut daemon, point);
        let found = world.tape("api");
        assert_eq!(found.said, [(1, "prompt 1 1".into())], "{point}");
        assert_eq!(found.ends, 0, "{point}");
        goes_on(&world, point);
        // The lock was free: the agent has read whatever it will.
        let heard = read(&heard);
        assert!(text.starts_with(&heard), "{point}: {} bytes", heard.len());
        assert!(point != "say.taped" || heard.is_empty(), "{} bytes", heard.len());
    }
}

#[test]
fn crashes_behind_an_entry_leave_it_whole() {
    let world = World::new();
    let mut daemon = fragile(&world, "tape.appended");
    daemon.start(taped(1, 1 << 20, "echo hello; sleep 1000"));
    aborted(&mut daemon, "tape.appended");
    let found = world.tape("api");
    assert_eq!((found.out.as_slice(), found.ends), (&b"hello\n"[..], 0));
    goes_on(&world, "tape.appended");
}

#[test]
fn crashes_behind_the_record_of_an_end_leave_the_end_on_the_tape() {
    let world = World::new();
    let mut daemon = fragile(&world, "record.written");
    daemon.start(taped(1, 1 << 20, "read -r line; head -c 100000 /dev/zero"));
    daemon.started();
    say(&mut daemon, word(1, "go\n"));
    aborted(&mut daemon, "record.written");
    let [exited] = &world.records("api")[..] else { panic!("one end") };
    let (found, tape) = (world.tape("api"), exited.tape.unwrap());
    assert_eq!((found.out.len(), found.ends, found.end), (100_000, 1, tape.end));
    assert_eq!((tape.said.said.0, tape.said.written.0), (1, 1));
    goes_on(&world, "record.written");
}

#[test]
fn crashes_behind_an_answer_to_hold_leave_the_locks_free() {
    let world = World::new();
    let mut daemon = fragile(&world, "hold.acked");
    daemon.start(taped(1, 1 << 20, "read line"));
    daemon.started();
    let guard = other(&world, "vendor");
    daemon.link.hold(RUN, &[(&world.folder, &guard)]).unwrap();
    assert_eq!(held(&mut daemon).len(), 1);
    aborted(&mut daemon, "hold.acked");
    // The daemon still has its own copy, and the lock with it.
    assert!(world.holder("vendor").is_some());
    drop(guard.surrender());
    wait_until("the lock is free", || world.holder("vendor").is_none());
}

#[test]
fn crashes_of_power_find_the_tape_on_disk_before_a_record_that_no_daemon_stores() {
    let world = World::new();
    let (mut daemon, trace) = traced(&world);
    daemon.start(taped(1, 1 << 20, "read -r line; echo done; exit 3"));
    daemon.started();
    daemon.send(&Command::CloseInput { run: RUN });
    rustix::net::shutdown(&daemon.link, rustix::net::Shutdown::Both).unwrap();
    daemon.child.ended();
    let trace = read(&trace);
    let steps = between(&trace, "end.empty", "record.unwritten");
    assert!(steps.contains(&"tape.synced"), "{steps:?} of {trace}");
    let steps = between(&trace, "record.written", "leave.marked");
    assert!(steps.contains(&"record.synced"), "{steps:?} of {trace}");
}

#[test]
fn crashes_of_power_cost_what_a_daemon_has_not_stored_and_no_sync_of_the_tape() {
    let world = World::new();
    let (mut daemon, trace) = traced(&world);
    daemon.start(taped(1, 1 << 20, "echo done; read -r line"));
    daemon.started();
    daemon.send(&Command::CloseInput { run: RUN });
    // The daemon stores the end at once.
    daemon.send(&Command::Ack { run: RUN });
    let run = daemon.exited().run;
    daemon.send(&Command::Ack { run });
    daemon.send(&Command::Release);
    daemon.gone();
    let trace = read(&trace);
    assert!(trace.contains("tape.appended"));
    // If it takes longer than 20 ms, both are synced.
    assert_eq!(trace.contains("tape.synced"), trace.contains("record.synced"), "{trace}");
}
