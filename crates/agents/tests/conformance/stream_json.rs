//! Claude Code: what its recordings say, and that pinfold would still say all that was said to it in them.

use crate::dice::Dice;
use crate::kit::{Story, conforms, ends, folded, observed, prompt, setup, short};
use crate::recordings::{Recorded, Recording, all, recorded};
use pinfold_agents::{
    CannotSay, Consent, Fold, Intent, Label, Observation, Protocol, RequestId, RequestReply, Setup,
};
use serde_json::{Value, json};

fn claude() -> Setup {
    setup(Protocol::StreamJson)
}

/// A recording, and what each of its lines leads to.
struct Told {
    story: Story,
    lines: Vec<(String, Vec<String>)>,
}

/// Folds a recording line by line. The fold must say the same as the recording.
fn told(recording: &Recording) -> Told {
    let begin = vec![("begin".to_owned(), Vec::new())];
    let mut told = Told { story: Story::beginning(recording.began()), lines: begin };
    for line in &recording.lines {
        let story = told.story.clone().at(recording.began() + line.millis());
        let story = match line.direction.as_str() {
            "in" => {
                let label = said(&story, line);
                story.said(label)
            }
            "out" => story.line(&line.text),
            "err" => story.err(format!("{}\n", line.text)),
            _ => continue,
        };
        told.lines.push((in_short(line), Vec::new()));
        told.story = story;
    }
    if let Some(exit) = recording.exit {
        told.story = told.story.ends(exit);
        told.lines.extend(["end of output".to_owned(), format!("{exit}")].map(|line| (line, Vec::new())));
    }
    let each = crate::kit::each(&claude(), &told.story);
    for (line, observed) in told.lines.iter_mut().zip(each) {
        line.1 = short(&observed);
    }
    told
}

/// Returns the label of a recorded line, after this story. A second answer to a request is one that pinfold
/// would not give.
fn said(story: &Story, line: &Recorded) -> Label {
    let (fold, observed) = folded(&claude(), story);
    let text: Value = serde_json::from_str(&line.text).unwrap();
    let same = |intent: &Intent| {
        let said = fold.say(story.last_said() + 1, intent);
        said.ok().filter(|said| serde_json::from_slice::<Value>(&said.bytes).unwrap() == text)
    };
    let mut intents = vec![Intent::Handshake { step: 1 }, Intent::Interrupt];
    intents.extend(text["message"]["content"].as_str().into_iter().flat_map(prompts));
    intents.extend(observed.iter().flat_map(replies));
    match intents.iter().find_map(same) {
        Some(said) => said.label,
        None => unsaid(&fold, &text),
    }
}

/// Returns the deliveries that a recorded prompt may be.
fn prompts(text: &str) -> impl Iterator<Item = Intent> {
    (1..10).map(move |number| prompt(u128::from(number), number, text))
}

/// Returns the answers that a request may have got.
fn replies(observation: &Observation) -> Vec<Intent> {
    let Observation::RequestOpened(request) = observation else { return Vec::new() };
    let reply = |verdict, words: Option<&str>, always| {
        Intent::Answer(RequestReply { request: request.id, verdict, words: words.map(str::to_owned), always })
    };
    vec![
        reply(Consent::Allow, None, false),
        reply(Consent::Allow, None, true),
        reply(Consent::Allow, Some("B"), false),
        reply(Consent::Deny, None, false),
        reply(Consent::Deny, Some("not today"), false),
        reply(Consent::Deny, Some("use your own judgement"), false),
    ]
}

/// Labels what only a recording says, to find out what comes of it.
fn unsaid(fold: &Fold, text: &Value) -> Label {
    match (text["type"].as_str(), text["request"]["subtype"].as_str()) {
        (Some("control_response"), _) => {}
        (Some("control_request"), Some("initialize")) if fold.ready() => return Label::Handshake(1),
        (Some("user"), _) => {
            let number = (1..10).find(|number| text["uuid"] == uuid(*number)).unwrap();
            return crate::kit::label(u128::from(number), number);
        }
        (Some("control_request"), Some("interrupt")) => return Label::Interrupt,
        _ => assert_eq!(text, &Value::Null, "nothing that can be said"),
    }
    Label::Other("an answer that pinfold would not give".into())
}

/// The id of a delivery.
fn uuid(number: u64) -> Value {
    let fold = folded(&claude(), &greeted()).0;
    let said = fold.say(9, &prompt(u128::from(number), number, "x")).unwrap();
    serde_json::from_slice::<Value>(&said.bytes).unwrap()["uuid"].clone()
}

