//! Errors of the model with Codex, opencode, pi and an ACP bridge: the session says why a turn failed, the
//! next turn works in the same process, and the model saw each message once.

use super::failures::{Fails, each_fails, is_held_and_goes_on};
use super::many::begun;
use super::stage::{BRIDGE, Stage};

const fn fails(script: &'static str, reason: &'static str, case: &'static str) -> Fails {
    Fails { script, reason, case }
}

/// An error that holds the session's account instead: how to cause it, what a person is asked for, and the
/// case it shows.
type Holds = (&'static str, &'static str, &'static str);

/// All of them, in one process.
fn in_one_process(stage: &Stage, all: &[Fails], holds: &[Holds]) {
    stage.new_session();
    stage.says("TURN-one");
    let pid = stage.pid();
    each_fails(stage, all);
    for (script, kind, case) in holds {
        is_held_and_goes_on(stage, script, kind);
        stage.shown(case);
    }
    assert_eq!(stage.pid(), pid);
}

#[test]
fn codex_says_why() {
    in_one_process(
        &Stage::new("codex"),
        &[fails("HTTP=400", "as the prompt says", "400"), fails("HTTP=404", "404", "404")],
        &[("HTTP=401", "login", "401"), ("HTTP=429,1", "limit", "limit without a time")],
    );
}

#[test]
fn opencode_says_why() {
    in_one_process(
        &Stage::new("opencode"),
        &[
            fails("HTTP=400", "as the prompt says", "400"),
            fails("HTTP=401", "as the prompt says", "401"),
            fails("HTTP=404", "as the prompt says", "404"),
        ],
        &[],
    );
}

#[test]
fn pi_says_why() {
    in_one_process(
        &Stage::new("pi"),
        &[fails("HTTP=400", "400", "400"), fails("HTTP=404", "404", "404")],
        &[("HTTP=401", "login", "401")],
    );
}

#[test]
fn a_bridge_says_why() {
    in_one_process(
        &Stage::new(BRIDGE).with("CLAUDE_CODE_MAX_RETRIES", Some("1")),
        &[fails("HTTP=400", "as the prompt says", "400"), fails("HTTP=404", "model", "404")],
        &[("HTTP=401", "login", "401"), ("HTTP=429,3600", "limit", "limit without a time")],
    );
}

#[test]
fn the_usage_limit_of_codex_names_its_end() {
    let stage = begun("codex");
    stage.says("TURN-one");
    is_held_and_goes_on(&stage, "LIMIT=3600", "limit");
    let held = stage.world.events_of("api", "account_held");
    assert_eq!(held.len(), 1, "{held:?}");
    assert!(held[0]["resets"].is_string() && held[0].to_string().contains("usage limit"), "{held:?}");
    assert_eq!(stage.model.times("bad"), 1, "it is not tried again");
    assert_eq!(stage.says("TURN-three"), "reply to three");
    assert_eq!(stage.show()["activity"], "idle");
    stage.shown("limit with a time");
}

/// Codex at a limit that resets soon, and the message that met it.
fn at_a_short_limit(policy: &str) -> (Stage, String) {
    let stage = Stage::new("codex");
    let config = stage.world.home.join("config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}{policy}")).unwrap();
    stage.new_session();
    stage.says("TURN-one");
    let message = stage.sends("TURN-two LIMIT=4 ONCE");
    stage.world.until("a limit", || stage.world.events_of("api", "account_held").first().cloned());
    (stage, message)
}

#[test]
fn a_limit_that_resets_soon_is_over_by_itself_if_the_session_resumes() {
    let (stage, message) = at_a_short_limit("[policy]\nlimit_resume = true\n");
    assert_eq!(stage.comes_to(&message, "done")["answer"], "reply to two");
    assert_eq!(stage.model.times("two"), 2);
    stage.shown("limit with a time, resumed by itself");
}

#[test]
fn a_limit_says_which_command_ends_it() {
    let (stage, message) = at_a_short_limit("");
    stage.world.until("it is held", || (stage.show()["state"] == "blocked").then_some(()));
    let why = stage.ok(&["why", "api"]).stdout;
    let (_, command) = why.split_once("run `pinfold ").expect(&why);
    let command: Vec<&str> = command.split_once('`').expect(&why).0.split(' ').collect();
    assert_eq!(command[..2], ["accounts", "--resume"], "{why}");
    stage.ok(&command);
    assert_eq!(stage.comes_to(&message, "done")["answer"], "reply to two");
}

