//! Codex through its own protocol: a private app server for each session.

use super::deaths::bridge_of;
use super::many::begun;
use super::stage::Stage;
use crate::processes;
use crate::tty::Tty;
use crate::world::{finish, number};
use serde_json::Value;
use std::time::{Duration, Instant};

/// The app servers that run with this stage's home, whatever started them.
fn servers(stage: &Stage) -> Vec<u32> {
    let home = stage.text("user");
    let of_stage = |pid: &u32| processes::variable(*pid, "HOME").as_deref() == Some(home.as_str());
    let is_server = |pid: &u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains("app-server")
    };
    processes::all().into_iter().filter(of_stage).filter(is_server).collect()
}

#[test]
fn a_vendor_session_has_one_writer_in_all_homes_and_by_codex_itself() {
    let stage = begun("codex");
    stage.says("TURN-one");
    let vendor = stage.show()["vendor_session"].as_str().unwrap().to_owned();
    let other = stage.text("other");
    let words = ["new", "second", "--agent", "codex", "--vendor-session", &vendor, "--dir", &other];
    let here = stage.run(&words);
    assert_eq!(here.code, 75, "{here:?}");
    assert!(here.stderr.contains("of session `api`"), "{here:?}");
    let by_hand =
        by_hand(&stage, &["exec", "resume", &vendor, "--json", "--skip-git-repo-check", "TURN-stolen"]);
    assert_ne!(by_hand.code, 0, "{by_hand:?}");
    assert!(by_hand.stderr.contains("already has an active writer"), "{by_hand:?}");
    stage.says("TURN-two");
    assert_eq!(stage.model.shown_with("two"), ["one", "two"]);
    stage.shown("double resume refused");
}

/// Runs Codex to its end, as its user would.
fn by_hand(stage: &Stage, words: &[&str]) -> crate::world::Answer {
    finish(&mut of_user(stage, words))
}

/// Codex as its user starts it.
fn of_user(stage: &Stage, words: &[&str]) -> std::process::Command {
    let pinfold = stage.command(&[]);
    let mut codex = std::process::Command::new("codex");
    codex.args(words).stdin(std::process::Stdio::null()).env_clear();
    codex.envs(pinfold.get_envs().filter_map(|(name, value)| Some((name, value?))));
    codex.current_dir(stage.world.path("other"));
    codex.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    codex
}

#[test]
fn a_users_own_codex_beside_it_is_not_disturbed_and_disturbs_nothing() {
    let stage = begun("codex");
    let message = stage.sends("TURN-one HOLD");
    stage.model.is_asked("one");
    let beside = by_hand(&stage, &["exec", "--json", "--skip-git-repo-check", "TURN-beside"]);
    assert!(beside.code == 0 && beside.stdout.contains("reply to beside"), "{beside:?}");
    stage.model.let_go();
    stage.comes_to(&message, "done");
    stage.ok(&["stop", "api"]);
    let after = by_hand(&stage, &["exec", "--json", "--skip-git-repo-check", "TURN-after"]);
    assert!(after.code == 0 && after.stdout.contains("reply to after"), "{after:?}");
    assert_eq!(servers(&stage), Vec::<u32>::new());
    stage.shown("beside the user's own");
}

#[test]
fn a_thread_that_a_users_own_codex_has_is_waited_for_and_its_holder_is_named() {
    let stage = begun("codex");
    stage.says("TURN-one");
    let vendor = stage.show()["vendor_session"].as_str().unwrap().to_owned();
    stage.ok(&["stop", "api"]);
    let words = ["exec", "resume", &vendor, "--json", "--skip-git-repo-check", "TURN-two HOLD"];
    let mut by_hand = of_user(&stage, &words).spawn().unwrap();
    stage.model.is_asked("two");
    stage.ok(&["start", "api"]);
    let message = stage.sends("TURN-three");
    let holder = stage.world.until("the holder", || stage.show()["holder"]["pid"].as_u64());
    let why = stage.ok(&["why", "api"]).stdout;
    assert!(why.contains(&holder.to_string()), "{why}");
    let below = |pid: u32| pid == by_hand.id() || processes::children(by_hand.id()).contains(&pid);
    assert!(below(u32::try_from(holder).unwrap()), "{holder}: {why}");
    stage.model.let_go();
    by_hand.wait().unwrap();
    stage.comes_to(&message, "done");
    assert_eq!(stage.model.shown_with("three"), ["one", "two", "three"]);
    stage.shown("waits for the user's own");
}