/// Returns a recorded line, short enough to read.
pub(crate) fn in_short(line: &Recorded) -> String {
    let Ok(value) = serde_json::from_str::<Value>(&line.text) else {
        return format!("{} {}", line.direction, line.text);
    };
    let words =
        ["type", "subtype", "state", "local_command", "terminal_reason"].map(|key| value[key].as_str());
    let request = ["request", "response"].map(|key| value[key]["subtype"].as_str());
    let words: Vec<&str> = words.into_iter().chain(request).flatten().collect();
    format!("{} {}", line.direction, words.join(" "))
}

fn snapshot(recording: &Recording) -> String {
    let told = told(recording);
    let lines = told.lines.iter().map(|(line, observed)| {
        let observed: String = observed.iter().map(|one| format!("    {one}\n")).collect();
        format!("{line}\n{observed}")
    });
    lines.collect()
}

fn of_claude() -> impl Iterator<Item = Recording> {
    all().filter(|recording| recording.agent == "stream-json")
}

#[test]
fn every_line_of_every_recording_means_what_it_meant() {
    for recording in of_claude() {
        insta::with_settings!({ snapshot_path => "../snapshots/stream-json", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(recording.case.clone(), snapshot(&recording));
        });
    }
}

#[test]
fn every_recording_conforms() {
    let mut dice = Dice(11);
    for recording in of_claude() {
        conforms(&claude(), &told(&recording).story, &mut dice);
    }
}

/// A story after the handshake.
pub(crate) fn greeted() -> Story {
    let response = json!({ "subtype": "success", "request_id": "pinfold-1" });
    let hello = json!({ "type": "control_response", "response": response });
    Story::new().said(Label::Handshake(1)).line(hello.to_string())
}

/// The same, after the first message was said.
pub(crate) fn prompted() -> Story {
    greeted().prompt(1, 1)
}

/// Returns what is observed after the handshake, without activity and beginnings.
fn after(story: &Story) -> Vec<String> {
    conforms(&claude(), story, &mut Dice(3));
    let told = ends(&observed(&claude(), story));
    assert_eq!(told[0], "wants handshake 1");
    told[1..].to_vec()
}

/// A result that names these deliveries.
pub(crate) fn result(numbers: &[u64], fields: &Value) -> String {
    let mut line = json!({ "type": "result", "subtype": "success", "is_error": false, "num_turns": 1 });
    line["user_message_uuids"] = numbers.iter().map(|number| uuid(*number)).collect();
    for (key, value) in fields.as_object().unwrap() {
        line[key] = value.clone();
    }
    line.to_string()
}

pub(crate) fn lifecycle(number: u64, state: &str) -> String {
    json!({ "type": "command_lifecycle", "command_uuid": uuid(number), "state": state }).to_string()
}

pub(crate) const IDLE: &str = r#"{"type":"system","subtype":"session_state_changed","state":"idle"}"#;

#[test]
fn a_message_is_delivered_by_proof_and_done_only_by_a_result_that_names_it() {
    let done = result(&[1], &json!({ "result": "yes" }));
    let empty = "note: a result without work names no command of ours: it ends nothing";
    let late = |id: &str| format!("note: the agent ended the turn \"{id}\", which is not under way: ignored");
    let rows: [(&[String], &[&str]); 9] = [
        (&[lifecycle(1, "queued")], &["taken 1"]),
        (&[lifecycle(2, "queued")], &[]),
        (std::slice::from_ref(&done), &["taken 1", "done 1 \"yes\" for 0+0 in all"]),
        (&[result(&[], &json!({ "result": "mine" }))], &["done own \"mine\" for 0+0 in all"]),
        (&[result(&[2], &json!({}))], &[&late(uuid(2).as_str().unwrap())]),
        (&[done.clone(), done.clone()], &["taken 1", "done 1 \"yes\" for 0+0 in all", &late("2")]),
        // Without work it ends only a command of Claude Code's own.
        (&[result(&[1], &json!({ "num_turns": 0 }))], &[empty]),
        (&[result(&[], &json!({ "num_turns": 0, "local_command": "clear" }))], &["done own for 0+0 in all"]),
        (
            &[result(&[1], &json!({ "num_turns": 0, "local_command": "clear", "result": "" }))],
            &["taken 1", "done 1 \"\" for 0+0 in all"],
        ),
    ];
    for (lines, expected) in rows {
        let story = lines.iter().fold(prompted(), |story, line| story.line(line));
        assert_eq!(after(&story), expected, "{lines:?}");
    }
}

