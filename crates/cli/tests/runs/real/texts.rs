//! What people type is a text for the model, and stays in the conversation, whatever it begins with.

use super::many::begun;
use super::stage::{BRIDGE, Stage};

/// What a terminal may take for more than a text, each with a word for its turn.
const MARKS: [(&str, &str); 6] =
    [("/", "slash"), ("?", "question"), ("!", "bang"), ("@", "at"), ("#", "hash"), ("-", "dash")];

/// Texts that begin with each of these, and one more that looks like a command, are answered; the next run
/// still shows all of them to the model.
fn every_text_stays(stage: &Stage) {
    let mut turns = vec!["one".to_owned()];
    assert_eq!(stage.says("TURN-one"), "reply to one");
    let texts = MARKS.map(|(mark, word)| (format!("{mark}tmp TURN-{word}"), word));
    let more = ("/clear the build cache, TURN-clear".to_owned(), "clear");
    for (text, word) in texts.into_iter().chain([more]) {
        assert_eq!(stage.says(&text), format!("reply to {word}"), "{text}");
        assert!(stage.model.prompt_of(word).contains(&text), "{}", stage.model.prompt_of(word));
        turns.push(word.to_owned());
    }
    stage.ok(&["restart", "api"]);
    assert_eq!(stage.says("TURN-last"), "reply to last");
    turns.push("last".to_owned());
    assert_eq!(stage.model.shown_with("last"), turns);
    stage.shown("a text that looks like a command is a text");
}

#[test]
fn claude_shows_its_model_every_text() {
    every_text_stays(&begun("claude"));
}

#[test]
fn codex_shows_its_model_every_text() {
    every_text_stays(&begun("codex"));
}

#[test]
fn pi_shows_its_model_every_text() {
    every_text_stays(&begun("pi"));
}

#[test]
fn opencode_shows_its_model_every_text() {
    every_text_stays(&begun("opencode"));
}

#[test]
fn gemini_shows_its_model_every_text_in_every_later_run() {
    every_text_stays(&begun("gemini"));
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn the_bridge_shows_its_model_every_text() {
    every_text_stays(&begun(BRIDGE));
}

#[test]
fn a_command_that_is_listed_is_one() {
    let stage = begun("claude");
    stage.says("TURN-one");
    let before = stage.show()["vendor_session"].clone();
    stage.says("/clear\n");
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_eq!(stage.model.shown_with("two"), ["two"]);
    assert_ne!(stage.show()["vendor_session"], before);
}

#[test]
fn a_message_that_is_retried_says_so() {
    let stage = begun("claude");
    stage.says("TURN-one");
    let failed = stage.sends("TURN-two HOLD");
    stage.model.is_asked("two");
    stage.ok(&["interrupt", "api"]);
    stage.comes_to(&failed, "failed");
    stage.ok(&["inbox", "api", "--retry", &failed]);
    // The interrupted reply waits, too.
    stage.model.let_go();
    stage.model.let_go();
    assert_eq!(stage.comes_to(&failed, "done")["answer"], "reply to two");
    assert_eq!(stage.model.times_told("two"), 2);
    // One that no agent has seen is told for the first time.
    let held = stage.sends("TURN-three HOLD");
    stage.model.is_asked("three");
    let waits = stage.sends("TURN-four");
    stage.ok(&["inbox", "api", "--cancel", &waits]);
    stage.ok(&["inbox", "api", "--retry", &waits]);
    stage.model.let_go();
    stage.comes_to(&held, "done");
    stage.comes_to(&waits, "done");
    assert!(!stage.model.prompt_of("four").contains("delivered again"), "{}", stage.model.prompt_of("four"));
}
