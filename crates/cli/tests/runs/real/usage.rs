//! The usage counted is what the model reported, whatever happens to the agent in between.

use super::stage::Stage;
use serde_json::Value;

/// Input and output tokens of each request.
const EACH: (u64, u64) = (11, 7);

#[track_caller]
fn equals_the_models_count(stage: &Stage) {
    let requests = stage.model.requests() as u64;
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
fn codex_counts_what_the_model_gave() {
    over_everything(&Stage::new("codex"));
}

#[test]
fn pi_counts_what_the_model_gave() {
    over_everything(&Stage::new("pi"));
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn gemini_counts_what_the_model_gave() {
    over_everything(&Stage::new("gemini"));
}

#[test]
fn opencode_counts_what_the_model_gave() {
    over_everything(&Stage::new("opencode"));
}