#[test]
fn a_result_that_does_not_say_success_is_not_done() {
    let rows = [
        (json!({ "is_error": true, "result": "x" }), "failed (Other: x) 1"),
        (json!({ "subtype": "error_max_turns", "errors": ["a", "b"] }), "failed (Other: a; b) 1"),
        (json!({ "subtype": null, "is_error": null }), "failed (Other: ) 1"),
        (json!({ "is_error": true, "api_error_status": 503 }), "failed (Overloaded: success) 1"),
        (json!({ "is_error": true, "num_turns": 0, "errors": ["blocked"] }), "failed (Other: blocked) 1"),
        (json!({ "terminal_reason": "aborted_streaming" }), "cancelled unasked 1"),
    ];
    for (fields, expected) in rows {
        let told = after(&prompted().line(result(&[1], &fields)));
        assert_eq!(told, ["taken 1".to_owned(), format!("{expected} for 0+0 in all")], "{fields}");
    }
}

#[test]
fn a_message_that_was_swallowed_fails_when_the_agent_is_idle_and_not_before() {
    let swallowed = prompted().line(lifecycle(1, "completed"));
    assert_eq!(after(&swallowed), Vec::<String>::new());
    let text = "Claude Code did not work on this message, and says that it is done with it";
    let failed = format!("failed (Other: {text}) 1");
    assert_eq!(after(&swallowed.clone().line(IDLE)), ["taken 1", &failed]);
    // A late result still counts.
    let done = swallowed.line(result(&[1], &json!({}))).line(IDLE);
    assert_eq!(after(&done), ["taken 1", "done 1 for 0+0 in all"]);
    let cancelled = prompted().said(Label::Interrupt).line(lifecycle(1, "cancelled")).line(IDLE);
    assert_eq!(after(&cancelled), ["taken 1", "interrupted 1"]);
    // The idle state of the last turn arrives after the next message was sent.
    assert_eq!(after(&prompted().line(IDLE).line(lifecycle(1, "queued"))), ["taken 1"]);
}

#[test]
fn what_nobody_offers_is_refused_so_that_the_agent_does_not_wait() {
    let asks = |key: &str| {
        json!({ "type": "control_request", "request_id": key, "request": { "subtype": "elicitation" } })
            .to_string()
    };
    let story = prompted().line(asks("q1")).line(asks("q2"));
    assert_eq!(after(&story), ["wants handshake 2"]);
    let fold = folded(&claude(), &story).0;
    let said = fold.say(3, &Intent::Handshake { step: 2 }).unwrap();
    let said: Value = serde_json::from_slice(&said.bytes).unwrap();
    assert_eq!(said["response"]["request_id"], "q1");
    assert_eq!(said["response"]["subtype"], "error");
    let story = story.said(Label::Handshake(2));
    assert_eq!(after(&story), ["wants handshake 2", "wants handshake 3"]);
    let fold = folded(&claude(), &story.said(Label::Handshake(3))).0;
    assert_eq!(
        (fold.wants(), fold.say(5, &Intent::Handshake { step: 3 })),
        (None, Err(CannotSay::NotWanted))
    );
}

#[test]
fn several_questions_are_answered_line_by_line() {
    let questions = json!([{ "question": "A?" }, { "question": "B?" }]);
    let request = json!({ "subtype": "can_use_tool", "tool_name": "AskUserQuestion", "input": { "questions": questions } });
    let line = json!({ "type": "control_request", "request_id": "q1", "request": request });
    let fold = folded(&claude(), &prompted().line(line.to_string())).0;
    let answers = |words: &str| {
        let (request, words) = (RequestId(1), Some(words.to_owned()));
        let reply = RequestReply { request, verdict: Consent::Allow, words, always: false };
        let said = fold.say(3, &Intent::Answer(reply)).unwrap();
        let said: Value = serde_json::from_slice(&said.bytes).unwrap();
        said["response"]["response"]["updatedInput"]["answers"].clone()
    };
    assert_eq!(answers("one\ntwo"), json!({ "A?": "one", "B?": "two" }));
    assert_eq!(answers("both"), json!({ "A?": "both", "B?": "both" }));
}

#[test]
fn requests_without_end_and_without_bound_do_not_fill_the_cursor() {
    let ask = |number: usize| {
        let questions = json!([{ "question": "\u{1}".repeat(2_000 + number) }]);
        let input = json!({ "questions": questions, "command": "x".repeat(100_000) });
        let rules = json!([{ "type": "addRules", "rules": "y".repeat(1_000) }]);
        let request = json!({ "subtype": "can_use_tool", "tool_name": "AskUserQuestion", "input": input, "permission_suggestions": rules });
        json!({ "type": "control_request", "request_id": format!("q{number}"), "request": request })
            .to_string()
    };
    let story = (0..100).fold(prompted(), |story, number| story.line(ask(number)));
    let (fold, told) = folded(&claude(), &story);
    assert_eq!(told.iter().filter(|told| matches!(told, Observation::RequestOpened(_))).count(), 64);
    assert!(!Fold::resume(fold.run(), &fold.cursor()).0.is_unknown());
}

