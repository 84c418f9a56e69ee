//! Codex: how its recordings are read, and what pinfold sends it.

use crate::dice::Dice;
use crate::kit::{Story, conforms, each, ends, folded, observed, prompt, setup, short};
use crate::recordings::{Recorded, Recording, all};
use pinfold_agents::{
    CannotSay, Consent, Fold, GaveUp, Intent, Label, Observation, Protocol, RequestId, RequestReply, Setup,
};
use pinfold_core::Exit;
use serde_json::{Value, json};

fn codex() -> Setup {
    setup(Protocol::Codex)
}

/// Returns the setup of a recording; the thread that it resumes was known.
fn setup_of(recording: &Recording) -> Setup {
    let resumed = recording.lines.iter().filter(|line| line.direction == "in").find_map(|line| {
        let line: Value = serde_json::from_str(&line.text).ok()?;
        let thread = line["params"]["threadId"].as_str()?.to_owned();
        (line["method"] == "thread/resume").then_some(thread)
    });
    Setup { vendor_session: resumed, ..codex() }
}

/// Turns a recording into a story. The recording has its own request ids and we use word numbers, so its
/// answers are given our numbers.
fn story(recording: &Recording) -> (Story, Vec<String>) {
    let (mut story, mut lines) = (Story::beginning(recording.began()), vec!["begin".to_owned()]);
    let (mut numbers, mut deliveries) = (Vec::<(Value, u64)>::new(), 0);
    for line in &recording.lines {
        let story_now = story.clone().at(recording.began() + line.millis());
        story = match line.direction.as_str() {
            "in" => {
                let Some(label) = said(&line.text, &mut deliveries, &story_now, recording) else { continue };
                let story = story_now.said(label);
                let id = serde_json::from_str::<Value>(&line.text).map(|line| line["id"].clone());
                numbers.push((id.unwrap_or_default(), story.last_said()));
                story
            }
            "out" => story_now.line(renumbered(&line.text, &numbers)),
            "err" => story_now.err(format!("{}\n", line.text)),
            _ => continue,
        };
        lines.push(in_short(line));
    }
    if let Some(exit) = recording.exit {
        story = story.ends(exit);
        lines.extend(["end of output".to_owned(), format!("{exit}")]);
    }
    (story, lines)
}

/// Returns an answer with the number of the word that it answers.
fn renumbered(text: &str, numbers: &[(Value, u64)]) -> String {
    let Ok(mut line) = serde_json::from_str::<Value>(text) else { return text.to_owned() };
    let number = numbers.iter().find(|(id, _)| *id == line["id"]).map(|(_, number)| *number);
    match number.filter(|_| line["method"].is_null()) {
        Some(number) => {
            line["id"] = json!(number);
            line.to_string()
        }
        None => text.to_owned(),
    }
}

/// Returns the label of what was said; `None` for a part of another word.
fn said(text: &str, deliveries: &mut u64, story: &Story, recording: &Recording) -> Option<Label> {
    let line: Value = serde_json::from_str(text).unwrap_or_default();
    Some(match line["method"].as_str() {
        Some("initialize") => Label::Handshake(1),
        Some("initialized") => return None,
        Some("thread/start" | "thread/resume") => Label::Handshake(2),
        Some("turn/start") => {
            *deliveries += 1;
            crate::kit::label(u128::from(*deliveries), *deliveries)
        }
        Some("turn/interrupt") => Label::Interrupt,
        None if !line["result"].is_null() => {
            let observed = observed(&setup_of(recording), story);
            let asked = observed.iter().rev().find_map(|told| {
                if let Observation::RequestOpened(request) = told { Some(request.id) } else { None }
            });
            Label::Answer(asked?)
        }
        Some(_) | None => Label::Other("something that pinfold would not say".into()),
    })
}

