//! Gemini CLI: one run for each message.

use super::stage::Stage;
use crate::processes::PATIENCE;
use crate::tty::Tty;
use std::time::{Duration, Instant};

/// Gemini CLI with a shell that runs without asking.
pub(crate) fn with_a_shell() -> Stage {
    let words = |how: &str| {
        format!(
            "[\"gemini\", \"--output-format\", \"stream-json\", \"--approval-mode\", \"yolo\", \"{how}\", \"{{vendor_session}}\", \"--prompt={{prompt}}\"]"
        )
    };
    let (command, resume) = (words("--session-id"), words("--resume"));
    Stage::new("gemini").configured(&format!(
        "[agents.gemini]\nprotocol = \"exec\"\ncommand = {command}\nresume = {resume}\n"
    ))
}

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
fn a_message_that_begins_with_a_dash_is_a_message() {
    let stage = Stage::new("gemini");
    stage.new_session();
    assert_eq!(stage.says("--help TURN-one"), "reply to one");
    assert_eq!(stage.says("- a list, TURN-two"), "reply to two");
}

#[test]
fn a_home_of_its_own_is_where_its_conversation_is_found() {
    let stage = Stage::new("gemini");
    let home = stage.text("gemini-home");
    let folder = stage.world.path("gemini-home/.gemini");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::rename(stage.world.path("user/.gemini/settings.json"), folder.join("settings.json")).unwrap();
    let stage = stage.with("GEMINI_CLI_HOME", Some(&home));
    stage.new_session();
    assert_eq!(stage.says("TURN-one"), "reply to one");
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_eq!(stage.model.shown_with("two"), ["one", "two"]);
    assert!(folder.join("tmp").exists() && !stage.world.path("user/.gemini/tmp").exists());
    stage.shown("a store elsewhere");
}

#[test]
fn a_reply_that_is_begun_again_after_a_cut_is_one_answer() {
    let stage = Stage::new("gemini");
    let settings = stage.world.path("user/.gemini/settings.json");
    let mut tries: serde_json::Value = serde_json::from_slice(&std::fs::read(&settings).unwrap()).unwrap();
    tries["general"] = serde_json::json!({ "enableAutoUpdate": false });
    std::fs::write(&settings, tries.to_string()).unwrap();
    stage.new_session();
    assert_eq!(stage.says("TURN-one CUT ONCE"), "reply to one");
    assert_eq!(stage.model.times("one"), 2, "it was cut, and asked for again");
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

/// Types a line. Gemini takes an Enter right after other keys for part of a paste, so it is pressed until it works.
pub(super) fn types(tty: &mut Tty, text: &str, came: impl FnMut(&mut Tty) -> bool) {
    types_until(tty, text, text, came);
}

/// The same, with `shown` as the sign that the line was understood.
fn types_until(tty: &mut Tty, text: &str, shown: &str, mut came: impl FnMut(&mut Tty) -> bool) {
    tty.shows("Type your message");
    tty.keys(text.as_bytes());
    tty.shows(shown);
    let until = Instant::now() + PATIENCE;
    while !came(tty) {
        assert!(Instant::now() < until, "nothing comes of {text}:\n{}", tty.contents());
        tty.keys(b"\r");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn a_person_takes_over_and_the_session_goes_on_where_the_terminal_left() {
    let stage = Stage::new("gemini");
    stage.new_session();
    stage.says("TURN-one");
    let mut tty = stage.attach();
    tty.shows("reply to one");
    types(&mut tty, "TURN-two", |_| stage.model.times("two") > 0);
    tty.shows("reply to two");
    assert_eq!(stage.model.shown_with("two"), ["one", "two"]);
    stage.shown("takeover by its own terminal");
    types(&mut tty, "/quit", Tty::is_over);
    assert_eq!(stage.says("TURN-three"), "reply to three");
    assert_eq!(stage.model.shown_with("three"), ["one", "two", "three"]);
    stage.shown("hand-back");
}

/// Clears the conversation in its terminal. A command typed before Gemini has loaded it would be a message.
fn clears(tty: &mut Tty) {
    types_until(tty, "/clear", "start a new session", |tty| !tty.contents().contains("reply to"));
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn a_conversation_that_was_begun_in_its_terminal_is_gone_on_with() {
    let stage = Stage::new("gemini");
    stage.new_session();
    stage.says("TURN-one");
    let before = stage.show()["vendor_session"].clone();
    // As wide as most terminals: the line that names the conversation does not fit.
    let mut tty = Tty::start(stage.command(&["attach", "api"]), 40, 80);
    tty.shows("reply to one");
    clears(&mut tty);
    types(&mut tty, "TURN-two", |_| stage.model.times("two") > 0);
    tty.shows("reply to two");
    types(&mut tty, "/quit", Tty::is_over);
    assert_eq!(stage.says("TURN-three"), "reply to three");
    assert_eq!(stage.model.shown_with("three"), ["two", "three"]);
    assert_ne!(stage.show()["vendor_session"], before);
    stage.shown("hand-back after a clear");
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn a_conversation_that_was_begun_while_no_daemon_lived_is_gone_on_with() {
    let stage = Stage::new("gemini");
    stage.new_session();
    stage.says("TURN-one");
    let mut tty = stage.attach();
    tty.shows("reply to one");
    stage.world.kill_daemon();
    clears(&mut tty);
    types(&mut tty, "TURN-two", |_| stage.model.times("two") > 0);
    tty.shows("reply to two");
    types(&mut tty, "/quit", Tty::is_over);
    assert_eq!(stage.says("TURN-three"), "reply to three");
    assert_eq!(stage.model.shown_with("three"), ["two", "three"]);
    stage.shown("hand-back after a clear, daemon killed meanwhile");
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn a_conversation_that_was_begun_and_not_used_is_begun_with_the_next_message() {
    let stage = Stage::new("gemini");
    stage.new_session();
    stage.says("TURN-one");
    let mut tty = stage.attach();
    tty.shows("reply to one");
    clears(&mut tty);
    types(&mut tty, "/quit", Tty::is_over);
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_eq!(stage.model.shown_with("two"), ["two"]);
    assert_eq!(stage.says("TURN-three"), "reply to three");
    assert_eq!(stage.model.shown_with("three"), ["two", "three"]);
    stage.shown("hand-back after a clear and nothing else");
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn a_conversation_whose_first_turn_failed_goes_on() {
    let stage = Stage::new("gemini");
    stage.new_session();
    let before = stage.show()["vendor_session"].clone();
    let answer = stage.run(&["send", "api", "TURN-one HTTP=400", "--wait"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_ne!(stage.show()["vendor_session"], before);
    assert_eq!(stage.model.times_told("two"), 1);
    assert_eq!(stage.says("TURN-three"), "reply to three");
    assert_eq!(stage.model.shown_with("three"), ["two", "three"]);
    stage.shown("first turn failed");
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn a_session_begins_in_the_terminal_of_its_vendor_too() {
    let stage = Stage::new("gemini");
    stage.new_session();
    let mut tty = stage.attach();
    types(&mut tty, "TURN-one", |_| stage.model.times("one") > 0);
    tty.shows("reply to one");
    types(&mut tty, "/quit", Tty::is_over);
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_eq!(stage.model.shown_with("two"), ["one", "two"]);
    stage.shown("begun in its own terminal");
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn it_can_be_checked_with_one_turn() {
    super::claude::is_checked(&Stage::new("gemini"));
}
