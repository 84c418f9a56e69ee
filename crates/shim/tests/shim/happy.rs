//! An agent starts, is kept, and ends.

use crate::world::{World, command, shell};
use pinfold_core::exit::Exit;
use pinfold_core::ids::RunNumber;
use pinfold_shim::log::Stream;
use pinfold_shim::{Command, Keeping, Report};

#[test]
fn a_run_is_started_kept_recorded_and_told() {
    let world = World::new();
    let mut daemon = world.shim("api");
    assert_eq!((daemon.welcome.keeping, daemon.welcome.exits.len()), (Keeping::Standing, 0));
    daemon.start(shell(1, "echo out; echo err >&2; exit 7"));
    let (run, pid, fence) = daemon.started();
    let exited = daemon.exited();
    assert_eq!((run, exited.run, exited.pid, exited.fence), (1, RunNumber(1), pid, fence));
    assert_eq!(exited.ended.exit, Exit::Code(7));
    assert!(!exited.ended.forced);
    assert_eq!(world.records("api"), [exited]);
    assert_eq!(world.log("api", Stream::Out), b"out\n");
    assert_eq!(world.log("api", Stream::Error), b"err\n");
    daemon.send(&Command::Release);
    assert_eq!(daemon.gone().last(), Some(&Report::Leaving));
    assert!(world.holder("api").is_none());
}

#[test]
fn the_end_of_an_agent_is_told_as_the_kernel_tells_it() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let rows = [
        ("exit 0", Exit::Code(0)),
        ("exit 255", Exit::Code(255)),
        ("kill -TERM $$", Exit::Signal(15)),
        ("kill -KILL $$", Exit::Signal(9)),
        ("sh -c 'kill -KILL $$'", Exit::Code(137)),
    ];
    for (number, (script, exit)) in rows.into_iter().enumerate() {
        let start = if script.contains("sh -c") {
            // The semicolon keeps the outer shell from becoming the inner one.
            shell(number as u64 + 1, &format!("{script}; exit $?"))
        } else {
            shell(number as u64 + 1, script)
        };
        daemon.start(start);
        daemon.started();
        assert_eq!(daemon.exited().ended.exit, exit, "{script}");
    }
}

#[test]
fn a_program_is_found_in_the_path_of_its_own_environment() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(command(1, &["true"]));
    daemon.started();
    assert_eq!(daemon.exited().ended.exit, Exit::Code(0));
}

#[test]
fn whoever_starts_a_shim_by_hand_is_told_what_it_is() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_test-pinfold-shim"));
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        text,
        "error: the daemon did not say what to keep\nhint: pinfold-shim is started by pinfold, not by hand\n"
    );
}
