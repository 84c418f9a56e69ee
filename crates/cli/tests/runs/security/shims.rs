//! Only the daemon commands a shim, and only people join its terminal.

use super::sandbox::{entering, wait_for};
use crate::again;
use crate::world::World;
use pinfold_core::ids::RunNumber;
use pinfold_shim::attach::{Join, Seat, Shown, ViewerInput};
use pinfold_shim::client::ShimConnection;
use pinfold_shim::{Command, Report, Size, Start};
use serde_json::json;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);
/// The variables that make this program a client of a shim.
const SOCKET: &str = "SHIM_SOCKET";
const WORD: &str = "SHIM_WORD";

/// Not a test: sends one command to a shim, and writes down the outcome.
#[test]
fn speaks_to_a_shim() {
    let Some(socket) = std::env::var_os(SOCKET).map(PathBuf::from) else { return };
    let said = match std::env::var(WORD).unwrap().as_str() {
        "hello" => hello(&socket, 1 << 63),
        "join" => join(&socket),
        other => panic!("there is no word {other}"),
    };
    println!("heard: {said}");
}

/// Claims to be the daemon, and starts something else if it is believed.
fn hello(socket: &Path, generation: u64) -> &'static str {
    let Ok(mut link) = ShimConnection::connect(socket) else { return "nobody" };
    link.send(&Command::Hello { generation }).unwrap();
    match link.receive(Some(Instant::now() + PATIENCE)) {
        Ok(Some(Report::Welcome(_))) => {
            let run = RunNumber(2);
            let arguments = vec!["/bin/sh".into(), "-c".into(), "exec sleep 100000".into()];
            _ = link.send(&Command::Stop { run: RunNumber(1), grace: Duration::ZERO });
            _ = link.send(&Command::Start(Box::new(Start { run, arguments, ..Start::default() })));
            "welcome"
        }
        Ok(_) | Err(_) => "refused",
    }
}

/// Joins a terminal, and types into it if it is shown one.
fn join(socket: &Path) -> &'static str {
    let Ok((mut stream, mut decoder)) = pinfold_shim::attach::connect(socket) else { return "nobody" };
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut bytes = Vec::new();
    ViewerInput::Join(Join { run: RunNumber(1), size: Size::default(), seat: Seat::Takes })
        .encode(&mut bytes);
    ViewerInput::Typed(b"typed\n".to_vec()).encode(&mut bytes);
    _ = stream.write_all(&bytes);
    let mut part = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut part) {
        decoder.feed(&part[..count]);
        while let Ok(Some(frame)) = decoder.frame() {
            match Shown::decode(&frame) {
                Ok(Some(Shown::Output(_) | Shown::Keyboard(_))) => return "joined",
                Ok(Some(Shown::Ended)) => return "refused",
                Ok(None) | Err(_) => {}
            }
        }
    }
    "refused"
}

/// A session with a terminal and a listening shim; what is typed there is written down.
fn world_with_terminal() -> (World, PathBuf) {
    let world = World::new();
    let script = "while IFS= read -r line; do echo \"$line\" >>\"$ROOT/typed\"; done";
    world.ok(&["new", "boss", "--pty", "--env", "ROOT", "--", "sh", "-c", script]);
    let socket =
        world.home.join("shims").join(format!("{}.sock", world.show("boss")["id"].as_str().unwrap()));
    wait_for("the shim's socket", || socket.exists().then_some(()));
    (world, socket)
}