/// Returns a recorded line, short enough to read.
fn in_short(line: &Recorded) -> String {
    let Ok(value) = serde_json::from_str::<Value>(&line.text) else {
        let begin: String = line.text.chars().take(60).collect();
        return format!("{} {begin:?}", line.direction);
    };
    let words = [&value["method"], &value["params"]["item"]["type"], &value["params"]["turn"]["status"]];
    let words: Vec<&str> = words.into_iter().filter_map(Value::as_str).collect();
    let kind = if value["error"].is_null() { "answer" } else { "error" };
    let what = if value["method"].is_null() { kind.to_owned() } else { words.join(" ") };
    format!("{} {what}", line.direction)
}

fn of_codex() -> impl Iterator<Item = Recording> {
    all().filter(|recording| recording.agent == "codex-app-server")
}

#[test]
fn every_line_of_every_recording_means_what_it_meant() {
    for recording in of_codex() {
        let (story, lines) = story(&recording);
        let told = each(&setup_of(&recording), &story);
        let rows = lines.iter().zip(told).map(|(line, observed)| {
            let observed: String = short(&observed).iter().map(|one| format!("    {one}\n")).collect();
            format!("{line}\n{observed}")
        });
        let text: String = rows.collect();
        insta::with_settings!({ snapshot_path => "../snapshots/codex", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(recording.case.clone(), text);
        });
    }
}

#[test]
fn every_recording_conforms() {
    let mut dice = Dice(13);
    let count = of_codex().map(|recording| conforms(&setup_of(&recording), &story(&recording).0, &mut dice));
    assert!(count.count() > 10, "the recordings are there");
}

const THREAD: &str = "t-1";

fn answer(id: u64, result: &Value) -> String {
    json!({ "id": id, "result": result }).to_string()
}

fn told(method: &str, mut params: Value) -> String {
    params["threadId"] = json!(THREAD);
    json!({ "method": method, "params": params }).to_string()
}

fn completed(turn: &str, fields: &Value) -> String {
    let mut turn = json!({ "id": turn, "status": "completed", "error": null });
    for (key, value) in fields.as_object().unwrap() {
        turn[key] = value.clone();
    }
    told("turn/completed", json!({ "turn": turn }))
}

fn message(turn: &str, text: &str) -> String {
    told("item/completed", json!({ "turnId": turn, "item": { "type": "agentMessage", "text": text } }))
}

fn usage(turn: &str, input: u64, output: u64) -> String {
    let total = json!({ "inputTokens": input, "outputTokens": output, "totalTokens": input + output });
    told(
        "thread/tokenUsage/updated",
        json!({ "turnId": turn, "tokenUsage": { "total": total, "last": total } }),
    )
}

fn asks(id: &Value) -> String {
    let params = json!({ "threadId": THREAD, "turnId": "u-1", "command": "rm x", "cwd": "/work" });
    json!({ "method": "item/commandExecution/requestApproval", "id": id, "params": params }).to_string()
}

/// A story after the handshake.
fn greeted() -> Story {
    Story::new()
        .said(Label::Handshake(1))
        .line(answer(1, &json!({ "userAgent": "x" })))
        .said(Label::Handshake(2))
        .line(answer(2, &json!({ "thread": { "id": THREAD }, "model": "m" })))
}

/// The same after the first message was said; and after it was taken, too.
fn prompted() -> Story {
    greeted().prompt(1, 1)
}

fn taken() -> Story {
    prompted().line(answer(3, &json!({ "turn": { "id": "u-1", "status": "inProgress" } })))
}

/// Returns what is observed after the handshake, without activity and beginnings.
fn after(story: &Story) -> Vec<String> {
    conforms(&codex(), story, &mut Dice(3));
    let told = ends(&observed(&codex(), story));
    assert_eq!(told[..3], ["wants handshake 1", "wants handshake 2", "session t-1"]);
    told[3..].to_vec()
}

fn line(fold: &Fold, number: u64, intent: &Intent) -> Value {
    serde_json::from_slice(&fold.say(number, intent).unwrap().bytes).unwrap()
}