#[test]
fn the_server_that_all_terminals_share_is_told_of_and_left_alone() {
    let stage = Stage::new("codex");
    let words = ["app-server", "--listen", "unix://"];
    let mut shared = of_user(&stage, &words).spawn().unwrap();
    let socket = stage.world.path("user/.codex/app-server-control/app-server-control.sock");
    stage.world.until("the shared server", || socket.exists().then_some(()));
    let new = stage.ok(&["new", "api", "--agent", "codex"]);
    assert!(new.stderr.contains("that all Codex terminals of"), "{new:?}");
    assert!(stage.ok(&["why", "api"]).stderr.contains("that all Codex terminals of"));
    assert_eq!(stage.says("TURN-one"), "reply to one");
    stage.ok(&["stop", "api"]);
    assert_eq!(shared.try_wait().unwrap(), None, "it lives on");
    shared.kill().unwrap();
    shared.wait().unwrap();
    stage.shown("beside the shared server");
}

/// Types a line into a Codex terminal. Codex takes an Enter right after other keys for part of a paste, so it
/// is pressed until it works.
pub(super) fn types(tty: &Tty, text: &str, came: impl Fn() -> bool) {
    tty.keys(text.as_bytes());
    tty.shows(text);
    let until = Instant::now() + processes::PATIENCE;
    while !came() {
        assert!(Instant::now() < until, "nothing comes of {text}:\n{}", tty.contents());
        tty.keys(b"\r");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Leaves a Codex terminal, as a person does.
pub(super) fn quits(tty: &mut Tty) {
    tty.keys(b"/quit");
    tty.shows("/quit");
    let until = Instant::now() + processes::PATIENCE;
    while !tty.is_over() {
        assert!(Instant::now() < until, "it does not quit:\n{}", tty.contents());
        tty.keys(b"\r");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Checks that the run and its identity are the same as before.
#[track_caller]
fn is_the_same_run(stage: &Stage, before: &Value) -> Value {
    let shown = stage.show();
    for name in ["state", "pid", "run", "fence", "shim_pid"] {
        assert_eq!(shown[name], before[name], "{name}");
    }
    assert_eq!(shown["state"], "running");
    shown
}

#[test]
fn its_own_terminal_joins_a_turn_under_way_and_neither_it_nor_its_end_disturbs_anything() {
    let stage = begun("codex");
    stage.says("TURN-one");
    let message = stage.sends("TURN-two HOLD");
    stage.model.is_asked("two");
    let before = stage.show();
    let words = std::fs::read(format!("/proc/{}/cmdline", before["pid"])).unwrap();
    assert!(String::from_utf8_lossy(&words).contains("app-server"), "the pid is the server's");
    let mut tty = stage.attach();
    tty.shows("reply to one");
    tty.shows("TURN-two HOLD");
    let guest = number(&is_the_same_run(&stage, &before)["guest_pid"]);
    // The turn goes on, visibly, while no daemon is alive.
    stage.world.kill_daemon();
    stage.model.let_go();
    tty.shows("reply to two");
    types(&tty, "TURN-three", || stage.model.times("three") > 0);
    tty.shows("reply to three");
    stage.ok(&["up"]);
    assert_eq!(stage.comes_to(&message, "done")["answer"], "reply to two");
    assert_eq!(is_the_same_run(&stage, &before)["guest_pid"], guest);
    // What is typed and what is sent are turns of one conversation, each seen once.
    types(&tty, "TURN-four", || stage.model.times("four") > 0);
    tty.shows("reply to four");
    assert_eq!(stage.says("TURN-five"), "reply to five");
    tty.shows("reply to five");
    assert_eq!(stage.model.shown_with("five"), ["one", "two", "three", "four", "five"]);
    let once = |turn: &&str| stage.model.times(turn) == 1;
    assert!(["one", "two", "three", "four", "five"].iter().all(once));
    // A person who detaches finds it again.
    tty.detach();
    assert_eq!(is_the_same_run(&stage, &before)["guest_pid"], guest);
    let mut tty = stage.attach();
    tty.shows("reply to five");
    processes::kill(guest);
    tty.ended();
    assert_eq!(is_the_same_run(&stage, &before)["guest_pid"], Value::Null);
    let mut tty = stage.attach();
    tty.shows("reply to five");
    quits(&mut tty);
    is_the_same_run(&stage, &before);
    assert_eq!(stage.says("TURN-six"), "reply to six");
    assert!(
        !stage.world.path("user/.codex/packages").exists(),
        "no server that all terminals share was made"
    );
    stage.shown("its own terminal joins a turn under way");
}

#[test]
fn after_a_kill_the_next_run_knows_that_the_last_turn_was_cut_off() {
    let stage = Stage::new("codex");
    let config = stage.world.home.join("config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}[log]\nlevel = \"debug\"\n")).unwrap();
    stage.new_session();
    let message = stage.sends("TURN-one HOLD");
    stage.model.is_asked("one");
    processes::kill(stage.pid());
    stage.model.let_go();
    stage.model.let_go();
    stage.comes_to(&message, "done");
    let log = stage.world.daemon_log();
    assert!(log.contains("the last turn of its thread was interrupted"), "{log}");
    stage.shown("turn status after resume");
}

#[test]
#[ignore = "takes long, and half a gigabyte: `./test --full` runs it"]
fn a_users_own_terminal_and_the_server_that_it_shares_are_not_disturbed_by_a_stop() {
    let stage = Stage::new("codex");
    let tty = Tty::start(of_user(&stage, &[]), 40, 120);
    tty.shows("Ask Codex");
    types(&tty, "TURN-user HOLD", || stage.model.times("user") > 0);
    let shared = servers(&stage);
    assert!(!shared.is_empty(), "its own server, which outlives it");
    stage.new_session();
    assert_eq!(stage.says("TURN-one"), "reply to one");
    assert!(!shared.contains(&stage.pid()));
    stage.ok(&["stop", "api"]);
    assert_eq!(servers(&stage), shared, "ours is gone, and only ours");
    stage.model.let_go();
    tty.shows("reply to user");
    types(&tty, "TURN-again", || stage.model.times("again") > 0);
    tty.shows("reply to again");
    stage.ok(&["start", "api"]);
    assert_eq!(stage.says("TURN-two"), "reply to two");
    // The other way round: what ends with the user's terminal is not ours.
    let pid = stage.pid();
    drop(tty);
    shared.iter().for_each(|server| processes::kill(*server));
    assert_eq!(stage.says("TURN-three"), "reply to three");
    assert_eq!(
        (stage.pid(), stage.model.shown_with("three")),
        (pid, ["one", "two", "three"].map(String::from).to_vec())
    );
    stage.shown("beside the user's own terminal");
}

/// Starts a session this many times, and kills its server, bridge, shim or nothing at one of three steps of
/// the start.
fn starts_and_kills(rounds: usize) {
    let stage = begun("codex");
    for round in 0..rounds {
        stage.ok(&["start", "api"]);
        let pid = stage.pid();
        match round % 3 {
            0 => {}
            1 => _ = stage.world.until("its bridge", || bridge_of(pid)),
            _ => stage.world.until("it is ready", || (stage.show()["ready"] == true).then_some(())),
        }
        match round % 4 {
            0 => processes::kill(pid),
            1 => bridge_of(pid).into_iter().for_each(processes::kill),
            2 => processes::kill(number(&stage.show()["shim_pid"])),
            _ => {}
        }
        stage.ok(&["stop", "api"]);
        assert_eq!(servers(&stage), Vec::<u32>::new(), "round {round}");
    }
    stage.ok(&["start", "api"]);
    assert_eq!(stage.says("TURN-one"), "reply to one");
    stage.ok(&["stop", "api"]);
    assert_eq!(servers(&stage), Vec::<u32>::new());
}

#[test]
fn no_server_is_left_after_starts_and_kills() {
    starts_and_kills(24);
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn no_server_is_left_after_a_hundred_starts_and_kills() {
    starts_and_kills(100);
    Stage::new("codex").shown("no server is left after 100 starts and kills");
}
