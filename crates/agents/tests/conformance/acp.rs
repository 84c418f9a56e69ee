//! Agents that speak the agent client protocol (ACP): how their recordings are read, and what counts.

use crate::dice::Dice;
use crate::kit::{Story, conforms, ends, folded, observed, prompt, setup};
use crate::recordings::{Recording, recorded};
use crate::replay::{Told, Tongue, of, told};
use pinfold_agents::{
    CannotSay, Consent, Fold, GaveUp, Intent, Label, Observation, Protocol, RequestId, RequestReply, Setup,
};
use serde_json::{Value, json};

const AGENTS: [&str; 4] = ["acp-claude", "acp-codex", "acp-gemini", "acp-opencode"];

const ACP: Tongue = Tongue {
    same: |line| {
        if line["params"]["clientInfo"].is_object() {
            line["params"]["clientInfo"] = Value::Null;
        }
        if line["params"]["cwd"].is_string() {
            line["params"]["cwd"] = Value::Null;
        }
    },
    prompt: |line| line["params"]["prompt"][0]["text"].as_str(),
    unsaid,
    checked: None,
    in_short,
};

/// What only a recording says: it loads what pinfold resumes, and answers a request besides cancelling.
fn unsaid(fold: &Fold, line: &Value) -> Option<Label> {
    match line["method"].as_str() {
        Some("session/load") => {
            assert_eq!(
                fold.wants(),
                Some(Intent::Handshake { step: 4 }),
                "it is resumed where that is offered"
            );
            Some(Label::Handshake(3))
        }
        Some("session/cancel") => Some(Label::Interrupt),
        Some("session/new") => Some(Label::Handshake(2)),
        Some(other) => Some(Label::Other(format!("what pinfold would not say: {other}"))),
        None => {
            assert_eq!(line["result"]["outcome"]["outcome"], "cancelled", "{line}");
            None
        }
    }
}

fn in_short(line: &Value) -> String {
    let words = [&line["method"], &line["params"]["update"]["sessionUpdate"], &line["result"]["stopReason"]];
    let words = words.into_iter().filter_map(Value::as_str);
    let code = line["error"]["code"].as_i64().map(|code| format!("error {code}"));
    words.map(str::to_owned).chain(code).collect::<Vec<_>>().join(" ")
}

fn acp() -> Setup {
    setup(Protocol::Acp)
}

/// Plays a recording as a run; one that loads a session was started for that session.
fn run(recording: &Recording) -> Told {
    let ins = recording.lines.iter().filter(|line| line.direction == "in");
    let loaded = ins.filter_map(|line| serde_json::from_str::<Value>(&line.text).ok());
    let loaded = loaded.filter(|line| line["method"] == "session/load" || line["method"] == "session/resume");
    let session = loaded.filter_map(|line| line["params"]["sessionId"].as_str().map(str::to_owned)).next();
    told(&ACP, Setup { vendor_session: session, ..acp() }, recording)
}

#[test]
fn every_line_of_every_recording_means_what_it_meant() {
    for recording in of(&AGENTS) {
        let folder = format!("../snapshots/{}", recording.agent);
        insta::with_settings!({ snapshot_path => folder, prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(recording.case.clone(), run(&recording).snapshot());
        });
    }
}

#[test]
fn every_recording_conforms() {
    let mut dice = Dice(13);
    let count = of(&AGENTS).map(|recording| conforms(&acp(), &run(&recording).story, &mut dice)).count();
    assert!(count > 90, "the recordings are there");
}

/// Errors that codex-acp reports as if the turn had gone well.
#[test]
fn an_error_that_looks_done_is_failed() {
    let rows = [
        ("http429", "failed (Limit: exceeded retry limit, last status: 429 Too Many Requests) 1"),
        ("bad-request", "failed (Other: {\"type\": \"error\""),
        ("bad-model", "failed ("),
    ];
    for (case, begin) in rows {
        let told = ends(&observed(&acp(), &run(&recorded("acp-codex", case)).story));
        let ended: Vec<&String> =
            told.iter().filter(|line| line.contains("failed (") || line.starts_with("done")).collect();
        assert!(ended[0].starts_with(begin), "{case}: {ended:?}");
        assert!(ended.last().unwrap().starts_with("done 2"), "{case}: the next one works: {ended:?}");
    }
}