#[test]
fn a_message_is_delivered_by_the_answer_and_done_only_by_the_end_of_its_turn() {
    let done = "done 1 \"yes\" for 30+5";
    let rows: [(Story, &[&str]); 7] = [
        (prompted(), &[]),
        (taken(), &["taken 1"]),
        (
            taken()
                .line(message("u-1", "so"))
                .line(message("u-1", "yes"))
                .line(usage("u-1", 30, 5))
                .line(completed("u-1", &json!({}))),
            &["taken 1", done],
        ),
        // Ends that are reported twice, of turns that are not ours, and of other threads.
        (
            taken().line(completed("u-1", &json!({}))).line(completed("u-1", &json!({}))),
            &[
                "taken 1",
                "done 1 for 0+0",
                "note: the agent ended the turn \"3\", which is not under way: ignored",
            ],
        ),
        (
            taken().line(completed("u-9", &json!({}))),
            &["taken 1", "note: the agent ended the turn \"u-9\", which is not under way: ignored"],
        ),
        (taken().line(completed("u-1", &json!({})).replace(THREAD, "t-2")), &["taken 1"]),
        (
            prompted().line(json!({ "id": 3, "error": { "code": -32600, "message": "no" } }).to_string()),
            &["taken 1", "failed (Other: no) 1"],
        ),
    ];
    for (story, expected) in rows {
        assert_eq!(after(&story), expected);
    }
}

#[test]
fn an_end_that_is_not_completed_is_not_done() {
    let error = |info: Value| json!({ "message": "x", "codexErrorInfo": info });
    let rows = [
        (json!({ "status": "interrupted" }), "cancelled unasked 1 for 0+0"),
        (json!({ "status": "failed", "error": error(json!("badRequest")) }), "failed (Other: x) 1 for 0+0"),
        (json!({ "status": "failed" }), "failed (Other: ) 1 for 0+0"),
        (json!({ "status": "completed", "error": error(json!("other")) }), "failed (Other: x) 1 for 0+0"),
        (json!({ "status": "of a later version" }), "failed (Other: ) 1 for 0+0"),
    ];
    for (fields, expected) in rows {
        assert_eq!(after(&taken().line(completed("u-1", &fields))), ["taken 1", expected], "{fields}");
    }
    for going_on in [json!({ "status": "inProgress" }), json!({ "status": null })] {
        assert_eq!(after(&taken().line(completed("u-1", &going_on))), ["taken 1"]);
    }
    let interrupted =
        taken().said(Label::Interrupt).line(completed("u-1", &json!({ "status": "interrupted" })));
    assert_eq!(after(&interrupted), ["taken 1", "interrupted 1 for 0+0"]);
    let retries = told(
        "error",
        json!({ "willRetry": true, "error": { "message": "Reconnecting", "additionalDetails": "429" } }),
    );
    assert_eq!(after(&taken().line(retries)), ["taken 1", "note: the agent says: Reconnecting: 429"]);
}

#[test]
fn a_limit_has_the_time_of_its_reset_and_a_dead_login_is_told() {
    let window = json!({ "usedPercent": 100, "windowDurationMins": 300, "resetsAt": 1_794_811_014 });
    let limits =
        json!({ "method": "account/rateLimits/updated", "params": { "rateLimits": { "primary": window } } });
    let failed = |info: &str| {
        let error = json!({ "message": "x", "codexErrorInfo": info });
        completed("u-1", &json!({ "status": "failed", "error": error }))
    };
    let limited = taken().line(limits.to_string()).line(failed("usageLimitExceeded"));
    let until = "until 1794811014000";
    let expected = [
        "taken 1",
        &format!("limit Near {until}"),
        &format!("limit Reached {until}"),
        "failed (Limit: x) 1 for 0+0",
    ];
    assert_eq!(after(&limited), expected);
    assert_eq!(
        after(&taken().line(failed("unauthorized"))),
        ["taken 1", "login x", "failed (Login: x) 1 for 0+0"]
    );
}