#[test]
fn a_reply_that_opencode_requests_again_and_again_is_visible() {
    let stage = begun("opencode");
    stage.says("TURN-one");
    let message = stage.sends("TURN-two CUT");
    let again = || Some(stage.ok(&["why", "api"]).stdout).filter(|why| why.contains("began the answer"));
    stage.world.until("an answer that begins again", again);
    stage.ok(&["interrupt", "api"]);
    stage.comes_to(&message, "failed");
    assert_eq!(stage.says("TURN-three"), "reply to three");
    stage.shown("a reply that breaks off");
}

/// Some agents stay silent for as long as the vendor says; that is visible.
fn waits_in_silence(agent: &'static str) -> (Stage, String) {
    let stage = begun(agent);
    stage.says("TURN-one");
    let message = stage.sends("TURN-two LIMIT=3600");
    stage.model.is_asked("two");
    assert_eq!(stage.show()["activity"], "working");
    stage.shown("limit: waited for in silence");
    (stage, message)
}

#[test]
fn a_limit_that_opencode_waits_for_in_silence_can_be_interrupted() {
    let (stage, message) = waits_in_silence("opencode");
    let pid = stage.pid();
    stage.ok(&["interrupt", "api"]);
    stage.comes_to(&message, "failed");
    assert_eq!(stage.says("TURN-three"), "reply to three");
    assert_eq!((stage.pid(), stage.model.times_told("two")), (pid, 1));
    stage.shown("limit: waited for in silence, interrupted");
}

/// pi hears no interrupt before its wait is over.
#[test]
fn a_limit_that_pi_waits_for_in_silence_is_ended_by_a_stop() {
    let (stage, message) = waits_in_silence("pi");
    stage.ok(&["stop", "api"]);
    stage.world.assert_no_members();
    stage.comes_to(&message, "queued");
    stage.ok(&["inbox", "api", "--cancel", &message]);
    stage.ok(&["start", "api"]);
    assert_eq!(stage.says("TURN-three"), "reply to three");
    assert_eq!(stage.model.times_told("two"), 1);
}

// These take long to report it: they retry by themselves first.

/// opencode's words for it are those for any error, so the turn fails and the account is not held.
#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn opencode_gives_up_at_a_limit_without_a_time() {
    let fails = fails("HTTP=429,1", "as the prompt says", "limit without a time");
    in_one_process(&Stage::new("opencode"), &[fails], &[]);
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn pi_gives_up_at_a_limit_without_a_time() {
    in_one_process(&Stage::new("pi"), &[], &[("HTTP=429,1", "limit", "limit without a time")]);
}

/// A conversation that is gone is reported as such, and not tried again and again.
fn is_unknown(agent: &'static str, id: &str) {
    let stage = Stage::new(agent);
    stage.new_session_with(&["--vendor-session", id]);
    let message = stage.sends("TURN-one");
    stage.ok(&["wait", "api", "--for", "failed", "--timeout", "240s"]);
    let why = stage.ok(&["why", "api"]).stdout;
    assert!(why.contains("the conversation of `api` is gone"), "{why}");
    let exits = stage.world.events_of("api", "run_exited");
    assert_eq!((exits.len(), &exits[0]["verdict"]), (1, &"hopeless".into()), "{exits:?}");
    stage.comes_to(&message, "queued");
    assert_eq!((stage.world.events_of("api", "run_started").len(), stage.model.times("one")), (1, 0));
    stage.shown("a conversation that it does not know");
}

#[test]
fn a_conversation_that_opencode_does_not_know_is_not_tried_again() {
    is_unknown("opencode", "ses_0123456789abcdef0123456789");
}

#[test]
fn a_conversation_that_a_bridge_does_not_know_is_not_tried_again() {
    is_unknown(BRIDGE, "0b0f6f0c-7f0e-4c39-9d55-7d8b0d3c6a11");
}