fn answer(id: u64, result: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
}

fn failed(id: u64, error: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
}

fn update(update: &Value) -> String {
    let params = json!({ "sessionId": "s-1", "update": update });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }).to_string()
}

fn chunk(text: &str, message: Option<&str>) -> String {
    let content = json!({ "type": "text", "text": text });
    update(&json!({ "sessionUpdate": "agent_message_chunk", "content": content, "messageId": message }))
}

fn initialized(capabilities: &Value) -> Story {
    let result = json!({ "protocolVersion": 1, "agentCapabilities": capabilities });
    Story::new().said(Label::Handshake(1)).line(answer(1, &result))
}

/// A story after the handshake.
fn ready() -> Story {
    initialized(&json!({})).said(Label::Handshake(2)).line(answer(2, &json!({ "sessionId": "s-1" })))
}

/// The same, after the first message was said.
fn prompted() -> Story {
    ready().prompt(1, 1)
}

/// Returns what is observed after the handshake, without activity and beginnings.
fn after(story: &Story) -> Vec<String> {
    conforms(&acp(), story, &mut Dice(3));
    let told = ends(&observed(&acp(), story));
    assert_eq!(told[..2], ["wants handshake 1", "wants handshake 2"]);
    told[2..].to_vec()
}

#[test]
fn a_known_session_is_resumed_or_loaded_by_what_the_agent_can() {
    let rows = [
        (json!({ "loadSession": true, "sessionCapabilities": { "resume": {} } }), 4, "session/resume"),
        (json!({ "loadSession": true, "sessionCapabilities": { "resume": null } }), 3, "session/load"),
        (json!({ "loadSession": true }), 3, "session/load"),
        (json!({ "loadSession": "yes" }), 2, "session/new"),
    ];
    let known = Setup { vendor_session: Some("s-0".into()), ..acp() };
    for (can, step, method) in rows {
        let story = initialized(&can);
        let fold = folded(&known, &story).0;
        assert_eq!(fold.wants(), Some(Intent::Handshake { step }), "{can}");
        let said: Value =
            serde_json::from_slice(&fold.say(2, &Intent::Handshake { step }).unwrap().bytes).unwrap();
        assert_eq!(
            (&said["method"], &said["id"], &said["params"]["cwd"]),
            (&method.into(), &2.into(), &"/work".into())
        );
        assert_eq!(said["params"]["sessionId"], if step == 2 { Value::Null } else { "s-0".into() });
        let opened = story.said(Label::Handshake(step)).line(answer(2, &json!({ "sessionId": "s-9" })));
        let fold = folded(&known, &opened).0;
        let said: Value = serde_json::from_slice(&fold.say(3, &prompt(1, 1, "x")).unwrap().bytes).unwrap();
        assert_eq!(said["params"]["sessionId"], if step == 2 { "s-9" } else { "s-0" });
        // The trace is that of the message, the span that of its delivery.
        let trace = "00-00000000000000000000000000000001-0000000000000001-01";
        assert_eq!(said["params"]["_meta"]["traceparent"], trace);
    }
}

#[test]
fn a_session_that_is_not_opened_ends_the_agent_and_says_why() {
    let known = Setup { vendor_session: Some("s-0".into()), ..acp() };
    let busy = json!({ "code": -32600, "message": "in use", "data": { "reason": "thread_active_writer" } });
    let rows = [
        (json!({ "code": -32002, "message": "Resource not found" }), "refused Unknown"),
        (json!({ "code": -32603, "message": "Internal error: OpenCode service failure" }), "refused Unknown"),
        (busy, "refused Busy"),
        (json!({ "code": -32000, "message": "Authentication required" }), "login Authentication required"),
    ];
    for (error, expected) in rows {
        let story =
            initialized(&json!({ "loadSession": true })).said(Label::Handshake(3)).line(failed(2, &error));
        let (fold, told) = folded(&known, &story);
        assert_eq!(ends(&told).last().unwrap(), expected);
        assert!(fold.wants() == Some(Intent::Close) && !fold.ready(), "{error}");
    }
    let newer = Story::new().said(Label::Handshake(1)).line(answer(1, &json!({ "protocolVersion": 2 })));
    assert_eq!(folded(&acp(), &newer).0.wants(), Some(Intent::Close));
}