#[test]
fn a_turn_of_another_client_is_its_own_and_ends_nothing_of_ours() {
    let starts = |turn: &str| told("turn/started", json!({ "turn": { "id": turn, "status": "inProgress" } }));
    let guest = greeted().line(starts("g-1"));
    assert_eq!(after(&guest), ["own work true"]);
    let fold = folded(&codex(), &guest).0;
    assert_eq!(fold.say(3, &prompt(1, 1, "x")), Err(CannotSay::TurnUnderWay), "it would join that turn");
    assert_eq!(line(&fold, 3, &Intent::Interrupt)["params"]["turnId"], "g-1");
    let over = guest.line(message("g-1", "hers")).line(completed("g-1", &json!({})));
    assert_eq!(after(&over), ["own work true", "done own \"hers\" for 0+0", "own work false"]);
    folded(&codex(), &over).0.say(3, &prompt(1, 1, "x")).unwrap();
    // A turn that began while our message was on its way; and ours, whose beginning is reported before the
    // answer.
    let crossed = prompted().line(starts("g-1")).line(answer(3, &json!({ "turn": { "id": "u-1" } })));
    assert_eq!(after(&crossed), ["taken 1", "own work true"]);
    let ours = prompted().line(starts("u-1")).line(answer(3, &json!({ "turn": { "id": "u-1" } })));
    assert_eq!(after(&ours.line(completed("u-1", &json!({})))), ["taken 1", "done 1 for 0+0"]);
    // Our message joined the other client's turn: both end.
    let joined = prompted().line(starts("g-1")).line(answer(3, &json!({ "turn": { "id": "g-1" } })));
    assert_eq!(after(&joined.line(completed("g-1", &json!({})))), ["taken 1", "done 1 for 0+0"]);
}

#[test]
fn an_interrupt_waits_until_the_turn_has_a_name() {
    let unnamed = folded(&codex(), &prompted()).0;
    assert_eq!(unnamed.say(4, &Intent::Interrupt), Err(CannotSay::NoTurn));
    let named = folded(&codex(), &taken()).0;
    let said = line(&named, 4, &Intent::Interrupt);
    assert_eq!(
        said,
        json!({ "id": 4, "method": "turn/interrupt", "params": { "threadId": THREAD, "turnId": "u-1" } })
    );
    let idle = folded(&codex(), &taken().line(completed("u-1", &json!({})))).0;
    assert_eq!(idle.say(4, &Intent::Interrupt), Err(CannotSay::NoTurn));
    assert_eq!(named.say(4, &prompt(2, 2, "x")), Err(CannotSay::TurnUnderWay));
}