/// The outcome for an agent of another session that sends a command to the shim.
fn heard_by_an_agent(world: &World, socket: &Path, sandbox: &str, word: &str) -> String {
    let own = again::words("security::shims::speaks_to_a_shim").join(" ");
    let script = format!(
        "attempt() {{ {}; }}; export {SOCKET}={} {WORD}={word}; \
         attempt {own} >\"$ROOT/heard\" 2>&1; \
         echo over >\"$ROOT/over\"; exec sleep 100000",
        entering(sandbox),
        socket.display()
    );
    world.ok(&["new", "evil", "--mode", "once", "--env", "ROOT", "--", "sh", "-c", &script]);
    wait_for("the shim's answer", || world.path("over").exists().then_some(()));
    let heard = std::fs::read_to_string(world.path("heard")).unwrap();
    heard
        .lines()
        .find_map(|line| line.split_once("heard: "))
        .unwrap_or_else(|| panic!("{heard}"))
        .1
        .to_owned()
}

#[track_caller]
fn is_untouched(world: &World, before: &serde_json::Value) {
    let now = world.show("boss");
    assert_eq!((&now["state"], &now["pid"]), (&json!("running"), &before["pid"]));
    assert!(!world.path("typed").exists(), "nothing was typed");
    // The daemon has not lost it.
    world.ok(&["stop", "boss", "--timeout", "1s"]);
}

#[test]
fn a_hello_of_somebody_without_the_homes_lock_is_dropped() {
    let (world, socket) = world_with_terminal();
    let before = world.show("boss");
    for generation in [0, 1000, 1 << 32, 1 << 63, u64::MAX] {
        assert_eq!(hello(&socket, generation), "refused", "{generation}");
    }
    is_untouched(&world, &before);
}

#[test]
fn an_agent_cannot_take_a_session_over_through_its_shim() {
    let (world, socket) = world_with_terminal();
    let before = world.show("boss");
    assert_eq!(heard_by_an_agent(&world, &socket, "", "hello"), "refused");
    is_untouched(&world, &before);
}

#[test]
fn an_agent_cannot_join_the_terminal_of_another() {
    let (world, socket) = world_with_terminal();
    let before = world.show("boss");
    assert_eq!(heard_by_an_agent(&world, &socket, "", "join"), "refused");
    is_untouched(&world, &before);
}

#[test]
fn one_that_is_confined_cannot_join_a_terminal() {
    let (world, socket) = world_with_terminal();
    let before = world.show("boss");
    assert_eq!(heard_by_an_agent(&world, &socket, "no_new_privs", "join"), "refused");
    is_untouched(&world, &before);
}

#[test]
fn a_person_joins_a_terminal() {
    let (world, socket) = world_with_terminal();
    assert_eq!(join(&socket), "joined");
    wait_for("what was typed", || world.path("typed").exists().then_some(()));
}

#[test]
fn while_no_daemon_lives_a_shim_waits_for_the_next_one_and_obeys_nobody_else() {
    let (world, socket) = world_with_terminal();
    let before = world.show("boss");
    world.kill_daemon();
    assert_eq!(hello(&socket, 1 << 31), "refused", "a person without the lock");
    world.ok(&["up"]);
    is_untouched(&world, &before);
}

#[test]
fn a_confined_agent_that_took_the_homes_lock_is_not_the_daemon() {
    let (world, socket) = world_with_terminal();
    let before = world.show("boss");
    let own = again::words("security::shims::speaks_to_a_shim").join(" ");
    // It waits for the daemon's end, takes its lock, and says hello while holding it: descriptor 3 is that of
    // the lock.
    let script = format!(
        "exec 3<{}/daemon.lock; flock 3; \
         {SOCKET}={} {WORD}=hello setpriv --no-new-privs {own} \
         >\"$ROOT/heard\" 2>&1; echo over >\"$ROOT/over\"; exec 3<&-; exec sleep 100000",
        world.home.display(),
        socket.display()
    );
    world.ok(&["new", "evil", "--mode", "once", "--env", "ROOT", "--", "sh", "-c", &script]);
    world.kill_daemon();
    wait_for("the shim's answer", || world.path("over").exists().then_some(()));
    let heard = std::fs::read_to_string(world.path("heard")).unwrap();
    assert!(heard.contains("heard: refused"), "{heard}");
    is_untouched(&world, &before);
}
