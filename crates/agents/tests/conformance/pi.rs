//! pi: how its recordings are read, and what counts.

use crate::dice::Dice;
use crate::kit::{Story, conforms, ends, folded, observed, prompt, setup};
use crate::recordings::Recording;
use crate::replay::{Told, Tongue, of, told};
use pinfold_agents::{CannotSay, Intent, Label, Protocol, Setup};
use serde_json::{Value, json};

const PI: Tongue = Tongue {
    same: |_| {},
    prompt: |line| line["message"].as_str().filter(|_| line["type"] == "prompt"),
    unsaid: |_, line| match line["type"].as_str() {
        Some("get_state") => Some(Label::Handshake(1)),
        Some("abort") => Some(Label::Interrupt),
        _ => Some(Label::Other("what pinfold would not say".into())),
    },
    checked: Some(|number| {
        json!({ "id": number.to_string(), "type": "response", "command": "get_state", "success": true, "data": {} })
            .to_string()
    }),
    in_short: |line| {
        let words =
            [&line["type"], &line["command"], &line["message"]["role"], &line["message"]["stopReason"]];
        words.into_iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
    },
};

fn pi() -> Setup {
    setup(Protocol::Pi)
}

fn run(recording: &Recording) -> Told {
    told(&PI, pi(), recording)
}

#[test]
fn every_line_of_every_recording_means_what_it_meant() {
    for recording in of(&["pi"]) {
        insta::with_settings!({ snapshot_path => "../snapshots/pi", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(recording.case.clone(), run(&recording).snapshot());
        });
    }
}

#[test]
fn every_recording_conforms() {
    let mut dice = Dice(17);
    let count = of(&["pi"]).map(|recording| conforms(&pi(), &run(&recording).story, &mut dice)).count();
    assert!(count > 30, "the recordings are there");
}

/// A story after the handshake.
fn ready() -> Story {
    let state = json!({ "id": "1", "type": "response", "success": true, "data": { "sessionId": "s-1" } });
    Story::new().said(Label::Handshake(1)).line(state.to_string())
}

const START: &str = r#"{"type":"agent_start"}"#;
const END: &str = r#"{"type":"agent_end","messages":[]}"#;