#[test]
fn the_handshake_opens_a_thread_or_resumes_the_one_that_is_known() {
    let begun = Story::new().said(Label::Handshake(1)).line(answer(1, &json!({})));
    let lines = |setup: &Setup, story: &Story, step| {
        let said = folded(setup, story).0.say(2, &Intent::Handshake { step }).unwrap();
        let text = String::from_utf8(said.bytes).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let thread = [("sandbox".to_owned(), "workspace-write".to_owned())].into();
    let fresh = Setup { thread, ..codex() };
    let params = json!({ "cwd": "/work", "sandbox": "workspace-write" });
    let opens = lines(&fresh, &begun, 2);
    assert_eq!(
        opens,
        [json!({ "method": "initialized" }), json!({ "id": 2, "method": "thread/start", "params": params })]
    );
    let known = Setup { vendor_session: Some(THREAD.into()), ..codex() };
    let params = json!({ "cwd": "/work", "threadId": THREAD, "excludeTurns": true });
    assert_eq!(lines(&known, &begun, 2)[1], json!({ "id": 2, "method": "thread/resume", "params": params }));
    let failed = |message: &str| {
        let error = json!({ "code": -32600, "message": message });
        let story = begun.clone().said(Label::Handshake(2));
        story.line(json!({ "id": 2, "error": error }).to_string())
    };
    let rows = [
        ("thread t-1 already has an active writer", vec!["refused Busy"]),
        (
            "no rollout found for thread id t-1",
            vec![
                "refused Unknown",
                "note: the agent says: no rollout found for thread id t-1",
                "wants handshake 3",
            ],
        ),
        ("no", vec!["note: the agent says: no"]),
    ];
    for (message, expected) in rows {
        let told = ends(&observed(&known, &failed(message)));
        assert_eq!(told[2..], expected, "{message}");
    }
    let anew = failed("no rollout found for thread id t-1");
    assert_eq!(lines(&known, &anew, 3)[0]["method"], "thread/start");
    let told = ends(&observed(
        &known,
        &anew.said(Label::Handshake(3)).line(answer(3, &json!({ "thread": { "id": "t-2" } }))),
    ));
    assert_eq!(told.last().unwrap(), "session t-2 after t-1");
    // Without a thread, messages fail with the reason why there is none.
    let broken = failed("no")
        .prompt(1, 1)
        .line(json!({ "id": 3, "error": { "message": "thread not found" } }).to_string());
    assert_eq!(ends(&observed(&known, &broken)).last().unwrap(), "failed (Other: no) 1");
}

#[test]
fn a_thread_in_which_something_was_said_is_not_replaced_by_another() {
    let said = Setup { vendor_session: Some(THREAD.into()), only_resumes: true, ..codex() };
    let begun = Story::new().said(Label::Handshake(1)).line(answer(1, &json!({})));
    let text = "no rollout found for thread id t-1";
    let error = json!({ "id": 2, "error": { "code": -32600, "message": text } });
    let lost = begun.said(Label::Handshake(2)).line(error.to_string());
    conforms(&said, &lost, &mut Dice(5));
    let told = ends(&observed(&said, &lost));
    assert_eq!(told[2..], [&format!("note: the agent says: {text}"), "wants close", "refused Unknown"]);
    assert_eq!(folded(&said, &lost).0.gave_up(), Some(GaveUp::UnknownSession));
}

#[test]
fn requests_are_answered_by_decisions_and_taken_back_when_they_are_resolved() {
    for id in [json!(0), json!("a")] {
        let asked = taken().line(asks(&id));
        assert_eq!(after(&asked), ["taken 1", "asks r1 Permission run: rm x"]);
        let fold = folded(&codex(), &asked).0;
        let decides = |verdict, always| {
            let reply = RequestReply { request: RequestId(1), verdict, words: None, always };
            line(&fold, 4, &Intent::Answer(reply))
        };
        assert_eq!(decides(Consent::Allow, false), json!({ "id": id, "result": { "decision": "accept" } }));
        assert_eq!(decides(Consent::Allow, true)["result"]["decision"], "acceptForSession");
        assert_eq!(decides(Consent::Deny, false)["result"]["decision"], "decline");
        let resolved = asked.clone().line(told("serverRequest/resolved", json!({ "requestId": id })));
        assert_eq!(after(&resolved).last().unwrap(), "withdrawn r1");
        let ended = asked.line(completed("u-1", &json!({ "status": "interrupted" })));
        assert_eq!(after(&ended)[2..], ["withdrawn r1", "cancelled unasked 1 for 0+0"]);
    }
}

#[test]
fn questions_are_answered_by_words_and_what_nobody_offers_is_refused() {
    let questions = json!([{ "id": "q1", "question": "Which?", "options": [{ "label": "A", "description": "a" }] }, { "id": "q2", "question": "Why?" }]);
    let params = json!({ "threadId": THREAD, "turnId": "u-1", "questions": questions });
    let asks = json!({ "method": "item/tool/requestUserInput", "id": 5, "params": params }).to_string();
    let fold = folded(&codex(), &taken().line(&asks)).0;
    let answers = |verdict, words: Option<&str>| {
        let reply =
            RequestReply { request: RequestId(1), verdict, words: words.map(str::to_owned), always: false };
        line(&fold, 4, &Intent::Answer(reply))["result"]["answers"].clone()
    };
    assert_eq!(
        answers(Consent::Allow, Some("A\nso")),
        json!({ "q1": { "answers": ["A"] }, "q2": { "answers": ["so"] } })
    );
    assert_eq!(answers(Consent::Allow, Some("A"))["q2"]["answers"], json!(["A"]));
    assert_eq!(answers(Consent::Deny, Some("A")), json!({}));
    for method in [
        "item/tool/call",
        "account/chatgptAuthTokens/refresh",
        "mcpServer/elicitation/request",
        "of/a/laterVersion",
    ] {
        let asked = taken().line(json!({ "method": method, "id": "x", "params": {} }).to_string());
        assert_eq!(after(&asked), ["taken 1", "wants handshake 1000"], "{method}");
        let refusal = line(&folded(&codex(), &asked).0, 4, &Intent::Handshake { step: 1000 });
        assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!("x"), &json!(-32601)));
    }
}

