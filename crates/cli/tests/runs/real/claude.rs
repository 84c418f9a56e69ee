//! Claude Code by its own protocol.

use super::stage::Stage;
use crate::processes::lives;

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
fn an_interrupt_ends_the_turn_and_not_the_process() {
    let stage = claude();
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
fn a_stop_ends_a_tool_child_that_has_a_session_of_its_own() {
    let stage = claude();
    let file = stage.text("work/child");
    stage.sends(&format!(
        "TURN-one RUN=setsid sh -c 'echo $$ >{file}.new; mv {file}.new {file}; exec tail -f /dev/null';;"
    ));
    stage.is_asked();
    stage.ok(&["answer", "api", "allow"]);
    let child = stage.world.until("the child of a tool", || {
        std::fs::read_to_string(&file).ok().and_then(|pid| pid.trim().parse::<u32>().ok())
    });
    assert!(lives(child));
    let agent = stage.pid();
    stage.ok(&["stop", "api"]);
    assert!(!lives(child) && !lives(agent));
    stage.world.assert_no_members();
    stage.shown("stop with a tool child");
}

#[test]
fn a_vendor_session_has_one_writer_in_all_homes_and_keeps_every_turn() {
    let stage = claude();
    stage.says("TURN-one");
    let vendor = stage.show()["vendor_session"].as_str().unwrap().to_owned();
    let other = stage.text("other");
    let words = ["new", "second", "--agent", "claude", "--vendor-session", &vendor, "--dir", &other];
    let here = stage.run(&words);
    assert_eq!(here.code, 75, "{here:?}");
    assert!(here.stderr.contains("of session `api`"), "{here:?}");
    let elsewhere = stage.text("second-home");
    let there = stage.run(&[&["--home", &elsewhere][..], &words].concat());
    assert_eq!(there.code, 75, "{there:?}");
    assert!(there.stderr.contains(&format!("pid {}", stage.pid())), "{there:?}");
    stage.ok(&["--home", &elsewhere, "down"]);
    stage.says("TURN-two");
    assert_eq!(stage.model.shown_with("two"), ["one", "two"]);
    stage.shown("double resume refused");
}

#[test]
fn a_daemon_that_is_killed_in_mid_stream_loses_and_repeats_nothing() {
    let stage = claude();
    let message = stage.sends("TURN-one HOLD");
    stage.model.is_asked("one");
    let pid = stage.pid();
    stage.world.kill_daemon();
    stage.model.let_go();
    stage.ok(&["up"]);
    assert_eq!(stage.comes_to(&message, "done")["answer"], "reply to one");
    assert_eq!((stage.pid(), stage.model.times("one")), (pid, 1));
    assert_eq!(stage.says("TURN-two"), "reply to two");
    stage.shown("daemon killed in mid-stream");
}

#[test]
fn an_agent_that_is_killed_in_mid_stream_is_told_the_message_again_and_that_it_is_again() {
    let stage = claude();
    let message = stage.sends("TURN-one HOLD");
    stage.model.is_asked("one");
    let pid = stage.pid();
    crate::processes::kill(pid);
    stage.model.let_go();
    stage.model.let_go();
    assert_eq!(stage.comes_to(&message, "done")["answer"], "reply to one");
    assert_ne!(stage.pid(), pid);
    assert!(stage.model.prompt_of("one").contains("delivered again"));
    stage.shown("agent killed in mid-stream");
}

#[test]
fn a_shim_that_is_killed_takes_its_agent_with_it_and_the_message_is_told_again() {
    let stage = claude();
    let message = stage.sends("TURN-one HOLD");
    stage.model.is_asked("one");
    let (agent, shim) = (stage.pid(), crate::world::number(&stage.show()["shim_pid"]));
    crate::processes::kill(shim);
    stage.model.let_go();
    stage.model.let_go();
    assert_eq!(stage.comes_to(&message, "done")["answer"], "reply to one");
    assert!(!lives(agent));
    assert!(stage.model.prompt_of("one").contains("delivered again"));
    stage.shown("shim killed in mid-stream");
}

#[test]
fn a_daemon_that_is_killed_in_a_request_is_told_of_it_again() {
    let stage = claude();
    let message = stage.sends(&format!("TURN-one RUN=touch {};;", stage.text("work/allowed")));
    stage.is_asked();
    stage.world.kill_daemon();
    stage.ok(&["up"]);
    stage.is_asked();
    stage.ok(&["answer", "api", "allow"]);
    stage.comes_to(&message, "done");
    assert!(stage.world.path("work/allowed").exists());
    assert_eq!(stage.model.times("one"), 1);
    stage.shown("daemon killed in a request");
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

#[test]
fn it_can_be_checked_with_one_turn_and_its_version_is_proven() {
    let stage = Stage::new("claude");
    let asked = stage.run(&["agents", "--check", "claude"]);
    assert_eq!((asked.code, stage.model.times("")), (2, 0), "nobody was asked: {asked:?}");
    let checked = stage.ok(&["agents", "--check", "claude", "--yes"]).stdout;
    assert!(checked.starts_with("claude answered after ") && checked.contains("reply to"), "{checked}");
    let agents = stage.ok(&["--json", "agents"]).json();
    let claude = agents.as_array().unwrap().iter().find(|agent| agent["name"] == "claude").unwrap();
    assert_eq!(claude["proven"], "proven", "{claude}");
    stage.shown("agents --check");
}
