//! Codex by its own protocol: a private app server for each session.

use super::many::begun;
use super::stage::Stage;
use crate::processes;
use crate::world::finish;

/// The app servers that run with the home of this stage, whoever started them.
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

/// Codex as its user starts it, up to its end.
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

#[test]
fn no_server_is_left_however_often_one_is_killed() {
    let stage = begun("codex");
    let rounds = std::env::var("PINFOLD_TEST_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    for round in 0..rounds {
        stage.ok(&["start", "api"]);
        let pid = stage.world.until("a process", || stage.show()["pid"].as_u64());
        // At another step of its start each time.
        std::thread::sleep(std::time::Duration::from_millis(37 * (round % 10)));
        processes::kill(u32::try_from(pid).unwrap());
        stage.ok(&["stop", "api"]);
        assert_eq!(servers(&stage), Vec::<u32>::new(), "round {round}");
    }
    stage.ok(&["start", "api"]);
    assert_eq!(stage.says("TURN-one"), "reply to one");
    stage.shown("no server is left");
}
