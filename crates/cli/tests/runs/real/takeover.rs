//! Claude Code in its own terminal.

use super::stage::Stage;
use serde_json::json;

#[test]
fn a_person_takes_over_and_the_session_goes_on_where_the_terminal_left() {
    let stage = Stage::new("claude");
    stage.new_session();
    stage.says("TURN-one");
    let before = stage.show()["vendor_session"].clone();
    let mut tty = stage.attach();
    tty.shows("reply to one");
    tty.keys(b"TURN-two\r");
    tty.shows("reply to two");
    assert_eq!(stage.model.shown_with("two"), ["one", "two"]);
    stage.shown("takeover by its own terminal");
    tty.keys(b"/clear\r");
    tty.until("an empty conversation", |screen| !screen.contents().contains("reply to"));
    tty.keys(b"TURN-three\r");
    tty.shows("reply to three");
    tty.keys(b"/exit\r");
    assert!(tty.ended().success());
    assert_eq!(stage.says("TURN-four"), "reply to four");
    assert_eq!(stage.model.shown_with("four"), ["three", "four"]);
    assert_ne!(stage.show()["vendor_session"], before);
    stage.shown("hand-back");
    stage.shown("hand-back after a clear");
}

#[test]
fn a_session_begins_in_the_terminal_of_its_vendor_too() {
    let stage = Stage::new("claude");
    stage.new_session();
    let mut tty = stage.attach();
    tty.shows("Claude Code");
    // In the agent view, this moves the conversation into the vendor's daemon.
    tty.keys(b"\x1b[D");
    tty.keys(b"TURN-one\r");
    tty.shows("reply to one");
    tty.keys(b"\x1b[D");
    tty.keys(b"/exit\r");
    assert!(tty.ended().success());
    assert!(!stage.world.path("user/.claude/daemon.lock").exists());
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_eq!(stage.model.shown_with("two"), ["one", "two"]);
    stage.shown("begun in its own terminal");
}

#[test]
fn a_conversation_that_was_begun_while_no_daemon_lived_is_gone_on_with() {
    let stage = Stage::new("claude");
    stage.new_session();
    stage.says("TURN-one");
    let mut tty = stage.attach();
    tty.shows("reply to one");
    stage.world.kill_daemon();
    tty.keys(b"/clear\r");
    tty.until("an empty conversation", |screen| !screen.contents().contains("reply to"));
    tty.keys(b"TURN-two\r");
    tty.shows("reply to two");
    tty.keys(b"/exit\r");
    tty.ended();
    assert_eq!(stage.says("TURN-three"), "reply to three");
    assert_eq!(stage.model.shown_with("three"), ["two", "three"]);
    stage.shown("hand-back after a clear, daemon killed meanwhile");
}

#[test]
fn a_conversation_that_was_begun_and_not_used_is_begun_with_the_next_message() {
    let stage = Stage::new("claude");
    let user = stage.world.path("user");
    std::fs::create_dir_all(user.join(".claude")).unwrap();
    let hook = json!([{ "hooks": [{ "type": "command", "command": "cat >>$HOME/ends" }] }]);
    let settings = json!({ "hooks": { "SessionEnd": hook } });
    std::fs::write(user.join(".claude/settings.json"), settings.to_string()).unwrap();
    stage.new_session();
    stage.says("TURN-one");
    let mut tty = stage.attach();
    tty.shows("reply to one");
    tty.keys(b"/clear\r");
    tty.until("an empty conversation", |screen| !screen.contents().contains("reply to"));
    // At once: Claude Code has not yet written anywhere else which conversation it is in.
    tty.keys(b"/exit\r");
    assert!(tty.ended().success());
    let ends = std::fs::read_to_string(user.join("ends")).unwrap();
    assert!(ends.contains("prompt_input_exit"), "a hook of the user's own is passed over: {ends}");
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_eq!(stage.model.shown_with("two"), ["two"], "{}", tty.everything());
    assert_eq!(stage.says("TURN-three"), "reply to three");
    assert_eq!(stage.model.shown_with("three"), ["two", "three"]);
    stage.shown("hand-back after a clear and nothing else");
}
