//! Cursors of every version can be read forever, and one that cannot be read concludes nothing.

use crate::kit::{RUN, Story, folded, setup, short};
use pinfold_agents::{
    CannotSay, EndedBy, EntryKind, Fold, FoldEntry, Intent, Label, PresetChanges, Protocol, Setup,
};
use pinfold_core::{Exit, MessageId, RunNumber, Wall};
use serde_json::Value;

/// Written by version 1 with everything at once: an interrupted turn, a request, an unfinished line.
const VERSION_1: &str = include_str!("../fixtures/cursor-1.json");

/// Written by version 1 for an agent that runs once, with rules, errors and usage.
const EXEC_1: &str = include_str!("../fixtures/cursor-1-exec.json");

/// The same, since the run's message and the last line are stored.
const EXEC_2: &str = include_str!("../fixtures/cursor-1-exec-2.json");

/// Written by version 1 for Claude Code, with everything at once.
const STREAM_JSON_1: &str = include_str!("../fixtures/cursor-1-stream-json.json");

/// Written by version 1 for an agent of the agent client protocol, with everything at once.
const ACP_1: &str = include_str!("../fixtures/cursor-1-acp.json");

/// The same, since it is stored whether the agent names requests by their numbers.
const ACP_2: &str = include_str!("../fixtures/cursor-1-acp-2.json");

/// The same, since it is counted how often the agent began its answer again.
const ACP_3: &str = include_str!("../fixtures/cursor-1-acp-3.json");

/// The same for pi.
const PI_1: &str = include_str!("../fixtures/cursor-1-pi.json");

/// The same, since cached tokens are counted and an overloaded vendor is told apart.
const PI_2: &str = include_str!("../fixtures/cursor-1-pi-2.json");

/// Written by version 1 for Codex, with everything at once.
const CODEX_1: &str = include_str!("../fixtures/cursor-1-codex.json");

