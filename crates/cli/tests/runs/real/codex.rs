//! Codex by its own protocol: a private app server for each session.

use super::stage::Stage;
use crate::processes::{self, lives};
use crate::world::{finish, number};
use std::path::PathBuf;

/// A session whose agent asks before each command.
fn codex() -> Stage {
    let stage = Stage::new("codex");
    std::fs::create_dir_all(&stage.world.home).unwrap();
    let asks = "[agents.codex.thread]\napprovalPolicy = \"untrusted\"\nsandbox = \"workspace-write\"\n";
    std::fs::write(stage.world.home.join("config.toml"), asks).unwrap();
    stage.new_session();
    stage
}

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

/// A command that lasts until the test lets it end, and says that it has begun.
fn tool(stage: &Stage) -> (String, PathBuf, PathBuf) {
    let (begun, go) = (stage.world.path("work/begun"), stage.world.path("work/go"));
    let command =
        format!("RUN=touch {}; until [ -e {} ]; do sleep 0.05; done;;", begun.display(), go.display());
    (command, begun, go)
}

/// Allows whatever is asked until a message is done.
fn allowed_until_done(stage: &Stage, message: &str) {
    stage.world.until("a message is done", || {
        if stage.show()["requests"] != 0 {
            stage.run(&["answer", "api", "allow"]);
        }
        stage.world.inbox("api").into_iter().find(|row| row["id"] == message && row["state"] == "done")
    });
}

#[test]
fn two_turns_are_one_process_and_one_conversation() {
    let stage = codex();
    assert_eq!(stage.says("TURN-one"), "reply to one");
    stage.shown("turn");
    let pid = stage.pid();
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_eq!(stage.pid(), pid);
    assert_eq!(stage.model.shown_with("two"), ["one", "two"]);
    let session = stage.show();
    assert_eq!((&session["activity"], &session["activity_from"]), (&"idle".into(), &"codex".into()));
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    assert!(String::from_utf8_lossy(&words).contains("app-server"), "the pid is the server's");
    assert!(!stage.world.path("user/.codex/packages").exists(), "no daemon of all terminals was made");
    stage.shown("second turn in one process");
}

#[test]
fn a_session_that_was_stopped_goes_on_with_its_conversation() {
    let stage = codex();
    stage.says("TURN-one");
    let (pid, vendor) = (stage.pid(), stage.show()["vendor_session"].clone());
    stage.ok(&["stop", "api"]);
    assert_eq!(servers(&stage), Vec::<u32>::new());
    stage.ok(&["start", "api"]);
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_ne!(stage.pid(), pid);
    assert_eq!(stage.show()["vendor_session"], vendor);
    assert_eq!(stage.model.shown_with("two"), ["one", "two"]);
    stage.shown("resume");
}

#[test]
fn an_interrupt_ends_the_turn_and_not_the_process() {
    let stage = codex();
    let message = stage.sends("TURN-one HOLD");
    stage.model.is_asked("one");
    let pid = stage.pid();
    stage.ok(&["interrupt", "api"]);
    stage.comes_to(&message, "failed");
    stage.model.let_go();
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_eq!(stage.pid(), pid);
    stage.shown("interrupt");
}

#[test]
fn a_tool_runs_when_it_is_allowed_and_not_when_it_is_denied() {
    let stage = codex();
    let allowed = stage.sends(&format!("TURN-one RUN=touch {};;", stage.text("work/allowed")));
    stage.is_asked();
    assert_eq!(stage.show()["activity"], "waiting");
    stage.ok(&["answer", "api", "allow"]);
    stage.comes_to(&allowed, "done");
    assert!(stage.world.path("work/allowed").exists());
    stage.shown("allow");
    let denied = stage.sends(&format!("TURN-two RUN=touch {};;", stage.text("work/denied")));
    stage.is_asked();
    stage.ok(&["answer", "api", "deny"]);
    stage.comes_to(&denied, "done");
    assert!(!stage.world.path("work/denied").exists());
    stage.shown("deny");
}

