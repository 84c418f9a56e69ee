//! Turns that fail: the session says why, and the next turn works.

use super::model::Model;
use super::stage::Stage;

/// A failed turn: how to cause it, what its reason must say, and the case it shows.
pub(crate) struct Fails {
    pub(crate) script: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) case: &'static str,
}

/// Checks that each of these fails, says why, and leaves a session that works.
#[track_caller]
pub(crate) fn each_fails(stage: &Stage, all: &[Fails]) {
    for (index, Fails { script, reason, case }) in all.iter().enumerate() {
        let answer = stage.run(&["send", "api", &format!("TURN-bad{index} {script}"), "--wait"]);
        assert_eq!(answer.code, 1, "{case}: {answer:?}");
        let failed = stage.world.events_of("api", "message_failed");
        assert_eq!(failed.len(), index + 1, "{case}: {failed:?}");
        assert!(failed[index].to_string().contains(reason), "{case}: {}", failed[index]);
        let good = format!("good{index}");
        assert_eq!(stage.says(&format!("TURN-{good}")), format!("reply to {good}"), "{case}");
        stage.shown(case);
    }
}

/// Checks that the account is held, the message waits at no cost, and a person lets it go on.
#[track_caller]
pub(crate) fn is_held_and_goes_on(stage: &Stage, script: &str, kind: &str) {
    let message = stage.sends(&format!("TURN-bad {script}"));
    stage.world.until("it is held", || (stage.show()["state"] == "blocked").then_some(()));
    let session = stage.show();
    assert_eq!(
        (&session["activity"], &session["request"]["kind"]),
        (&"limited".into(), &kind.into()),
        "{session}"
    );
    let row = stage.comes_to(&message, "queued");
    assert_eq!(row["tries"], 0, "{row}");
    stage.ok(&["inbox", "api", "--cancel", &message]);
    let before = stage.model.requests();
    let good = stage.sends("TURN-good");
    assert_eq!((stage.model.requests(), &stage.comes_to(&good, "queued")["tries"]), (before, &0.into()));
    stage.ok(&["answer", "api", "allow", kind]);
    stage.comes_to(&good, "done");
    assert_eq!(stage.show()["request"], serde_json::Value::Null);
}

/// Claude Code retries for minutes unless it is told not to.
fn claude(model: Model) -> Stage {
    Stage::with_model("claude", model).with("CLAUDE_CODE_MAX_RETRIES", Some("1"))
}

#[test]
fn claude_says_why_and_its_process_goes_on() {
    let stage = claude(Model::start());
    stage.new_session();
    stage.says("TURN-one");
    let pid = stage.pid();
    each_fails(
        &stage,
        &[
            Fails { script: "HTTP=400", reason: "as the prompt says", case: "400" },
            Fails { script: "HTTP=404", reason: "selected model", case: "404" },
        ],
    );
    for (script, kind, case) in
        [("HTTP=401", "login", "401"), ("HTTP=429,3600", "limit", "limit without a time")]
    {
        is_held_and_goes_on(&stage, script, kind);
        stage.shown(case);
    }
    assert_eq!(stage.pid(), pid);
}

#[test]
fn the_usage_limit_of_a_subscription_names_its_end() {
    let stage = Stage::new("claude")
        .with("ANTHROPIC_API_KEY", None)
        .with("CLAUDE_CODE_OAUTH_TOKEN", Some("not-a-token"));
    stage.new_session();
    stage.says("TURN-one");
    is_held_and_goes_on(&stage, "LIMIT=3600", "limit");
    let held = stage.world.events_of("api", "account_held");
    assert_eq!(held.len(), 1, "{held:?}");
    assert!(held[0]["resets"].is_string() && held[0].to_string().contains("hit your"), "{held:?}");
    let account = stage.show()["account"].as_str().unwrap().to_owned();
    assert!(
        account.starts_with("claude:CLAUDE_CODE_OAUTH_TOKEN-") && !account.contains("not-a-token"),
        "{account}"
    );
    let windows = stage.ok(&["--json", "accounts"]).json()[0]["windows"].clone();
    assert_eq!((&windows[0]["window"], &windows[0]["used"]), (&"five_hour".into(), &1.0.into()), "{windows}");
    stage.shown("limit with a time");
}

/// The model sends nonsense, or breaks off: Claude Code asks again without streaming, so either end is right,
/// and is told.
#[test]
fn claude_goes_on_after_garbage_from_the_model() {
    let stage = claude(Model::start());
    stage.new_session();
    stage.says("TURN-one");
    let pid = stage.pid();
    for (script, turn) in [("GARBAGE", "two"), ("CUT", "three")] {
        let answer = stage.run(&["send", "api", &format!("TURN-{turn} {script}"), "--wait"]);
        assert!(answer.code <= 1, "{script}: {answer:?}");
        assert_eq!(answer.code == 0, !answer.stdout.trim().is_empty(), "{script}: {answer:?}");
        let good = format!("after{turn}");
        assert_eq!(stage.says(&format!("TURN-{good}")), format!("reply to {good}"));
    }
    assert_eq!(stage.pid(), pid);
    stage.shown("garbage from the model");
}

#[test]
fn claude_works_again_when_the_network_is_back() {
    let (model, port) = Model::out_of_reach();
    let stage = claude(model);
    stage.new_session();
    let answer = stage.run(&["send", "api", "TURN-one", "--wait"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    let failed = stage.world.events_of("api", "message_failed");
    assert!(failed[0].to_string().to_lowercase().contains("connection"), "{failed:?}");
    let pid = stage.pid();
    stage.model.serve(port);
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_eq!((stage.pid(), stage.model.times_told("one")), (pid, 0));
    stage.shown("network down");
    stage.shown("first turn failed");
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn gemini_says_why_and_its_conversation_goes_on() {
    let stage = Stage::new("gemini");
    stage.new_session();
    stage.says("TURN-one");
    each_fails(
        &stage,
        &[
            Fails { script: "HTTP=400", reason: "as the prompt says", case: "400" },
            Fails { script: "HTTP=404", reason: "", case: "404" },
        ],
    );
    for (script, kind, case) in
        [("HTTP=401", "login", "401"), ("LIMIT=3600", "limit", "limit without a time")]
    {
        is_held_and_goes_on(&stage, script, kind);
        stage.shown(case);
    }
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn gemini_goes_on_after_garbage_from_the_model() {
    let stage = Stage::new("gemini");
    stage.new_session();
    stage.says("TURN-one");
    for (script, turn) in [("GARBAGE", "two"), ("CUT", "three")] {
        let answer = stage.run(&["send", "api", &format!("TURN-{turn} {script}"), "--wait"]);
        assert_eq!(answer.code, 1, "{script}: {answer:?}");
        let good = format!("after{turn}");
        assert_eq!(stage.says(&format!("TURN-{good}")), format!("reply to {good}"));
    }
    stage.shown("garbage from the model");
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn gemini_works_again_when_the_network_is_back() {
    let (model, port) = Model::out_of_reach();
    let stage = Stage::with_model("gemini", model);
    stage.new_session();
    let answer = stage.run(&["send", "api", "TURN-one", "--wait"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    stage.model.serve(port);
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_eq!(stage.model.times_told("one"), 0);
    stage.shown("network down");
}
