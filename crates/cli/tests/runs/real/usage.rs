//! The usage counted is what the model reported, whatever happens to the agent in between.

use super::stage::{BRIDGE, Stage};
use super::{codex, gemini};
use crate::tty::Tty;
use serde_json::Value;

/// Input and output tokens of each request.
const EACH: (u64, u64) = (11, 7);

#[track_caller]
fn equals_the_models_count(stage: &Stage) {
    // The bridge tells of turns. What Claude Code asks beside them, to suggest what a person might type next, is not among them.
    let aside = if stage.agent() == BRIDGE { stage.model.suggestions() } else { 0 };
    equals_the_models_count_without(stage, aside);
}

/// This agent tells nobody of so many requests.
#[track_caller]
fn equals_the_models_count_without(stage: &Stage, untold: usize) {
    let requests = (stage.model.requests() - untold) as u64;
    let usage = stage.show()["usage"].clone();
    let counted = |usage: &Value| (usage["input_tokens"].as_u64(), usage["output_tokens"].as_u64());
    let expected = (Some(EACH.0 * requests), Some(EACH.1 * requests));
    assert_eq!(counted(&usage), expected, "after {requests} requests: {usage}");
    let sums = stage.ok(&["--json", "usage", "--by", "account"]).json();
    assert_eq!(counted(&sums[0]), expected, "{sums}");
}

/// Turns, a tool, a restart, a death of the daemon and one of the agent.
fn over_everything(stage: &Stage) {
    stage.new_session();
    stage.says("TURN-one");
    equals_the_models_count(stage);
    stage.says("TURN-two");
    stage.ok(&["restart", "api"]);
    stage.says("TURN-three");
    equals_the_models_count(stage);
    stage.world.kill_daemon();
    stage.says("TURN-four");
    equals_the_models_count(stage);
    stage.ok(&["stop", "api"]);
    stage.ok(&["start", "api"]);
    stage.says("TURN-five");
    equals_the_models_count(stage);
    stage.shown("usage equals the model's");
}

#[test]
fn claude_counts_what_the_model_gave_over_a_clear_and_a_takeover() {
    let stage = Stage::new("claude");
    over_everything(&stage);
    assert!(stage.show()["usage"]["cost_usd"].as_f64().unwrap() > 0.0);
    stage.says("/clear");
    stage.says("TURN-six");
    equals_the_models_count(&stage);
    let mut tty = stage.attach();
    tty.shows("reply to six");
    tty.keys(b"TURN-seven\r");
    tty.shows("reply to seven");
    tty.keys(b"/exit\r");
    assert!(tty.ended().success());
    stage.says("TURN-eight");
    equals_the_models_count(&stage);
    stage.shown("usage over a takeover");
}

#[test]
fn codex_counts_what_the_model_gave_and_what_its_terminal_was_given() {
    let stage = Stage::new("codex");
    over_everything(&stage);
    let mut tty = stage.attach();
    tty.shows("reply to five");
    codex::types(&tty, "TURN-six", || stage.model.times("six") > 0);
    tty.shows("reply to six");
    stage.says("TURN-seven");
    equals_the_models_count(&stage);
    codex::quits(&mut tty);
    stage.says("TURN-eight");
    equals_the_models_count(&stage);
    stage.shown("usage over a takeover");
}

/// Its terminal takes over for one turn, which is not counted, and changes nothing of what is.
fn but_not_of_its_terminal(stage: &Stage, types: impl FnOnce(&mut Tty)) {
    let before = stage.model.requests();
    let mut tty = stage.attach();
    tty.shows("reply to five");
    types(&mut tty);
    let of_terminal = stage.model.requests() - before;
    assert!(stage.model.times("six") > 0);
    stage.says("TURN-seven");
    assert_eq!(stage.model.shown_with("seven").last_chunk(), Some(&["six".to_owned(), "seven".to_owned()]));
    equals_the_models_count_without(stage, of_terminal);
    stage.shown("usage beside a takeover, whose own is not told");
}

#[test]
fn pi_counts_what_the_model_gave() {
    let stage = Stage::new("pi");
    over_everything(&stage);
    but_not_of_its_terminal(&stage, |tty| {
        tty.keys(b"TURN-six\r");
        tty.shows("reply to six");
        tty.keys(b"/quit\r");
        tty.ended();
    });
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn gemini_counts_what_the_model_gave() {
    let stage = Stage::new("gemini");
    over_everything(&stage);
    but_not_of_its_terminal(&stage, |tty| {
        gemini::types(tty, "TURN-six", |_| stage.model.times("six") > 0);
        tty.shows("reply to six");
        gemini::types(tty, "/quit", Tty::is_over);
    });
}

#[test]
fn opencode_counts_what_the_model_gave() {
    let stage = Stage::new("opencode");
    over_everything(&stage);
    but_not_of_its_terminal(&stage, |tty| {
        tty.keys(b"TURN-six\r");
        tty.shows("reply to six");
        // An Enter that comes before its list of commands is lost.
        tty.keys(b"/exit");
        tty.shows("Exit the app");
        tty.keys(b"\r");
        tty.ended();
    });
}

#[test]
fn the_bridge_counts_what_the_model_gave_over_a_clear() {
    let stage = Stage::new(BRIDGE);
    over_everything(&stage);
    stage.says("/clear");
    stage.says("TURN-six");
    assert_eq!(stage.model.shown_with("six"), ["six"]);
    equals_the_models_count(&stage);
    stage.shown("clear as a message");
}