#[test]
fn a_turn_that_fails_says_why_and_the_next_one_works() {
    let stage = codex();
    let answer = stage.run(&["send", "api", "TURN-one HTTP=400", "--wait"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    let failed = stage.world.events_of("api", "message_failed");
    assert!(failed[0].to_string().contains("as the prompt says"), "{failed:?}");
    assert_eq!(stage.says("TURN-two"), "reply to two");
    stage.shown("failed turn");
}

#[test]
fn a_limit_holds_the_account_and_its_own_words_say_when_it_resets() {
    let stage = codex();
    let message = stage.sends("TURN-one LIMIT=3600");
    stage.world.until("it is held", || (stage.show()["state"] == "blocked").then_some(()));
    let held = stage.world.events_of("api", "account_held");
    assert!(held[0].to_string().contains("usage limit"), "{held:?}");
    assert_eq!(stage.comes_to(&message, "queued")["tries"], 0);
    assert_eq!(stage.model.times("one"), 1, "it is not tried again");
    stage.shown("usage limit");
}

#[test]
fn a_stop_ends_a_tool_child_that_has_a_session_of_its_own() {
    let stage = codex();
    let begun = stage.text("work/begun");
    stage.sends(&format!("TURN-one RUN=setsid sh -c 'touch {begun}; exec tail -f /dev/null';;"));
    stage.is_asked();
    stage.ok(&["answer", "api", "allow"]);
    stage.world.until("the child of a tool", || std::fs::metadata(&begun).ok());
    let server = stage.pid();
    let below = |pid: u32| {
        let mut found = vec![pid];
        let mut at = 0;
        while at < found.len() {
            found.extend(processes::children(found[at]));
            at += 1;
        }
        found
    };
    let tree = below(server);
    // The server, its bridge, its sandbox, and what runs in that.
    assert!(tree.len() > 3, "{tree:?}");
    stage.ok(&["stop", "api"]);
    assert_eq!(tree.into_iter().filter(|pid| lives(*pid)).collect::<Vec<_>>(), Vec::<u32>::new());
    stage.world.assert_no_members();
    stage.shown("stop with a tool child");
}

#[test]
fn a_vendor_session_has_one_writer_in_all_homes_and_by_codex_itself() {
    let stage = codex();
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
    let stage = codex();
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
    let stage = codex();
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

/// Who is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Daemon,
    Shim,
    Agent,
    Bridge,
}

impl Victim {
    const ALL: [Victim; 4] = [Victim::Daemon, Victim::Shim, Victim::Agent, Victim::Bridge];

    /// Kills it, and says whether the agent ends by that.
    fn kill(self, stage: &Stage) -> bool {
        let session = stage.show();
        match self {
            Victim::Daemon => {
                stage.world.kill_daemon();
                stage.ok(&["up"]);
            }
            Victim::Shim => processes::kill(number(&session["shim_pid"])),
            Victim::Agent => processes::kill(number(&session["pid"])),
            Victim::Bridge => {
                let bridge = processes::children(number(&session["pid"])).into_iter().find(|pid| {
                    std::fs::read_to_string(format!("/proc/{pid}/comm"))
                        .is_ok_and(|name| name.trim() == "pinfold-bridge")
                });
                processes::kill(bridge.expect("the bridge"));
            }
        }
        self != Victim::Daemon
    }
}

#[test]
fn a_kill_in_mid_stream_loses_nothing_and_only_an_agent_that_ended_is_told_again() {
    for victim in Victim::ALL {
        let stage = codex();
        let message = stage.sends("TURN-one HOLD");
        stage.model.is_asked("one");
        let again = victim.kill(&stage);
        stage.model.let_go();
        stage.model.let_go();
        assert_eq!(stage.comes_to(&message, "done")["answer"], "reply to one", "{victim:?}");
        assert_eq!(stage.model.times("one"), 1 + usize::from(again), "{victim:?}");
        assert_eq!(stage.model.prompt_of("one").contains("delivered again"), again, "{victim:?}");
        assert_eq!(servers(&stage).len(), 1, "{victim:?}");
        stage.shown(&format!("{} killed in mid-stream", format!("{victim:?}").to_lowercase()));
    }
}

#[test]
fn a_kill_in_a_tool_loses_nothing() {
    for victim in Victim::ALL {
        let stage = codex();
        let (command, begun, go) = tool(&stage);
        let message = stage.sends(&format!("TURN-one {command}"));
        stage.is_asked();
        stage.ok(&["answer", "api", "allow"]);
        stage.world.until("the tool runs", || begun.exists().then_some(()));
        let again = victim.kill(&stage);
        std::fs::write(&go, "").unwrap();
        allowed_until_done(&stage, &message);
        assert_eq!(stage.model.times("one"), 1 + usize::from(again), "{victim:?}");
        stage.shown(&format!("{} killed in a tool", format!("{victim:?}").to_lowercase()));
    }
}

#[test]
fn a_kill_in_a_request_loses_nothing() {
    for victim in Victim::ALL {
        let stage = codex();
        let message = stage.sends(&format!("TURN-one RUN=touch {};;", stage.text("work/allowed")));
        stage.is_asked();
        let again = victim.kill(&stage);
        assert!(!stage.world.path("work/allowed").exists(), "nobody allowed it");
        allowed_until_done(&stage, &message);
        assert!(stage.world.path("work/allowed").exists(), "{victim:?}");
        assert_eq!(stage.model.times("one"), 1 + usize::from(again), "{victim:?}");
        stage.shown(&format!("{} killed in a request", format!("{victim:?}").to_lowercase()));
    }
}

#[test]
fn a_kill_in_the_handshake_loses_nothing() {
    for victim in [Victim::Daemon, Victim::Shim, Victim::Agent] {
        let stage = codex();
        let message = stage.sends("TURN-one");
        stage.world.until("a process", || stage.show()["pid"].as_u64());
        let again = victim.kill(&stage);
        assert_eq!(stage.comes_to(&message, "done")["answer"], "reply to one", "{victim:?}");
        let times = stage.model.times("one");
        assert!(times == 1 || again && times == 2, "{victim:?}: {times}");
        assert_eq!(stage.says("TURN-two"), "reply to two");
        stage.shown(&format!("{} killed in the handshake", format!("{victim:?}").to_lowercase()));
    }
}

#[test]
fn no_server_is_left_however_often_one_is_killed() {
    let stage = codex();
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
