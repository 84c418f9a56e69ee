//! Agents that run for many messages, by a protocol that several of them have: the same cases for each.

use super::stage::{BRIDGE, Stage};
use crate::processes::{kill, lives};

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
    opencode,
    "opencode",
    two_turns_are_one_process_and_one_conversation,
    a_session_that_was_stopped_goes_on_with_its_conversation,
    an_interrupt_ends_the_turn_and_not_the_process,
    a_tool_runs_when_it_is_allowed_and_not_when_it_is_denied,
    an_interrupt_in_a_request_takes_it_back,
    a_turn_that_fails_says_why_and_the_next_one_works,
    a_stop_ends_a_tool_child_that_has_a_session_of_its_own,
    a_daemon_that_is_killed_in_the_handshake_is_followed_by_one_that_finishes_it,
    a_daemon_that_is_killed_in_mid_stream_loses_and_repeats_nothing,
    a_daemon_that_is_killed_in_a_request_is_told_of_it_again,
    an_agent_that_is_killed_in_mid_stream_is_told_the_message_again,
    a_shim_that_is_killed_takes_its_agent_with_it
);

cases!(
    pi,
    "pi",
    two_turns_are_one_process_and_one_conversation,
    a_session_that_was_stopped_goes_on_with_its_conversation,
    an_interrupt_ends_the_turn_and_not_the_process,
    a_turn_that_fails_says_why_and_the_next_one_works,
    a_stop_ends_a_tool_child_that_has_a_session_of_its_own,
    a_daemon_that_is_killed_in_mid_stream_loses_and_repeats_nothing,
    an_agent_that_is_killed_in_mid_stream_is_told_the_message_again,
    a_shim_that_is_killed_takes_its_agent_with_it
);

cases!(
    bridge,
    super::BRIDGE,
    two_turns_are_one_process_and_one_conversation,
    a_session_that_was_stopped_goes_on_with_its_conversation,
    an_interrupt_ends_the_turn_and_not_the_process,
    a_tool_runs_when_it_is_allowed_and_not_when_it_is_denied,
    an_interrupt_in_a_request_takes_it_back,
    a_turn_that_fails_says_why_and_the_next_one_works,
    a_stop_ends_a_tool_child_that_has_a_session_of_its_own,
    a_daemon_that_is_killed_in_mid_stream_loses_and_repeats_nothing,
    a_daemon_that_is_killed_in_a_request_is_told_of_it_again,
    an_agent_that_is_killed_in_mid_stream_is_told_the_message_again,
    a_shim_that_is_killed_takes_its_agent_with_it
);

fn begun(agent: &'static str) -> Stage {
    let stage = Stage::new(agent);
    stage.new_session();
    stage
}

/// A message whose reply the model holds back; its id, and the agent that has it.
fn held(stage: &Stage) -> (String, u32) {
    let message = stage.sends("TURN-one HOLD");
    stage.model.is_asked("one");
    (message, stage.pid())
}

/// A message by which a tool makes a file of this name; its id.
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

fn a_stop_ends_a_tool_child_that_has_a_session_of_its_own(stage: &Stage) {
    let file = stage.text("work/child");
    let child = format!("setsid sh -c 'echo $$ >{file}.new; mv {file}.new {file}; exec tail -f /dev/null'");
    stage.sends(&format!("TURN-one RUN={child};;"));
    let pid = stage.world.until("the child of a tool", || {
        if stage.show()["requests"] != 0 {
            stage.run(&["answer", "api", "allow"]);
        }
        std::fs::read_to_string(&file).ok().and_then(|pid| pid.trim().parse::<u32>().ok())
    });
    let agent = stage.pid();
    assert!(lives(pid));
    stage.ok(&["stop", "api"]);
    assert!(!lives(pid) && !lives(agent));
    stage.world.assert_no_members();
    stage.shown("stop with a tool child");
}

fn a_daemon_that_is_killed_in_the_handshake_is_followed_by_one_that_finishes_it(stage: &Stage) {
    let message = stage.sends("TURN-one");
    let pid = stage.world.until("the agent", || stage.show()["pid"].as_u64());
    stage.world.kill_daemon();
    stage.ok(&["up"]);
    assert_eq!(stage.comes_to(&message, "done")["answer"], "reply to one");
    assert_eq!((u64::from(stage.pid()), stage.model.times("one")), (pid, 1));
    stage.shown("daemon killed in the handshake");
}

fn a_daemon_that_is_killed_in_mid_stream_loses_and_repeats_nothing(stage: &Stage) {
    let (message, pid) = held(stage);
    stage.world.kill_daemon();
    stage.model.let_go();
    stage.ok(&["up"]);
    assert_eq!(stage.comes_to(&message, "done")["answer"], "reply to one");
    assert_eq!((stage.pid(), stage.model.times("one")), (pid, 1));
    assert_eq!(stage.says("TURN-two"), "reply to two");
    stage.shown("daemon killed in mid-stream");
}

fn a_daemon_that_is_killed_in_a_request_is_told_of_it_again(stage: &Stage) {
    let message = runs_a_tool(stage, "one", "work/allowed");
    stage.world.kill_daemon();
    stage.ok(&["up"]);
    stage.is_asked();
    stage.ok(&["answer", "api", "allow"]);
    stage.comes_to(&message, "done");
    assert!(stage.world.path("work/allowed").exists());
    assert_eq!(stage.model.times("one"), 1);
    stage.shown("daemon killed in a request");
}

fn an_agent_that_is_killed_in_mid_stream_is_told_the_message_again(stage: &Stage) {
    let (message, pid) = held(stage);
    kill(pid);
    stage.model.let_go();
    stage.model.let_go();
    assert_eq!(stage.comes_to(&message, "done")["answer"], "reply to one");
    assert_ne!(stage.pid(), pid);
    assert!(stage.model.prompt_of("one").contains("delivered again"));
    stage.shown("agent killed in mid-stream");
}

fn a_shim_that_is_killed_takes_its_agent_with_it(stage: &Stage) {
    let (message, agent) = held(stage);
    kill(crate::world::number(&stage.show()["shim_pid"]));
    stage.model.let_go();
    stage.model.let_go();
    assert_eq!(stage.comes_to(&message, "done")["answer"], "reply to one");
    assert!(!lives(agent));
    assert!(stage.model.prompt_of("one").contains("delivered again"));
    stage.shown("shim killed in mid-stream");
}