#[test]
fn history_that_is_replayed_is_not_an_answer() {
    let known = Setup { vendor_session: Some("s-1".into()), ..acp() };
    let story = initialized(&json!({ "loadSession": true }))
        .said(Label::Handshake(3))
        .line(chunk("old", Some("m0")))
        .line(answer(2, &json!({})))
        .line(chunk("late", Some("m1")))
        .prompt(1, 1)
        .line(chunk("new", Some("m2")))
        .line(answer(3, &json!({ "stopReason": "end_turn" })));
    conforms(&known, &story, &mut Dice(5));
    let told = ends(&observed(&known, &story));
    assert_eq!(told.last().unwrap(), "done 1 \"new\"");
}

#[test]
fn the_id_of_a_session_is_told_once_the_agent_has_worked_in_it() {
    assert_eq!(after(&prompted()), Vec::<String>::new());
    assert_eq!(after(&prompted().line(chunk("x", None))), ["session s-1", "taken 1"]);
    let failed = failed(3, &json!({ "code": -32603, "message": "no" }));
    assert_eq!(after(&prompted().line(failed)), ["taken 1", "failed (Other: no) 1"]);
}

#[test]
fn done_is_only_an_end_turn_with_proof_of_work() {
    let end = |fields: &Value| answer(3, fields);
    let usage = json!({ "inputTokens": 11, "outputTokens": 7, "totalTokens": 18 });
    let tool = update(&json!({ "sessionUpdate": "tool_call", "toolCallId": "t" }));
    let broken = update(
        &json!({ "sessionUpdate": "session_info_update", "_meta": { "codex": { "threadStatus": { "type": "systemError" } } } }),
    );
    let done = json!({ "stopReason": "end_turn" });
    let null = json!({ "stopReason": "end_turn", "usage": null });
    let nothing = "failed (Other: it ended the turn, and nothing shows that it worked on it) 1";
    let rows: [(Vec<String>, &str); 14] = [
        (vec![end(&json!({ "stopReason": "end_turn", "usage": usage }))], "done 1 for 11+7"),
        (vec![chunk("a", None), end(&done)], "done 1 \"a\""),
        (vec![chunk("a", None), end(&null)], "failed (Other: a) 1 \"a\""),
        (vec![chunk("a", Some("m")), end(&null)], "done 1 \"a\""),
        (vec![tool.clone(), end(&null)], "done 1"),
        (vec![chunk("a", Some("m")), broken, end(&null)], nothing),
        (vec![end(&done)], nothing),
        (
            vec![end(&json!({ "stopReason": "max_turn_requests", "usage": usage }))],
            "failed (Other: it asked its model as often as it may in a turn) 1 for 11+7",
        ),
        (vec![end(&json!({ "stopReason": "refusal" }))], "failed (Other: it refuses to go on) 1"),
        (
            vec![end(&json!({ "stopReason": "max_tokens" }))],
            "failed (Other: its answer has as many tokens as it may have) 1",
        ),
        (vec![end(&json!({ "stopReason": "later" }))], "failed (Other: it stopped: later) 1"),
        (vec![end(&json!(null))], "failed (Other: it ended the turn, and did not say how) 1"),
        (vec![end(&json!({ "stopReason": "cancelled" }))], "cancelled unasked 1"),
        // The answer is the last message; a tool call ends one that has no id.
        (
            vec![chunk("a", None), chunk("b", None), tool, chunk("c", None), chunk("d", None), end(&done)],
            "done 1 \"cd\"",
        ),
    ];
    for (lines, expected) in rows {
        let told = after(&lines.iter().fold(prompted(), |story, line| story.line(line)));
        let expected_whole = if expected == nothing && lines.len() > 1 {
            format!("{expected} \"a\"")
        } else {
            expected.to_owned()
        };
        assert_eq!(told.last().unwrap(), &expected_whole, "{lines:?}");
    }
}

