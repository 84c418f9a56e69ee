//! Interrupts at every moment of a turn: they end the turn, and the next one works.

use super::gate::Gate;
use super::gemini::with_a_shell;
use super::stage::Stage;

#[test]
fn one_in_mid_stream_ends_the_turn_and_not_the_process() {
    let stage = Stage::new("claude");
    stage.new_session();
    let message = stage.sends("TURN-one HOLD");
    stage.model.is_asked("one");
    let pid = stage.pid();
    stage.ok(&["interrupt", "api"]);
    stage.comes_to(&message, "failed");
    stage.model.let_go();
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_eq!((stage.pid(), stage.model.times_told("one")), (pid, 1));
    stage.shown("interrupt");
}

#[test]
fn one_in_a_tool_ends_the_turn_and_the_tool_and_not_the_process() {
    let stage = Stage::new("claude");
    let gate = Gate::new(&stage);
    stage.new_session();
    let message = stage.sends(&format!("TURN-one RUN={};;", gate.wait()));
    stage.is_asked();
    stage.ok(&["answer", "api", "allow"]);
    gate.is_reached(&stage);
    let pid = stage.pid();
    stage.ok(&["interrupt", "api"]);
    stage.comes_to(&message, "failed");
    gate.is_left(&stage);
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_eq!((stage.pid(), stage.model.times_told("one")), (pid, 1));
    stage.shown("interrupt in a tool");
}

#[test]
fn one_in_a_request_takes_the_request_back() {
    let stage = Stage::new("claude");
    stage.new_session();
    let file = stage.text("work/never");
    let message = stage.sends(&format!("TURN-one RUN=touch {file};;"));
    stage.is_asked();
    let pid = stage.pid();
    stage.ok(&["interrupt", "api"]);
    stage.comes_to(&message, "failed");
    assert_eq!(stage.show()["requests"], 0);
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_eq!((stage.pid(), stage.model.times_told("one")), (pid, 1));
    assert!(!stage.world.path("work/never").exists());
    stage.shown("interrupt in a request");
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn one_in_a_turn_of_gemini_ends_its_run() {
    let stage = Stage::new("gemini");
    stage.new_session();
    stage.says("TURN-one");
    let message = stage.sends("TURN-two HOLD");
    stage.model.is_asked("two");
    stage.ok(&["interrupt", "api"]);
    stage.comes_to(&message, "failed");
    stage.model.let_go();
    assert_eq!(stage.says("TURN-three"), "reply to three");
    assert_eq!(stage.model.times_told("two"), 1);
    stage.shown("interrupt");
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn one_in_a_tool_of_gemini_ends_its_run_and_the_tool() {
    let stage = with_a_shell();
    let gate = Gate::new(&stage);
    stage.new_session();
    stage.says("TURN-one");
    let message = stage.sends(&format!("TURN-two RUN={};;", gate.wait()));
    gate.is_reached(&stage);
    stage.ok(&["interrupt", "api"]);
    stage.comes_to(&message, "failed");
    gate.is_left(&stage);
    assert_eq!(stage.says("TURN-three"), "reply to three");
    stage.shown("interrupt in a tool");
}