/// A story in the middle of its first turn.
fn working() -> Story {
    ready().prompt(1, 1).line(r#"{"id":"2","type":"response","success":true}"#).line(START)
}

fn message(text: &str, stop: &str, error: Option<&str>) -> String {
    let usage =
        json!({ "input": 10, "output": 7, "cacheRead": 1, "cacheWrite": 0, "cost": { "total": 0.5 } });
    let content = json!([{ "type": "text", "text": text }]);
    let message = json!({ "role": "assistant", "content": content, "stopReason": stop, "errorMessage": error, "usage": usage });
    json!({ "type": "message_end", "message": message }).to_string()
}

fn after(story: &Story) -> Vec<String> {
    conforms(&pi(), story, &mut Dice(3));
    let told = ends(&observed(&pi(), story));
    assert_eq!(told[0], "wants handshake 1");
    told[1..].to_vec()
}

#[test]
fn a_turn_ends_with_the_agent_and_as_its_last_message_did() {
    let session = "session s-1";
    let rows: [(Vec<String>, &[&str]); 5] = [
        (
            vec![message("a", "toolUse", None), message("b", "stop", None)],
            &["taken 1", session, "done 1 \"b\" for 22+14"],
        ),
        (
            vec![message("a", "aborted", Some("x"))],
            &["taken 1", session, "cancelled unasked 1 \"a\" for 11+7"],
        ),
        (
            vec![],
            &[
                "taken 1",
                "failed (Other: it ended the turn, and its model has said nothing) 1 for 0+0 in all",
            ],
        ),
        (vec![message("a", "error", Some("429 no"))], &["taken 1", session, "wants handshake 2"]),
        (vec![message("a", "length", None)], &["taken 1", session, "wants handshake 2"]),
    ];
    for (lines, expected) in rows {
        let story = lines.iter().fold(working(), |story, line| story.line(line)).line(END);
        assert_eq!(after(&story), expected, "{lines:?}");
    }
}

#[test]
fn a_turn_that_failed_is_over_when_it_is_not_tried_again() {
    let failed = working().line(message("", "error", Some("429 no"))).line(END).said(Label::Handshake(2));
    let state = r#"{"id":"3","type":"response","success":true,"data":{}}"#;
    let told = after(&failed.clone().line(state));
    assert_eq!(told[told.len() - 2..], ["limit Reached", "failed (Limit: 429 no) 1 for 11+7"]);
    let again =
        r#"{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":2000,"errorMessage":"429 no"}"#;
    let again = failed.line(again).line(state);
    assert_eq!(
        after(&again).last().unwrap(),
        "note: the agent says: tries again, 1 of 3, in 2000 ms: 429 no"
    );
    let done = again.clone().line(START).line(message("yes", "stop", None)).line(END);
    assert_eq!(after(&done).last().unwrap(), "done 1 \"yes\" for 22+14");
    let given_up = again.line(START).line(message("", "error", Some("503 no"))).line(END);
    let given_up = given_up.line(r#"{"type":"auto_retry_end","success":false}"#);
    assert_eq!(after(&given_up).last().unwrap(), "failed (Overloaded: 503 no) 1 for 22+14");
}

#[test]
fn a_prompt_that_is_not_taken_has_failed() {
    let refused = r#"{"id":"2","type":"response","success":false,"error":"already streaming"}"#;
    assert_eq!(
        after(&ready().prompt(1, 1).line(refused)),
        ["taken 1", "failed (Other: already streaming) 1"]
    );
}

#[test]
fn the_end_of_a_turn_that_was_given_up_is_not_the_end_of_the_next() {
    let story = working().let_go(1, 1).prompt(2, 2).line(message("a", "aborted", None)).line(END);
    let late = "note: the agent ended the turn \"2\", which is not under way: ignored";
    assert_eq!(after(&story).last().unwrap(), late);
    assert_eq!(after(&ready().line(END)), ["note: the agent ended a turn while none was under way"]);
}

#[test]
fn an_extension_that_asks_is_told_that_nobody_is_there() {
    let asks =
        |method: &str| json!({ "type": "extension_ui_request", "id": "q1", "method": method }).to_string();
    assert_eq!(after(&working().line(asks("notify"))), ["taken 1"]);
    let story = working().line(asks("confirm"));
    let said = folded(&pi(), &story).0.say(3, &Intent::Handshake { step: 1000 }).unwrap();
    let said: Value = serde_json::from_slice(&said.bytes).unwrap();
    assert_eq!(said, json!({ "type": "extension_ui_response", "id": "q1", "cancelled": true }));
}

#[test]
fn nothing_is_said_that_it_would_lose() {
    let fold = folded(&pi(), &working()).0;
    assert_eq!(fold.say(3, &prompt(2, 2, "x")), Err(CannotSay::TurnUnderWay));
    let fold = folded(&pi(), &ready()).0;
    assert_eq!(fold.say(2, &Intent::Interrupt), Err(CannotSay::NoTurn));
}

#[test]
fn a_line_of_30_mb_that_repeats_the_text_is_passed_over() {
    let text = "x".repeat(10 << 20);
    let partial = json!({ "content": [{ "type": "text", "text": text }] });
    let update = json!({ "type": "message_update", "assistantMessageEvent": { "delta": "x", "partial": partial, "content": text }, "message": partial });
    let story = working().line(update.to_string()).line(message("yes", "stop", None)).line(END);
    assert_eq!(ends(&observed(&pi(), &story)).last().unwrap(), "done 1 \"yes\" for 11+7");
}

#[test]
fn what_is_not_of_the_protocol_is_noted_and_changes_nothing() {
    let deep = "[".repeat(100_000);
    for line in ["garbage", "{", "[]", "\u{0}", &deep, r#"{"id":2}"#, r#"{"type":7}"#] {
        let told = after(&working().line(line).line(message("yes", "stop", None)).line(END));
        assert!(told[1].starts_with("note: a line is not of the agent's protocol"), "{told:?}");
        assert!(told.last().unwrap().starts_with("done 1"), "{line:.40}");
    }
    for line in [
        r#"{"type":"of a later version"}"#,
        r#"{"type":"message_end","message":7}"#,
        r#"{"type":"response","success":true}"#,
    ] {
        assert_eq!(after(&working().line(line)), ["taken 1"], "{line}");
    }
}
