//! One writer for each conversation: in a home, in all homes, and beside what a person does by hand.

use super::stage::{Stage, agents};
use crate::world::finish_within;
use std::process::{Command, Stdio};

fn vendor(stage: &Stage) -> String {
    stage.show()["vendor_session"].as_str().unwrap().to_owned()
}

/// The command for a second session on a conversation.
fn second<'a>(stage: &'a Stage, vendor: &'a str, dir: &'a str) -> [&'a str; 8] {
    ["new", "second", "--agent", stage.agent(), "--vendor-session", vendor, "--dir", dir]
}

#[test]
fn claude_is_refused_a_conversation_that_is_held_here_or_in_another_home_and_keeps_every_turn() {
    let stage = Stage::new("claude");
    stage.new_session();
    stage.says("TURN-one");
    let (vendor, other) = (vendor(&stage), stage.text("other"));
    let words = second(&stage, &vendor, &other);
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

/// A person continues the same conversation by hand, without pinfold.
fn by_hand(stage: &Stage, words: &[&str]) {
    let usual = stage.command(&[]);
    let mut command = Command::new(agents().join("bin").join(stage.agent()));
    command.args(words).stdin(Stdio::null()).env_clear();
    command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(stage.world.path("work"));
    let answer = finish_within(&mut command, crate::processes::PATIENCE);
    assert_eq!(answer.code, 0, "{answer:?}");
}

/// A person says something between two runs; `before` and `after` are the agent's arguments around the id.
fn keeps_what_was_said_by_hand(stage: &Stage, before: &[&str], after: &[&str]) {
    stage.new_session();
    stage.says("TURN-one");
    let vendor = vendor(stage);
    stage.ok(&["stop", "api"]);
    by_hand(stage, &[before, &[&vendor], after].concat());
    stage.ok(&["start", "api"]);
    assert_eq!(stage.says("TURN-three"), "reply to three");
    assert_eq!(stage.model.shown_with("three"), ["one", "two", "three"]);
    stage.shown("resumed by hand between two runs");
}

#[test]
fn what_a_person_says_to_claude_between_two_runs_is_kept() {
    keeps_what_was_said_by_hand(&Stage::new("claude"), &["-p", "TURN-two", "--resume"], &[]);
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn what_a_person_says_to_gemini_between_two_runs_is_kept() {
    keeps_what_was_said_by_hand(&Stage::new("gemini"), &["--resume"], &["-p", "TURN-two"]);
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn gemini_is_refused_a_conversation_that_is_held_here_or_in_another_home_and_keeps_every_turn() {
    let stage = Stage::new("gemini");
    stage.new_session();
    stage.says("TURN-one");
    let message = stage.sends("TURN-two HOLD");
    stage.model.is_asked("two");
    let (vendor, other) = (vendor(&stage), stage.text("other"));
    let words = second(&stage, &vendor, &other);
    let here = stage.run(&words);
    assert_eq!(here.code, 75, "{here:?}");
    assert!(here.stderr.contains("of session `api`"), "{here:?}");
    let elsewhere = stage.text("second-home");
    let there = stage.run(&[&["--home", &elsewhere][..], &words].concat());
    assert_eq!(there.code, 75, "{there:?}");
    stage.ok(&["--home", &elsewhere, "down"]);
    stage.model.let_go();
    stage.comes_to(&message, "done");
    stage.says("TURN-three");
    assert_eq!(stage.model.shown_with("three"), ["one", "two", "three"]);
    stage.shown("double resume refused");
}

/// Two sessions of one user: two conversations in the vendor's one folder.
fn two_of_one_home(stage: &Stage) {
    stage.new_session();
    stage.ok(&["new", "other", "--agent", stage.agent(), "--dir", &stage.text("other")]);
    stage.sends("TURN-one HOLD");
    stage.model.is_asked("one");
    let answer = stage.ok(&["send", "other", "TURN-two", "--wait"]);
    assert_eq!(answer.stdout.trim(), "reply to two");
    stage.model.let_go();
    assert_eq!(stage.says("TURN-three"), "reply to three");
    stage.ok(&["send", "other", "TURN-four", "--wait"]);
    assert_eq!(stage.model.shown_with("three"), ["one", "three"]);
    assert_eq!(stage.model.shown_with("four"), ["two", "four"]);
    stage.shown("two sessions of one vendor home");
}

#[test]
fn two_sessions_of_claude_in_one_home_of_its_own_do_not_meet() {
    two_of_one_home(&Stage::new("claude"));
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn two_sessions_of_gemini_in_one_home_of_its_own_do_not_meet() {
    two_of_one_home(&Stage::new("gemini"));
}

#[test]
fn a_folder_of_claude_that_is_named_is_the_one_that_is_usual_if_it_is() {
    let stage = Stage::new("claude");
    stage.new_session();
    stage.says("TURN-one");
    assert!(stage.world.path("user/.claude/projects").exists());
    let (vendor, other) = (vendor(&stage), stage.text("other"));
    let words = second(&stage, &vendor, &other);
    let mut named = stage.command(&words);
    named.env("CLAUDE_CONFIG_DIR", stage.world.path("user/.claude"));
    let refused = finish_within(&mut named, crate::processes::PATIENCE);
    assert_eq!(refused.code, 75, "{refused:?}");
    assert!(refused.stderr.contains("of session `api`"), "{refused:?}");
    stage.shown("start with an unset home of its own");
}
