//! Agents that run for many messages, through a protocol that several of them share: the same cases for each.

use super::gate::Gate;
use super::stage::{BRIDGE, Stage};

/// The cases of an agent.
macro_rules! cases {
    ($module:ident, $agent:expr, $($case:ident),+) => {
        mod $module {
            $(#[test]
            fn $case() {
                super::$case(&super::begun($agent));
            })+
        }
    };
}

cases!(
    codex,
    "codex",
    two_turns_are_one_process_and_one_conversation,
    a_session_that_was_stopped_goes_on_with_its_conversation,
    an_interrupt_ends_the_turn_and_not_the_process,
    an_interrupt_in_a_tool_ends_the_tool_too,
    a_tool_runs_when_it_is_allowed_and_not_when_it_is_denied,
    an_interrupt_in_a_request_takes_it_back,
    a_turn_that_fails_says_why_and_the_next_one_works
);

cases!(
    opencode,
    "opencode",
    two_turns_are_one_process_and_one_conversation,
    a_session_that_was_stopped_goes_on_with_its_conversation,
    an_interrupt_ends_the_turn_and_not_the_process,
    an_interrupt_in_a_tool_ends_the_tool_too,
    a_tool_runs_when_it_is_allowed_and_not_when_it_is_denied,
    an_interrupt_in_a_request_takes_it_back,
    a_turn_that_fails_says_why_and_the_next_one_works
);

cases!(
    pi,
    "pi",
    two_turns_are_one_process_and_one_conversation,
    a_session_that_was_stopped_goes_on_with_its_conversation,
    an_interrupt_ends_the_turn_and_not_the_process,
    an_interrupt_in_a_tool_ends_the_tool_too,
    a_turn_that_fails_says_why_and_the_next_one_works
);

cases!(
    bridge,
    super::BRIDGE,
    two_turns_are_one_process_and_one_conversation,
    a_session_that_was_stopped_goes_on_with_its_conversation,
    an_interrupt_ends_the_turn_and_not_the_process,
    an_interrupt_in_a_tool_ends_the_tool_too,
    a_tool_runs_when_it_is_allowed_and_not_when_it_is_denied,
    an_interrupt_in_a_request_takes_it_back,
    a_turn_that_fails_says_why_and_the_next_one_works
);

pub(crate) fn begun(agent: &'static str) -> Stage {
    let stage = Stage::new(agent);
    stage.new_session();
    stage
}

/// Sends a message whose reply the model holds back; returns its id and the agent's pid.
fn held(stage: &Stage) -> (String, u32) {
    let message = stage.sends("TURN-one HOLD");
    stage.model.is_asked("one");
    (message, stage.pid())
}

/// Sends a message that makes a tool create this file; returns its id.
fn runs_a_tool(stage: &Stage, turn: &str, file: &str) -> String {
    let message = stage.sends(&format!("TURN-{turn} RUN=touch {};;", stage.text(file)));
    stage.is_asked();
    message
}

fn two_turns_are_one_process_and_one_conversation(stage: &Stage) {
    assert_eq!(stage.says("TURN-one"), "reply to one");
    stage.shown("turn");
    let pid = stage.pid();
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_eq!((stage.pid(), stage.model.shown_with("two")), (pid, vec!["one".to_owned(), "two".to_owned()]));
    assert_eq!(stage.show()["activity"], "idle");
    stage.shown("second turn in one process");
}

fn a_session_that_was_stopped_goes_on_with_its_conversation(stage: &Stage) {
    stage.says("TURN-one");
    let (pid, vendor) = (stage.pid(), stage.show()["vendor_session"].clone());
    assert!(vendor.is_string(), "it was learned");
    stage.ok(&["stop", "api"]);
    stage.world.assert_no_members();
    stage.ok(&["start", "api"]);
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert!(stage.pid() != pid && stage.show()["vendor_session"] == vendor);
    assert_eq!(stage.model.shown_with("two"), ["one", "two"]);
    stage.shown("resume");
}

fn an_interrupt_ends_the_turn_and_not_the_process(stage: &Stage) {
    let (message, pid) = held(stage);
    stage.ok(&["interrupt", "api"]);
    stage.comes_to(&message, "failed");
    stage.model.let_go();
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_eq!(stage.pid(), pid);
    stage.shown("interrupt");
}

fn an_interrupt_in_a_tool_ends_the_tool_too(stage: &Stage) {
    let gate = Gate::new(stage);
    let message = stage.sends(&format!("TURN-one RUN={};;", gate.wait()));
    if stage.agent() != "pi" {
        stage.is_asked();
        stage.ok(&["answer", "api", "allow"]);
    }
    gate.is_reached(stage);
    let pid = stage.pid();
    stage.ok(&["interrupt", "api"]);
    stage.comes_to(&message, "failed");
    gate.is_left(stage);
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_eq!((stage.pid(), stage.model.times_told("one")), (pid, 1));
    stage.shown("interrupt in a tool");
}

fn a_tool_runs_when_it_is_allowed_and_not_when_it_is_denied(stage: &Stage) {
    let allowed = runs_a_tool(stage, "one", "work/allowed");
    stage.ok(&["answer", "api", "allow"]);
    stage.comes_to(&allowed, "done");
    assert!(stage.world.path("work/allowed").exists());
    stage.shown("allow");
    let denied = runs_a_tool(stage, "two", "work/denied");
    stage.ok(&["answer", "api", "deny"]);
    stage.world.until("the end of the turn", || Some(()).filter(|()| stage.show()["activity"] == "idle"));
    assert!(!stage.world.path("work/denied").exists(), "{denied}");
    assert_eq!(stage.says("TURN-three"), "reply to three");
    stage.shown("deny");
}

fn an_interrupt_in_a_request_takes_it_back(stage: &Stage) {
    let message = runs_a_tool(stage, "one", "work/never");
    stage.ok(&["interrupt", "api"]);
    stage.comes_to(&message, "failed");
    assert_eq!(stage.show()["requests"], 0);
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert!(!stage.world.path("work/never").exists());
    stage.shown("interrupt in a request");
}

fn a_turn_that_fails_says_why_and_the_next_one_works(stage: &Stage) {
    let answer = stage.run(&["send", "api", "TURN-one HTTP=400", "--wait"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    let failed = stage.world.events_of("api", "message_failed");
    assert!(failed[0].to_string().contains("as the prompt says"), "{failed:?}");
    assert_eq!(stage.says("TURN-two"), "reply to two");
    stage.shown("failed turn");
}
