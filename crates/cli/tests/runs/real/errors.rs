//! Errors of the model with Codex, opencode, pi and a bridge of the agent client protocol: the session says why a turn failed, the next
//! turn works in the same process, and the model saw each message once.

use super::failures::{Fails, each_fails};
use super::many::begun;
use super::stage::{BRIDGE, Stage};

const fn fails(script: &'static str, reason: &'static str, case: &'static str) -> Fails {
    Fails { script, reason, case }
}

/// All of them, in one process.
fn in_one_process(stage: &Stage, all: &[Fails]) {
    stage.new_session();
    stage.says("TURN-one");
    let pid = stage.pid();
    each_fails(stage, all);
    assert_eq!(stage.pid(), pid);
}

#[test]
fn codex_says_why() {
    in_one_process(
        &Stage::new("codex"),
        &[
            fails("HTTP=400", "as the prompt says", "400"),
            fails("HTTP=401", "401", "401"),
            fails("HTTP=404", "404", "404"),
            fails("HTTP=429,1", "429", "limit without a time"),
        ],
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
    );
}

#[test]
fn pi_says_why() {
    in_one_process(
        &Stage::new("pi"),
        &[
            fails("HTTP=400", "400", "400"),
            fails("HTTP=401", "401", "401"),
            fails("HTTP=404", "404", "404"),
        ],
    );
}

#[test]
fn a_bridge_says_why() {
    in_one_process(
        &Stage::new(BRIDGE).with("CLAUDE_CODE_MAX_RETRIES", Some("1")),
        &[
            fails("HTTP=400", "as the prompt says", "400"),
            fails("HTTP=401", "401", "401"),
            fails("HTTP=404", "model", "404"),
            fails("HTTP=429,3600", "429", "limit without a time"),
        ],
    );
}

#[test]
fn the_usage_limit_of_codex_names_its_end() {
    let stage = begun("codex");
    stage.says("TURN-one");
    let answer = stage.run(&["send", "api", "TURN-two LIMIT=3600", "--wait"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    let failed = stage.world.events_of("api", "message_failed");
    assert!(failed[0].to_string().contains("usage limit"), "{failed:?}");
    assert!(failed[0].to_string().contains("try again at"), "{failed:?}");
    assert_eq!(stage.model.times("two"), 1, "it is not tried again");
    assert_eq!(stage.show()["activity"], "limited");
    assert_eq!(stage.says("TURN-three"), "reply to three");
    assert_eq!(stage.show()["activity"], "idle");
    stage.shown("limit with a time");
}

/// Some say nothing for as long as the vendor says: that is seen, and can be ended.
fn is_waited_for_in_silence(agent: &'static str) {
    let stage = begun(agent);
    stage.says("TURN-one");
    let pid = stage.pid();
    let message = stage.sends("TURN-two LIMIT=3600");
    stage.model.is_asked("two");
    assert_eq!(stage.show()["activity"], "working");
    stage.ok(&["interrupt", "api"]);
    stage.comes_to(&message, "failed");
    assert_eq!(stage.says("TURN-three"), "reply to three");
    assert_eq!((stage.pid(), stage.model.times_told("two")), (pid, 1));
    stage.shown("limit: waited for in silence, and ended by an interrupt");
}

#[test]
fn a_limit_of_opencode_is_waited_for_in_silence() {
    is_waited_for_in_silence("opencode");
}

#[test]
fn a_limit_of_pi_is_waited_for_in_silence() {
    is_waited_for_in_silence("pi");
}

/// What took long to say so: they try again by themselves first.
fn tries_again(agent: &'static str, reason: &'static str) {
    in_one_process(&Stage::new(agent), &[fails("HTTP=429,1", reason, "limit without a time")]);
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn opencode_gives_up_at_a_limit_without_a_time() {
    tries_again("opencode", "as the prompt says");
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn pi_gives_up_at_a_limit_without_a_time() {
    tries_again("pi", "429");
}
