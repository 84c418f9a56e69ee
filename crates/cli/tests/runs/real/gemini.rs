//! Gemini CLI: a run for each message.

use super::stage::Stage;

#[test]
fn each_message_is_a_run_and_all_of_them_are_one_conversation() {
    let stage = Stage::new("gemini");
    stage.new_session();
    assert_eq!(stage.says("TURN-one"), "reply to one");
    stage.shown("turn");
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_eq!(stage.model.shown_with("two"), ["one", "two"]);
    assert_eq!(stage.world.events_of("api", "run_started").len(), 2);
    stage.shown("resume");
}

#[test]
fn a_turn_that_fails_says_why_and_the_next_one_works() {
    let stage = Stage::new("gemini");
    stage.new_session();
    stage.says("TURN-one");
    let answer = stage.run(&["send", "api", "TURN-two HTTP=400", "--wait"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert_eq!(stage.says("TURN-three"), "reply to three");
    stage.shown("failed turn");
}

#[test]
fn a_stop_in_a_turn_ends_all_of_its_processes() {
    let stage = Stage::new("gemini");
    stage.new_session();
    stage.sends("TURN-one HOLD");
    stage.model.is_asked("one");
    stage.ok(&["stop", "api"]);
    stage.world.assert_no_members();
    stage.model.let_go();
    stage.shown("stop in a turn");
}
