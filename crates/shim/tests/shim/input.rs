//! Input for an agent.

use crate::world::{Daemon, World, command, shell, wait_until};
use pinfold_core::exit::Exit;
use pinfold_core::ids::{MessageId, RunNumber};
use pinfold_core::inbox::Read;
use pinfold_shim::log::Stream;
use pinfold_shim::{Command, InputRefused, Report, Start, Stdin};
use std::fs::OpenOptions;
use std::io::Write;

fn send(daemon: &mut Daemon, run: u64, message: u128, attempt: u32, text: &[u8]) {
    let (run, message) = (RunNumber(run), MessageId(message));
    daemon.send(&Command::Input { run, message, attempt, bytes: text.to_vec(), says_done: false });
}

fn taken(daemon: &mut Daemon) -> (u128, u32) {
    daemon.expect("InputTaken", |report| match report {
        Report::InputTaken { message, attempt, .. } => Some((message.0, *attempt)),
        Report::InputRefused { why, .. } => panic!("refused: {why:?}"),
        _ => None,
    })
}

fn refused(daemon: &mut Daemon) -> (u128, InputRefused) {
    daemon.expect("InputRefused", |report| match report {
        Report::InputRefused { message, why, .. } => Some((message.0, *why)),
        _ => None,
    })
}

#[test]
fn the_same_delivery_twice_is_written_once_and_told_twice() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(command(1, &["cat"]));
    daemon.started();
    for (message, attempt) in [(1 << 100, 1), (1 << 100, 1), (1 << 100, 2), (2, 1), (2, 1)] {
        send(&mut daemon, 1, message, attempt, format!("{}-{attempt}\n", message % 7).as_bytes());
        assert_eq!(taken(&mut daemon), (message, attempt));
    }
    daemon.send(&Command::CloseInput { run: RunNumber(1) });
    assert_eq!(daemon.exited().ended.exit, Exit::Code(0));
    assert_eq!(world.log("api", Stream::Out), b"2-1\n2-2\n2-1\n");
}

#[test]
fn an_input_longer_than_the_pipe_is_taken_when_the_agent_has_read_it() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(shell(1, "read go; head -c 3000000 | wc -c; exec cat >/dev/null"));
    daemon.started();
    send(&mut daemon, 1, 1, 1, &vec![b'x'; 3_000_000]);
    // Too much waits: the next one is refused, not silently lost.
    send(&mut daemon, 1, 2, 1, b"more");
    assert_eq!(refused(&mut daemon), (2, InputRefused::Full));
    daemon.send(&Command::CloseInput { run: RunNumber(1) });
    daemon.exited();
}

#[test]
fn input_for_an_agent_that_does_not_read_is_refused() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(Start { stdin: Stdin::Null, ..command(1, &["cat"]) });
    daemon.started();
    assert_eq!(daemon.exited().ended.exit, Exit::Code(0));
    send(&mut daemon, 1, 1, 1, b"late");
    assert_eq!(refused(&mut daemon), (1, InputRefused::Closed));

    daemon.start(shell(2, "exec <&-; echo closed; exec sleep 1000"));
    daemon.started();
    daemon.printed("closed");
    send(&mut daemon, 2, 2, 1, b"to nobody");
    assert_eq!(refused(&mut daemon), (2, InputRefused::Closed));
}

#[test]
fn an_interrupt_reaches_the_agent() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(shell(1, "trap 'echo interrupted; exit 3' INT; echo ready; while :; do sleep 0.1; done"));
    daemon.printed("ready");
    daemon.send(&Command::Interrupt { run: RunNumber(1) });
    assert_eq!(daemon.exited().ended.exit, Exit::Code(3));
}

/// Stops the shim, or lets it continue.
fn signal(daemon: &Daemon, signal: rustix::process::Signal) {
    let shim = rustix::process::Pid::from_child(&daemon.child);
    rustix::process::kill_process(shim, signal).unwrap();
}

#[test]
fn a_mark_printed_before_a_message_is_written_ends_no_turn_however_much_was_printed() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let start = shell(1, "read -r line; echo \"PINFOLD_DONE to $line\"; exec sleep 1000");
    daemon.start(Start { says_done: true, ..start });
    let (_, pid, _) = daemon.started();
    // As much as a pipe can hold without privileges; the mark is at its end.
    let mut output = OpenOptions::new().write(true).open(format!("/proc/{pid}/fd/1")).unwrap();
    let size = rustix::pipe::fcntl_setpipe_size(&output, 1 << 20).unwrap();
    signal(&daemon, rustix::process::Signal::STOP);
    let stat = format!("/proc/{}/stat", daemon.child.id());
    wait_until("the shim is stopped", || crate::world::read(stat.as_ref()).contains(") T "));
    let mark = b"\nPINFOLD_DONE early\n";
    output.write_all(&vec![b'x'; size - 4096]).unwrap();
    output.write_all(mark).unwrap();
    let (run, message) = (RunNumber(1), MessageId(7));
    daemon.send(&Command::Input { run, message, attempt: 1, bytes: b"hello\n".to_vec(), says_done: true });
    signal(&daemon, rustix::process::Signal::CONT);
    let answer = daemon.expect("TurnDone", |report| match report {
        Report::TurnDone(turn) => turn.done.as_ref().map(|done| done.answer.clone()),
        _ => None,
    });
    assert_eq!(String::from_utf8_lossy(&answer), " to hello");
    let strays = daemon.passed.iter().filter(|report| matches!(report, Report::StrayDone { .. })).count();
    assert_eq!(strays, 1);
}

#[test]
fn an_end_shows_whether_the_message_was_taken_from_the_pipe() {
    // What the agent does, the messages it is given, and whether it may have read the last one.
    let rows: [(&str, &[&[u8]], Read); 6] = [
        ("exit 1", &[b"one\n"], Read::Never),
        ("read -r line; exit 1", &[b"one\n"], Read::Maybe),
        ("read -r line; exit 1", &[b"one\n", b"two\n"], Read::Never),
        ("head -c 5 >/dev/null; exit 1", &[b"one\n", b"two\n"], Read::Maybe),
        ("sh -c 'read -r line' & wait; exit 1", &[b"one\n"], Read::Never),
        ("exit 1", &[], Read::Never),
    ];
    let world = World::new();
    let mut daemon = world.shim("api");
    for (run, (script, messages, read)) in (1..).zip(rows) {
        let go = world.path(&format!("go-{run}")).display().to_string();
        daemon.start(shell(run, &format!("until test -e {go}; do sleep 0.01; done; {script}")));
        daemon.started();
        for (message, text) in (1..).zip(messages) {
            send(&mut daemon, run, message, 1, text);
            assert_eq!(taken(&mut daemon), (message, 1));
        }
        std::fs::write(&go, "").unwrap();
        assert_eq!(daemon.exited().ended.read, read, "{script}, given {}", messages.len());
        let recorded = world.records("api").into_iter().find(|exited| exited.run == RunNumber(run)).unwrap();
        assert_eq!(recorded.ended.read, read, "{script}, recorded");
    }
}
