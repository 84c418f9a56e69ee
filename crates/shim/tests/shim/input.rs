//! Input for an agent.

use crate::world::{Daemon, World, command, shell};
use pinfold_core::exit::Exit;
use pinfold_core::ids::{MessageId, RunNumber};
use pinfold_shim::log::Stream;
use pinfold_shim::{Command, InputRefused, Report, Start, Stdin};

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