#[test]
fn an_end_counts_once_and_by_its_own_id_whatever_kind_that_is() {
    let end = |id: Value| json!({ "id": id, "result": { "stopReason": "cancelled" } }).to_string();
    let late = |id: &str| format!("note: the agent ended the turn {id:?}, which is not under way: ignored");
    assert_eq!(after(&prompted().line(end(7.into()))), [late("7")]);
    let init = json!({ "id": "1", "result": { "protocolVersion": 1 } }).to_string();
    let opened = json!({ "id": "2", "result": { "sessionId": "s-1" } }).to_string();
    let hands = Story::new().said(Label::Handshake(1)).line(init).said(Label::Handshake(2)).line(opened);
    assert_eq!(after(&hands.prompt(1, 1).line(end("3".into()))), ["taken 1", "cancelled unasked 1"]);
    let twice = prompted().line(end(3.into())).line(end(3.into()));
    assert_eq!(after(&twice), ["taken 1", "cancelled unasked 1", &late("3")]);
    let early = ready().line(end(3.into()));
    assert_eq!(after(&early), [late("3")]);
}

#[test]
fn a_response_in_another_spelling_of_the_id_ends_nothing_and_the_right_one_does() {
    let result = json!({ "stopReason": "end_turn" });
    let proper = |id: u64| answer(id, &json!({ "stopReason": "end_turn", "usage": { "outputTokens": 1 } }));
    let rows = [
        json!({ "id": "3", "result": result }),
        json!({ "id": "03", "result": result }),
        json!({ "id": 4, "result": result }),
        json!({ "id": null, "result": result }),
        json!({ "result": result }),
        json!({ "id": 3.0, "result": result }),
        json!({ "id": [3], "result": result }),
        json!({ "id": "3", "error": { "code": -32603, "message": "no" } }),
        json!({ "id": 4, "error": { "code": -32603, "message": "no" } }),
        json!({ "id": null, "error": { "code": -32603, "message": "no" } }),
    ];
    for other in rows {
        let told = after(&prompted().line(other.to_string()).line(proper(3)));
        let ends: Vec<&String> = told.iter().filter(|line| !line.starts_with("note: ")).collect();
        assert_eq!(ends.last().map(|line| line.as_str()), Some("done 1 for 0+0 in all"), "{other}: {told:?}");
        assert_eq!(told.iter().filter(|line| line.starts_with("note: ")).count(), 1, "{other}: {told:?}");
    }
}

#[test]
fn an_interrupt_that_crossed_the_end_is_given_back_at_no_cost() {
    let done = answer(3, &json!({ "stopReason": "end_turn", "usage": { "outputTokens": 1 } }));
    let crossed = prompted()
        .said(Label::Interrupt)
        .line(done)
        .prompt(2, 2)
        .line(answer(5, &json!({ "stopReason": "cancelled" })));
    assert_eq!(after(&crossed).last().unwrap(), "cancelled by a crossed interrupt 2");
    let fold = folded(&acp(), &ready()).0;
    assert_eq!(fold.say(3, &Intent::Interrupt), Err(CannotSay::NoTurn));
    let fold = folded(&acp(), &prompted()).0;
    assert_eq!(fold.say(4, &prompt(2, 2, "x")), Err(CannotSay::TurnUnderWay));
}