#[test]
fn what_the_session_cost_in_all_is_told_beside_what_the_turn_did() {
    let turn = |case| {
        let observed = observed(&claude(), &told(&recorded("stream-json", case)).story);
        let mut usages = observed
            .into_iter()
            .filter_map(|told| if let Observation::TurnEnded { usage, .. } = told { usage } else { None });
        usages.next_back().unwrap()
    };
    let (last, resumed) = (turn("turns"), turn("turns-resume"));
    assert_eq!(last.model.as_deref(), Some("claude-opus-5-5"));
    assert_eq!((last.context_used, last.context_size), (Some(18), Some(1_000_000)));
    assert_eq!((last.turn.input_tokens, last.session.input_tokens), (Some(11), Some(1011)));
    assert_eq!((resumed.turn.input_tokens, resumed.session.input_tokens), (Some(11), Some(1022)));
    assert!(resumed.turn.cost_usd < Some(0.0002) && resumed.session.cost_usd > Some(0.005));
    assert_eq!(turn("clear").turn.cost_usd, Some(0.0));
}

#[test]
fn what_is_not_of_the_protocol_is_noted_and_changes_nothing() {
    let deep = "[".repeat(100_000);
    for line in ["garbage", "{", "[]", "7", "\u{0}", deep.as_str(), r#"{"id":2}"#, r#"{"type":7}"#] {
        let told = after(&prompted().line(line).line(result(&[1], &json!({}))));
        assert!(told[0].starts_with("note: a line is not of the agent's protocol"), "{told:?}");
        assert_eq!(told[1..], ["taken 1", "done 1 for 0+0 in all"], "{line:.40}");
    }
    let odd = [
        r#"{"type":"of a later version"}"#,
        r#"{"type":"result_of_a_later_version","user_message_uuids":7}"#,
        r#"{"type":"assistant","message":{"content":[7,{"type":"text","text":{}}]}}"#,
        r#"{"type":"system","subtype":"init","session_id":{},"user_message_uuids":["x"]}"#,
        r#"{"type":"command_lifecycle","command_uuid":["x"],"state":"started"}"#,
        r#"{"type":"control_request","request":{"subtype":"can_use_tool"}}"#,
        r#"{"type":"control_response","response":"x"}"#,
        r#"{"type":"rate_limit_event","rate_limit_info":[]}"#,
        " ",
    ];
    for line in odd {
        assert_eq!(after(&prompted().line(line)), Vec::<String>::new(), "{line}");
    }
}

#[test]
fn a_field_of_another_type_costs_nothing_but_itself() {
    let fields = json!({ "result": "yes", "usage": "x", "api_error_status": "none", "total_cost_usd": [], "errors": 7, "modelUsage": 7 });
    let told = after(&prompted().line(result(&[1], &fields)));
    assert_eq!(told, ["taken 1", "done 1 \"yes\" for 0+0 in all"]);
}

#[test]
fn a_line_that_is_too_long_fails_the_turn_and_interrupts_it() {
    let piece = "x".repeat(1 << 20);
    let long = (0..33).fold(prompted(), |story, _| story.out(&piece)).line("");
    let told = ends(&observed(&claude(), &long.line(result(&[1], &json!({})))));
    let expected = [
        "note: a line of output was too long, and passed over",
        "taken 1",
        "failed (LineTooLong: a line of its output has more than 32 MiB, and cannot be read) 1",
        "wants interrupt",
        "note: the agent ended the turn \"2\", which is not under way: ignored",
    ];
    assert_eq!(told[1..], expected);
}

#[test]
fn what_is_planned_is_own_work_until_it_came_true_or_is_long_over() {
    let plan = |at: i64| json!({ "type": "user", "tool_use_result": { "scheduledFor": at } }).to_string();
    let (begin, hour) = (1_794_800_000_000, 3_600_000);
    let planned = greeted().line(plan(begin + hour));
    assert_eq!(after(&planned), ["own work true"]);
    let fires =
        r#"{"type":"command_lifecycle","command_uuid":"x","state":"started","wakeup_source":"loop_wakeup"}"#;
    let fired = planned.clone().at(begin + hour).line(fires);
    assert_eq!(after(&fired), ["own work true", "own work false"]);
    let another = planned.clone().at(begin + hour / 2).line(fires).line(IDLE);
    assert_eq!(after(&another), ["own work true"]);
    let over = planned.at(begin + 2 * hour).line(IDLE);
    assert_eq!(after(&over), ["own work true", "own work false"]);
}