/// The story whose cursor is the fixture.
fn story() -> Story {
    Story::new()
        .said(Label::Handshake(1))
        .line(r#"{"type":"hello","id":1}"#)
        .line(r#"{"type":"session","id":"s-1"}"#)
        .prompt(0x1234_5678_9ABC_DEF0_1234_5678_9ABC_DEF0, 7)
        .line(r#"{"type":"taken","id":2}"#)
        .line(r#"{"type":"text","text":"so far"}"#)
        .line(r#"{"type":"asks","request":"a1","kind":"permission","title":"rm"}"#)
        .line("garbage")
        .said(Label::Interrupt)
        .err("half a li")
        .out(r#"{"type":"ended","#)
}

fn out(fold: &Fold, text: &str) -> Vec<String> {
    let mut fold = Fold::resume(fold.run(), &fold.cursor()).0;
    let story = story().out(text);
    let mut told = Vec::new();
    for entry in story.taped() {
        told.extend(fold.entry(&entry));
    }
    short(&told)
}

#[test]
fn a_cursor_of_version_1_is_read_for_ever() {
    let (fold, told) = Fold::resume(RUN, VERSION_1.trim_end());
    assert_eq!(told, []);
    assert_eq!((fold.vendor_session(), fold.last_said(), fold.ready()), (Some("s-1"), 3, true));
    let told = out(&fold, "\"id\":2,\"how\":\"cancelled\"}\n");
    assert_eq!(told, ["withdrawn r1", "interrupted 7 \"so far\"", "activity Idle"]);
}

/// The fold whose cursor is the `exec` fixture.
fn exec() -> Fold {
    let preset = PresetChanges::from_toml(include_str!("../presets/codex-exec.toml")).unwrap().preset();
    let story = Story::new()
        .prompt(5, 1)
        .written()
        .line(r#"{"type":"thread.started","thread_id":"t-1"}"#)
        .line(r#"{"type":"item.completed","item":{"type":"agent_message","text":"yes"}}"#)
        .err("unexpected status 401 Unauthorized\n")
        .line(r#"{"type":"turn.completed","usage":{"input_tokens":1000,"output_tokens":50}}"#);
    let setup = Setup { prompted: Some(MessageId(5)), ..Setup::new(&preset, "/work", None) };
    folded(&setup, &story).0
}

#[test]
fn a_cursor_of_version_1_of_an_agent_that_runs_once_is_read_for_ever() {
    for (cursor, prompted) in [(EXEC_1, None), (EXEC_2, Some(MessageId(5)))] {
        let (mut fold, told) = Fold::resume(RUN, cursor.trim_end());
        assert_eq!((told, fold.prompted()), (Vec::new(), prompted));
        let told = short(&fold.exited(Exit::Code(0), EndedBy::Itself));
        assert_eq!(told, ["done 1 \"yes\" for 1000+50 in all", "activity Idle"]);
    }
}

/// The story whose cursor is Claude Code's fixture.
fn claude() -> Story {
    let id = "5775264a-9a7e-8b09-8359-f24f3b94d42c";
    let limit =
        r#"{"status":"allowed_warning","resetsAt":1794809118,"rateLimitType":"five_hour","utilization":0.9}"#;
    let asks = r#"{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"permission_suggestions":[{"type":"addRules","rules":[]}]}"#;
    Story::new()
        .said(Label::Handshake(1))
        .line(r#"{"type":"control_response","response":{"subtype":"success","request_id":"pinfold-1"}}"#)
        .prompt(1, 1)
        .line(format!(r#"{{"type":"command_lifecycle","command_uuid":"{id}","state":"queued"}}"#))
        .line(format!(r#"{{"type":"system","subtype":"init","session_id":"s-1","model":"m","user_message_uuids":["{id}"]}}"#))
        .line(r#"{"type":"assistant","message":{"content":[{"type":"text","text":"so far"}],"usage":{"input_tokens":11,"output_tokens":7}}}"#)
        .line(r#"{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"b1"}]}"#)
        .line(r#"{"type":"user","tool_use_result":{"id":"c1","recurring":true,"nextFireAt":1794896305405.4473}}"#)
        .line(format!(r#"{{"type":"rate_limit_event","rate_limit_info":{limit}}}"#))
        .line(format!(r#"{{"type":"control_request","request_id":"q1","request":{asks}}}"#))
        .line(r#"{"type":"control_request","request_id":"q2","request":{"subtype":"elicitation"}}"#)
        .line(r#"{"type":"assistant","error":"server_error","message":{"content":[{"type":"text","text":"503"}]}}"#)
        .line(format!(r#"{{"type":"command_lifecycle","command_uuid":"{id}","state":"completed"}}"#))
}

#[test]
fn a_cursor_of_version_1_of_claude_code_is_read_for_ever() {
    let (mut fold, told) = Fold::resume(RUN, STREAM_JSON_1.trim_end());
    assert_eq!((told.len(), fold.own_work(), fold.wants()), (0, true, Some(Intent::Handshake { step: 2 })));
    let result = r#"{"type":"result","is_error":true,"num_turns":1,"user_message_uuids":["5775264a-9a7e-8b09-8359-f24f3b94d42c"]}"#;
    let after = claude().line(result);
    let told: Vec<_> = after.taped().flat_map(|entry| fold.entry(&entry)).collect();
    let expected = ["withdrawn r1", "failed (Server: 503) 1 \"so far\" for 0+0 in all", "activity Working"];
    assert_eq!(short(&told), expected);
}

/// The story whose cursor is the fixture of the agent client protocol.
fn acp() -> Story {
    let update = |update: &str| {
        format!(r#"{{"method":"session/update","params":{{"sessionId":"s-1","update":{update}}}}}"#)
    };
    let option = |kind: &str| format!(r#"{{"optionId":"{kind}!","kind":"{kind}"}}"#);
    let options = ["allow_once", "allow_always", "reject_once", "reject_always"].map(option).join(",");
    let asks = format!(r#"{{"toolCall":{{"title":"ls"}},"options":[{options}]}}"#);
    let limited = r#"{"id":3,"error":{"code":429,"message":"no"}}"#;
    Story::new()
        .said(Label::Handshake(1))
        .line(r#"{"id":1,"result":{"protocolVersion":1}}"#)
        .said(Label::Handshake(2))
        .line(r#"{"id":2,"result":{"sessionId":"s-1"}}"#)
        .prompt(1, 1)
        .line(limited)
        .prompt(2, 2)
        .line(update(r#"{"sessionUpdate":"usage_update","used":18,"size":100,"cost":{"amount":0.5,"currency":"USD"},"_meta":{"_claude/model":"m"}}"#))
        .line(update(r#"{"sessionUpdate":"agent_message_chunk","content":{"text":"aside"}}"#))
        .line(update(r#"{"sessionUpdate":"agent_message_chunk","content":{"text":"so far"},"messageId":"m-1"}"#))
        .line(format!(r#"{{"id":"q1","method":"session/request_permission","params":{asks}}}"#))
        .line(r#"{"id":0,"method":"fs/read_text_file","params":{}}"#)
}

#[test]
fn a_cursor_of_version_1_of_the_agent_client_protocol_is_read_for_ever() {
    for cursor in [ACP_1, ACP_2, ACP_3] {
        let (mut fold, told) = Fold::resume(RUN, cursor.trim_end());
        assert_eq!((told.len(), fold.wants()), (0, Some(Intent::Handshake { step: 1000 })));
        let after = acp().line(
            r#"{"id":4,"result":{"stopReason":"end_turn","usage":{"inputTokens":11,"outputTokens":7}}}"#,
        );
        let told: Vec<_> = after.taped().flat_map(|entry| fold.entry(&entry)).collect();
        assert_eq!(short(&told), ["withdrawn r1", "done 2 \"so far\" for 11+7", "activity Idle"]);
    }
}

/// The story whose cursor is pi's fixture.
fn pi() -> Story {
    let message = |stop: &str, error: &str| {
        let usage = r#"{"input":11,"output":7,"cost":{"total":0.5}}"#;
        format!(
            r#"{{"type":"message_end","message":{{"role":"assistant","content":[{{"type":"text","text":"so far"}}],"model":"m","stopReason":"{stop}","errorMessage":"{error}","usage":{usage}}}}}"#
        )
    };
    Story::new()
        .said(Label::Handshake(1))
        .line(r#"{"id":"1","type":"response","success":true,"data":{"sessionId":"s-1"}}"#)
        .prompt(1, 1)
        .line(r#"{"id":"2","type":"response","success":true}"#)
        .line(r#"{"type":"agent_start"}"#)
        .line(message("error", "503 no"))
        .line(r#"{"type":"agent_end"}"#)
        .said(Label::Handshake(2))
        .line(r#"{"type":"extension_ui_request","id":"q1","method":"confirm"}"#)
}

#[test]
fn a_cursor_of_version_1_of_pi_is_read_for_ever() {
    for (cursor, kind) in [(PI_1, "Server"), (PI_2, "Overloaded")] {
        let (mut fold, told) = Fold::resume(RUN, cursor.trim_end());
        assert_eq!((told.len(), fold.wants()), (0, Some(Intent::Handshake { step: 1000 })));
        let after = pi().line(r#"{"id":"3","type":"response","success":true,"data":{}}"#);
        let told: Vec<_> = after.taped().flat_map(|entry| fold.entry(&entry)).collect();
        let failed = format!("failed ({kind}: 503 no) 1 \"so far\" for 11+7");
        assert_eq!(short(&told), [failed.as_str(), "activity Idle"]);
    }
}

#[test]
fn the_fixtures_are_what_is_written_today() {
    let scripted = folded(&setup(Protocol::Scripted), &story()).0;
    let stream_json = folded(&setup(Protocol::StreamJson), &claude()).0;
    let acp = folded(&setup(Protocol::Acp), &acp()).0;
    let pi = folded(&setup(Protocol::Pi), &pi()).0;
    let folds =
        [(scripted, VERSION_1), (exec(), EXEC_2), (stream_json, STREAM_JSON_1), (acp, ACP_3), (pi, PI_2)];
    for (fold, then) in folds {
        let (now, then): (Value, Value) =
            (serde_json::from_str(&fold.cursor()).unwrap(), serde_json::from_str(then).unwrap());
        assert_eq!(now, then, "a field was added: keep this fixture, and add one that has it");
    }
}

#[test]
fn what_cannot_be_read_concludes_nothing_and_keeps_its_place() {
    let (fold, _) = folded(&setup(Protocol::Scripted), &story());
    let good = fold.cursor();
    let rows = [
        (good.replace("\"version\":1", "\"version\":2"), fold.to()),
        (good.replace("\"scripted\":{\"greeted\"", "\"telepathy\":{\"greeted\""), fold.to()),
        (good.replace("\"ledger\":{", "\"ledger\":7,\"x\":{"), fold.to()),
        (good[..good.len() / 2].to_owned(), 0),
        ("{}".to_owned(), 0),
        (String::new(), 0),
        (good.replace("\"run\":3", "\"run\":2"), 0),
        (good.replace("\"run\":3", "\"run\":4"), 0),
    ];
    for (cursor, to) in rows {
        assert_ne!(cursor, good);
        let (mut fold, told) = Fold::resume(RUN, &cursor);
        let told = short(&told);
        assert!(
            told[0].starts_with("note: nothing is concluded") && told[1] == "activity Unknown",
            "{told:?}"
        );
        assert!(fold.is_unknown());
        assert_eq!(fold.to(), to, "{cursor:.60}");
        let after = story().out("\n").line(r#"{"type":"ended","id":2}"#).line("PINFOLD_DONE");
        for entry in after.taped() {
            assert_eq!(fold.entry(&entry), []);
        }
        assert_eq!(fold.written(9), []);
        assert_eq!(fold.say(4, &Intent::Interrupt), Err(CannotSay::Unknown));
        assert!(fold.say(4, &Intent::Close).unwrap().close);
        let (again, told) = Fold::resume(RUN, &fold.cursor());
        assert_eq!((again.to(), again.is_unknown(), told.len()), (fold.to(), true, 0));
    }
}

/// The story whose cursor is Codex's fixture.
fn codex() -> Story {
    Story::new()
        .said(Label::Handshake(1))
        .line(r#"{"id":1,"result":{}}"#)
        .said(Label::Handshake(2))
        .line(r#"{"id":2,"result":{"thread":{"id":"t-1"},"model":"m"}}"#)
        .line(r#"{"method":"turn/started","params":{"threadId":"t-1","turn":{"id":"g-1"}}}"#)
        .prompt(5, 1)
        .line(r#"{"id":3,"result":{"turn":{"id":"u-1"}}}"#)
        .line(r#"{"method":"item/completed","params":{"threadId":"t-1","turnId":"u-1","item":{"type":"agentMessage","text":"so far"}}}"#)
        .line(r#"{"method":"thread/tokenUsage/updated","params":{"threadId":"t-1","turnId":"u-1","tokenUsage":{"total":{"inputTokens":30,"outputTokens":5},"last":{"totalTokens":35},"modelContextWindow":1000}}}"#)
        .line(r#"{"method":"account/rateLimits/updated","params":{"rateLimits":{"primary":{"usedPercent":91,"windowDurationMins":300,"resetsAt":7}}}}"#)
        .line(r#"{"method":"item/tool/requestUserInput","id":"q","params":{"questions":[{"id":"q1","question":"Which?"}]}}"#)
        .line(r#"{"method":"item/tool/call","id":9,"params":{}}"#)
        .said(Label::Interrupt)
        .out(r#"{"method":"turn/completed","#)
}

#[test]
fn a_cursor_of_version_1_of_codex_is_read_for_ever_and_written_so_today() {
    assert_eq!(folded(&setup(Protocol::Codex), &codex()).0.cursor(), CODEX_1.trim_end());
    let mut fold = Fold::resume(RUN, CODEX_1.trim_end()).0;
    let rest = r#""params":{"threadId":"t-1","turn":{"id":"u-1","status":"interrupted"}}}"#;
    let mut told = Vec::new();
    for entry in codex().line(rest).taped() {
        told.extend(fold.entry(&entry));
    }
    let ended = "interrupted 1 \"so far\" for 30+5";
    assert_eq!(short(&told), [ended]);
    assert_eq!((fold.vendor_session(), fold.own_work(), fold.last_said()), (Some("t-1"), true, 4));
}

#[test]
fn entries_of_other_runs_are_passed_over() {
    let (mut fold, _) = Fold::begin(RUN, setup(Protocol::Line));
    for run in [RunNumber(2), RunNumber(4)] {
        let label = Label::Prompt { message: pinfold_core::MessageId(1), delivery: 1 };
        let what = EntryKind::Said { number: 1, label };
        let entry = FoldEntry { position: 10, end: 90, run, at: Wall(0), what, bytes: b"" };
        assert_eq!(fold.entry(&entry), []);
        assert_eq!((fold.to(), fold.last_said()), (0, 0));
    }
}

#[test]
fn a_line_whose_beginning_is_gone_from_the_tape_does_not_count() {
    let (fold, _) = folded(&setup(Protocol::Scripted), &story());
    let mut fold = Fold::resume(RUN, &fold.cursor()).0;
    let after = story().out("\"id\":2}\n");
    let last = after.taped().last().unwrap();
    assert_eq!(short(&fold.entry(&last)), ["note: output is missing"]);
}