fn permission(id: &Value, options: &Value) -> String {
    let tool = json!({ "toolCallId": "t", "title": "touch x", "kind": "execute", "rawInput": { "command": "touch x" } });
    let params = json!({ "sessionId": "s-1", "toolCall": tool, "options": options });
    json!({ "jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params })
        .to_string()
}

fn said(fold: &Fold, intent: &Intent) -> Vec<Value> {
    let bytes = fold.say(fold.last_said() + 1, intent).unwrap().bytes;
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

fn reply(verdict: Consent, always: bool) -> Intent {
    Intent::Answer(RequestReply { request: RequestId(1), verdict, words: None, always })
}

#[test]
fn a_request_is_answered_by_one_of_its_options_and_under_its_own_id() {
    let option = |kind: &str| json!({ "optionId": format!("o-{kind}"), "kind": kind });
    let all =
        json!([option("allow_once"), option("allow_always"), option("reject_once"), option("reject_always")]);
    let once = json!([option("allow_once"), option("reject_once")]);
    let rows = [
        (&all, Consent::Allow, false, "o-allow_once"),
        (&all, Consent::Allow, true, "o-allow_always"),
        (&all, Consent::Deny, false, "o-reject_once"),
        (&all, Consent::Deny, true, "o-reject_always"),
        (&once, Consent::Allow, true, "o-allow_once"),
    ];
    for (options, verdict, always, expected) in rows {
        for id in [json!(0), json!("a-1")] {
            let story = prompted().line(permission(&id, options));
            assert_eq!(after(&story).last().unwrap(), "asks r1 Permission execute: touch x");
            let line = &said(&folded(&acp(), &story).0, &reply(verdict, always))[0];
            assert_eq!((&line["id"], &line["result"]["outcome"]["optionId"]), (&id, &expected.into()));
        }
    }
    let fold = folded(&acp(), &prompted().line(permission(&json!(0), &json!([])))).0;
    assert_eq!(said(&fold, &reply(Consent::Deny, false))[0]["result"]["outcome"]["outcome"], "cancelled");
    assert_eq!(fold.say(4, &reply(Consent::Allow, false)), Err(CannotSay::NotOffered));
}

#[test]
fn an_interrupt_answers_what_was_asked_and_takes_it_back() {
    let story = prompted().line(permission(&json!(0), &json!([])));
    let lines = said(&folded(&acp(), &story).0, &Intent::Interrupt);
    assert_eq!((lines.len(), &lines[0]["method"]), (2, &"session/cancel".into()));
    assert_eq!(
        (&lines[1]["id"], &lines[1]["result"]["outcome"]["outcome"]),
        (&0.into(), &"cancelled".into())
    );
    let told = after(&story.said(Label::Interrupt).line(answer(3, &json!({ "stopReason": "cancelled" }))));
    assert_eq!(told[1..], ["withdrawn r1", "taken 1", "interrupted 1"]);
}

#[test]
fn a_request_is_taken_back_by_the_agent_or_with_its_turn() {
    let asked = prompted().line(permission(&json!(0), &json!([])));
    let back = json!({ "method": "$/cancel_request", "params": { "requestId": 0 } }).to_string();
    assert_eq!(after(&asked.clone().line(back)).last().unwrap(), "withdrawn r1");
    let ended = after(&asked.line(failed(3, &json!({ "code": 1, "message": "no" }))));
    assert_eq!(ended[1..], ["taken 1", "withdrawn r1", "failed (Other: no) 1"]);
}

#[test]
fn what_nobody_offers_is_refused_even_in_the_handshake() {
    let reads = |id: &str| json!({ "id": id, "method": "fs/read_text_file", "params": {} }).to_string();
    let early = Story::new().said(Label::Handshake(1)).line(reads("q1"));
    let fold = folded(&acp(), &early).0;
    assert_eq!(fold.wants(), Some(Intent::Handshake { step: 1000 }));
    let line = &said(&fold, &Intent::Handshake { step: 1000 })[0];
    assert_eq!((&line["id"], &line["error"]["code"]), (&"q1".into(), &(-32601).into()));
    // The handshake comes first.
    let both = early.line(answer(1, &json!({ "protocolVersion": 1 })));
    assert_eq!(folded(&acp(), &both).0.wants(), Some(Intent::Handshake { step: 2 }));
    let story = prompted().line(reads("q1")).line(reads("q2"));
    assert_eq!(after(&story), ["wants handshake 1000"]);
    assert_eq!(after(&story.said(Label::Handshake(1000))).last().unwrap(), "wants handshake 1001");
}

#[test]
fn limits_and_logins_are_told_and_a_limit_only_once() {
    let error = |fields: Value| failed(3, &fields);
    let rows = [
        (json!({ "code": -32603, "message": "x", "data": { "errorKind": "rate_limit" } }), "limit Reached"),
        (json!({ "code": 429, "message": "x" }), "limit Reached"),
        (json!({ "code": -32603, "message": "Internal error: Rate limit exceeded" }), "limit Reached"),
        (json!({ "code": -32603, "data": { "codexErrorInfo": "usageLimitExceeded" } }), "limit Reached"),
        (json!({ "code": -32000, "message": "Authentication required" }), "login Authentication required"),
        (json!({ "code": 401, "message": "x" }), "login x"),
    ];
    for (fields, expected) in rows {
        assert_eq!(after(&prompted().line(error(fields)))[0], expected);
    }
    let limited = prompted()
        .line(failed(3, &json!({ "code": 429 })))
        .prompt(2, 2)
        .line(failed(4, &json!({ "code": 429 })));
    let limits = after(&limited).iter().filter(|line| line.starts_with("limit")).count();
    assert_eq!(limits, 1);
}

#[test]
fn what_a_turn_cost_is_told_with_the_model_and_its_context() {
    let usage = |agent, case| {
        let told = observed(&acp(), &run(&recorded(agent, case)).story);
        let usages = told
            .into_iter()
            .filter_map(|told| if let Observation::TurnEnded { usage, .. } = told { usage } else { None });
        usages.collect::<Vec<_>>()
    };
    for agent in AGENTS {
        let spent: Vec<_> = usage(agent, "two-turns")
            .iter()
            .map(|usage| (usage.turn.input_tokens, usage.turn.output_tokens))
            .collect();
        assert_eq!(spent, [(Some(1000), Some(50)), (Some(11), Some(7))], "{agent}");
    }
    let claude = usage("acp-claude", "two-turns").remove(1);
    assert_eq!((claude.context_used, claude.context_size), (Some(18), Some(1_000_000)));
    assert!(claude.model.as_deref() == Some("claude-opus-5-5") && claude.session.cost_usd > Some(0.0));
}

#[test]
fn what_is_not_of_the_protocol_is_noted_and_changes_nothing() {
    let deep = "[".repeat(100_000);
    let end = answer(3, &json!({ "stopReason": "end_turn", "usage": { "outputTokens": 1 } }));
    let two = format!("{end}{end}");
    for line in
        ["garbage", "{", "[]", "7", "\u{0}", &deep, r#"{"id":3}"#, r#"{"method":7}"#, &two, &end[..20]]
    {
        let told = after(&prompted().line(line).line(&end));
        assert!(told[0].starts_with("note: a line is not of the agent's protocol"), "{told:?}");
        assert!(told.last().unwrap().starts_with("done 1"), "{line:.40}");
    }
    let odd = [
        r#"{"method":"of/a/later/version","params":7}"#,
        r#"{"method":"session/update"}"#,
        r#"{"method":"session/update","params":{"sessionId":7,"update":{"sessionUpdate":["x"]}}}"#,
        r#"{"method":"session/update","params":{"sessionId":"another","update":{"sessionUpdate":"agent_message_chunk","content":{"text":"x"}}}}"#,
        r#"{"method":"session/update","params":{"update":{"content":{"text":"x"},"sessionUpdate":"of a later version"}}}"#,
        r#"{"method":"session/update","params":{"update":{"sessionUpdate":"usage_update","used":"many","cost":[]}}}"#,
        r#"{"method":"$/cancel_request","params":{"requestId":{}}}"#,
        " ",
    ];
    for line in odd {
        assert_eq!(after(&prompted().line(line)), Vec::<String>::new(), "{line}");
    }
    let bytes = prompted().out(b"{\"method\":\"\xff\xfe\"}\n").line(&end);
    assert!(after(&bytes).last().unwrap().starts_with("done 1"));
}

#[test]
fn requests_without_end_and_without_bound_do_not_fill_the_cursor() {
    let option = |kind: &str| json!({ "optionId": "\u{1}".repeat(255), "kind": kind });
    let options =
        json!([option("allow_once"), option("allow_always"), option("reject_once"), option("reject_always")]);
    let story = (0..100).fold(prompted(), |story, number| {
        story.line(permission(&json!(format!("{number}-{}", "\u{1}".repeat(150))), &options))
    });
    let (fold, told) = folded(&acp(), &story);
    assert_eq!(told.iter().filter(|told| matches!(told, Observation::RequestOpened(_))).count(), 64);
    assert!(!Fold::resume(fold.run(), &fold.cursor()).0.is_unknown());
}

#[test]
fn a_line_that_is_too_long_fails_the_turn_and_interrupts_it() {
    let piece = "x".repeat(1 << 20);
    let long = (0..33).fold(prompted(), |story, _| story.out(&piece)).line("");
    let told = ends(&observed(&acp(), &long));
    assert_eq!(told.last().unwrap(), "wants interrupt");
    assert!(told[told.len() - 2].starts_with("failed (LineTooLong"), "{told:?}");
}

#[test]
fn why_an_agent_was_told_to_leave_is_known_when_it_ends_with_0() {
    let known = Setup { vendor_session: Some("s-1".into()), ..acp() };
    let can = json!({ "loadSession": true });
    let refused = |setup: &Setup, step, error: Value| {
        let story = initialized(&can).said(Label::Handshake(step)).line(failed(2, &error));
        conforms(setup, &story, &mut Dice(3));
        let fold = folded(setup, &story).0;
        // A fold resumed from the cursor knows it too.
        let again = Fold::resume(fold.run(), &fold.cursor()).0;
        assert_eq!(again.gave_up(), fold.gave_up());
        fold.gave_up()
    };
    let unknown = json!({ "code": -32603, "message": "Internal error: OpenCode service failure" });
    assert_eq!(refused(&known, 3, unknown.clone()), Some(GaveUp::UnknownSession));
    assert_eq!(
        refused(&known, 3, json!({ "code": -32002, "message": "not found" })),
        Some(GaveUp::UnknownSession)
    );
    // The vendor's servers say nothing of the session, and a new session cannot be unknown.
    assert_eq!(refused(&known, 3, json!({ "code": 503, "message": "later" })), Some(GaveUp::Refused));
    assert_eq!(refused(&acp(), 2, unknown), Some(GaveUp::Refused));
    assert_eq!(refused(&acp(), 2, json!({ "code": -32000, "message": "log in" })), Some(GaveUp::Login));
    let version = Story::new().said(Label::Handshake(1)).line(answer(1, &json!({ "protocolVersion": 2 })));
    assert_eq!(folded(&acp(), &version).0.gave_up(), Some(GaveUp::Refused));
    assert_eq!(folded(&acp(), &prompted()).0.gave_up(), None);
}

#[test]
fn an_answer_that_begins_again_is_counted_and_one_after_a_tool_is_not() {
    let tool = update(&json!({ "sessionUpdate": "tool_call", "toolCallId": "t-1", "title": "ls" }));
    let begun_again = |story: &Story| folded(&acp(), story).0.begun_again();
    let once = prompted().line(chunk("reply", Some("m-1"))).line(chunk(" to", Some("m-1")));
    assert_eq!(begun_again(&once), 0);
    let worked = once.clone().line(tool).line(chunk("reply", Some("m-2")));
    assert_eq!(begun_again(&worked), 0);
    let again = once.line(chunk("reply", Some("m-2"))).line(chunk("reply", Some("m-3")));
    assert_eq!(begun_again(&again), 2);
    let next = again.line(answer(3, &json!({ "stopReason": "end_turn" }))).prompt(2, 1);
    assert_eq!(begun_again(&next), 0, "it is of the turn");
}
