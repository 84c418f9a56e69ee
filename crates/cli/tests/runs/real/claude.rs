//! Claude Code through its own protocol.

use super::stage::Stage;

fn claude() -> Stage {
    let stage = Stage::new("claude");
    stage.new_session();
    stage
}

#[test]
fn two_turns_are_one_process_and_one_conversation() {
    let stage = claude();
    assert_eq!(stage.says("TURN-one"), "reply to one");
    stage.shown("turn");
    let pid = stage.pid();
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_eq!(stage.pid(), pid);
    assert_eq!(stage.model.shown_with("two"), ["one", "two"]);
    let session = stage.show();
    assert_eq!((&session["activity"], &session["activity_from"]), (&"idle".into(), &"stream-json".into()));
    stage.shown("second turn in one process");
}

#[test]
fn a_session_that_was_stopped_goes_on_with_its_conversation() {
    let stage = claude();
    stage.says("TURN-one");
    let (pid, vendor) = (stage.pid(), stage.show()["vendor_session"].clone());
    stage.ok(&["stop", "api"]);
    stage.ok(&["start", "api"]);
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_ne!(stage.pid(), pid);
    assert_eq!(stage.show()["vendor_session"], vendor);
    assert_eq!(stage.model.shown_with("two"), ["one", "two"]);
    stage.shown("resume");
}

#[test]
fn a_tool_runs_when_it_is_allowed_and_not_when_it_is_denied() {
    let stage = claude();
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
    let stage = claude();
    let answer = stage.run(&["send", "api", "TURN-one HTTP=400", "--wait"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    let failed = stage.world.events_of("api", "message_failed");
    assert!(failed[0].to_string().contains("as the prompt says"), "{failed:?}");
    assert_eq!(stage.says("TURN-two"), "reply to two");
    stage.shown("failed turn");
}

#[test]
fn a_clear_that_is_sent_begins_another_conversation_which_is_held_and_resumed() {
    let stage = claude();
    stage.says("TURN-one");
    let before = stage.show()["vendor_session"].clone();
    stage.says("/clear");
    stage.says("TURN-two");
    assert_eq!(stage.model.shown_with("two"), ["two"]);
    let after = stage.show()["vendor_session"].as_str().unwrap().to_owned();
    assert_ne!(after, before);
    let other = stage.text("other");
    let refused = stage.run(&["new", "b", "--agent", "claude", "--vendor-session", &after, "--dir", &other]);
    assert_eq!(refused.code, 75, "{refused:?}");
    stage.ok(&["restart", "api"]);
    stage.says("TURN-three");
    assert_eq!(stage.model.shown_with("three"), ["two", "three"]);
    stage.shown("clear as a message");
}

/// The agent is asked nothing without a yes; with one it answers.
pub(crate) fn is_checked(stage: &Stage) {
    let name = stage.agent();
    let asked = stage.run(&["agents", "--check", name]);
    assert_eq!((asked.code, stage.model.times("")), (2, 0), "nobody was asked: {asked:?}");
    let checked = stage.ok(&["agents", "--check", name, "--yes"]).stdout;
    assert!(
        checked.starts_with(&format!("{name} answered after ")) && checked.contains("reply to"),
        "{checked}"
    );
    stage.shown("agents --check");
}

#[test]
fn it_can_be_checked_with_one_turn_and_its_version_is_proven() {
    let stage = Stage::new("claude");
    is_checked(&stage);
    let agents = stage.ok(&["--json", "agents"]).json();
    let claude = agents.as_array().unwrap().iter().find(|agent| agent["name"] == "claude").unwrap();
    assert_eq!(claude["proven"], "proven", "{claude}");
}