#[test]
fn noise_costs_a_note_at_most() {
    let deep = "[".repeat(100_000);
    let rows: [(&str, usize); 7] = [
        ("garbage", 1),
        (r#"{"method":"turn/completed","params":{"threadId":"t-1","turn":{"id":"u-1""#, 1),
        (r#"{"method":"x"} {"method":"y"}"#, 1),
        (&deep, 1),
        (r#"{"method":"turn/completed","params":7}"#, 0),
        (r#"{"params":{"turn":7,"threadId":"t-1"},"method":"turn/completed"}"#, 0),
        (r#"{"id":77,"result":{}}"#, 0),
    ];
    for (text, notes) in rows {
        let told = after(&taken().line(text).line(completed("u-1", &json!({}))));
        assert_eq!(told.len(), 2 + notes, "{told:?}");
        assert_eq!(told.last().unwrap(), "done 1 for 0+0");
    }
    let bytes = taken().out(b"\xff\xfe\n").line(completed("u-1", &json!({})));
    assert_eq!(after(&bytes).last().unwrap(), "done 1 for 0+0");
    let late = taken().line(completed("u-1", &json!({}))).line(asks(&json!(1)));
    assert_eq!(after(&late).last().unwrap(), "asks r1 Permission run: rm x", "one that another turn asks");
    let exit = taken().line(asks(&json!(1))).ends(Exit::Signal(9));
    assert_eq!(after(&exit).last().unwrap(), "withdrawn r1");
}

#[test]
fn after_a_resume_it_is_known_how_the_last_turn_ended() {
    let known = Setup { vendor_session: Some(THREAD.into()), ..codex() };
    let fold = folded(&known, &greeted()).0;
    assert_eq!(fold.wants(), Some(Intent::Handshake { step: 4 }));
    let said = line(&fold, 3, &Intent::Handshake { step: 4 });
    let params = json!({ "threadId": THREAD, "limit": 1, "sortDirection": "desc", "itemsView": "notLoaded" });
    assert_eq!(said, json!({ "id": 3, "method": "thread/turns/list", "params": params }));
    let told = |turns: Value| {
        let story = greeted().said(Label::Handshake(4)).line(answer(3, &json!({ "data": turns })));
        conforms(&known, &story, &mut Dice(3));
        let told = ends(&observed(&known, &story));
        told.into_iter().filter(|line| line.starts_with("note")).collect::<Vec<_>>()
    };
    let note = |text: &str| vec![format!("note: the agent says: the last turn of its thread {text}")];
    assert_eq!(told(json!([{ "id": "u-0", "status": "interrupted" }])), note("was interrupted"));
    let error = json!({ "message": "usage limit" });
    assert_eq!(
        told(json!([{ "id": "u-0", "status": "failed", "error": error }])),
        note("failed: usage limit")
    );
    for nothing in [json!([]), json!([{ "id": "u-0", "status": "completed" }]), json!(7)] {
        assert_eq!(told(nothing), Vec::<String>::new());
    }
    // A new thread has no last turn.
    assert_eq!(folded(&codex(), &greeted()).0.wants(), None);
}
