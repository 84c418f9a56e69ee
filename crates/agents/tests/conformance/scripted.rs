//! The rules that hold for every protocol, played in the tests' own protocol.

use crate::dice::Dice;
use crate::kit::{Story, conforms, ends, folded, observed, prompt, setup, short};
use pinfold_agents::{CannotSay, Consent, Fold, Intent, Label, Protocol, RequestId, RequestReply, Setup};
use pinfold_core::{Exit, Wall};
use serde_json::{Value, json};

fn scripted() -> Setup {
    setup(Protocol::Scripted)
}

/// A story after the handshake.
fn greeted() -> Story {
    Story::new().said(Label::Handshake(1)).line(r#"{"type":"hello","id":1}"#)
}

/// Returns what is observed after the handshake, in short.
fn after(story: &Story) -> Vec<String> {
    let all = short(&observed(&scripted(), story));
    conforms(&scripted(), story, &mut Dice(3));
    let ready = all.iter().position(|line| line == "activity Idle").unwrap();
    all[ready + 1..].iter().filter(|line| !line.starts_with("activity")).cloned().collect()
}

#[test]
fn a_handshake_is_wanted_step_by_step_until_the_agent_is_ready() {
    let mut story = Story::new();
    let (fold, told) = folded(&scripted(), &story);
    assert_eq!(short(&told), ["wants handshake 1"]);
    assert_eq!((fold.wants(), fold.ready()), (Some(Intent::Handshake { step: 1 }), false));
    assert_eq!(fold.say(1, &prompt(5, 1, "x")), Err(CannotSay::NotReady));
    assert_eq!(fold.say(1, &Intent::Handshake { step: 2 }), Err(CannotSay::NotWanted));
    story = story.said(Label::Handshake(1));
    let (fold, _) = folded(&scripted(), &story);
    assert_eq!(fold.wants(), None);
    // An answer to a step that is not the last one said is ignored.
    story = story.line(r#"{"type":"hello","id":7}"#).line(r#"{"type":"hello","id":1,"more":true}"#);
    let (fold, told) = folded(&scripted(), &story);
    assert_eq!(short(&told).last().unwrap(), "wants handshake 2");
    assert_eq!(fold.wants(), Some(Intent::Handshake { step: 2 }));
    story = story.said(Label::Handshake(2)).line(r#"{"type":"hello","id":2}"#);
    let (fold, told) = folded(&scripted(), &story);
    assert_eq!(short(&told)[short(&told).len() - 2..], ["ready", "activity Idle"]);
    assert_eq!((fold.wants(), fold.ready(), fold.last_said()), (None, true, 2));
    conforms(&scripted(), &story, &mut Dice(4));
}

#[test]
fn what_is_wanted_is_wanted_until_the_tape_has_it_whoever_asks() {
    let (fold, _) = folded(&scripted(), &Story::new());
    let (again, told) = Fold::resume(fold.run(), &fold.cursor());
    assert_eq!((again.wants(), told.len()), (Some(Intent::Handshake { step: 1 }), 0));
}

#[test]
fn a_turn_is_proved_begun_and_ended_once_by_its_own_name() {
    let done = r#"{"type":"ended","id":2,"answer":"yes"}"#;
    let rows: [(&[&str], &[&str]); 12] = [
        (
            &[r#"{"type":"taken","id":2}"#, r#"{"type":"began","id":2}"#, done],
            &["taken 7", "began 7", "done 7 \"yes\""],
        ),
        // A turn that ended was taken.
        (&[done], &["taken 7", "done 7 \"yes\""]),
        (
            &[done, done],
            &[
                "taken 7",
                "done 7 \"yes\"",
                "note: the agent ended the turn \"2\", which is not under way: ignored",
            ],
        ),
        // A late end of an earlier turn, and one of a turn that never existed.
        (
            &[r#"{"type":"ended","id":1}"#],
            &["note: the agent ended the turn \"1\", which is not under way: ignored"],
        ),
        // A result without a name is the agent's own.
        (&[r#"{"type":"ended","answer":"mine"}"#, done], &["done own \"mine\"", "taken 7", "done 7 \"yes\""]),
        (
            &[r#"{"type":"began"}"#, r#"{"type":"text","text":"a"}"#, r#"{"type":"ended"}"#],
            &["began own", "done own \"a\""],
        ),
        // A result without work completes a command of the agent's own if it names it, and nothing else.
        (&[r#"{"type":"ended","id":2,"turns":0,"local":true}"#], &["taken 7", "done 7"]),
        (
            &[r#"{"type":"ended","turns":0,"local":true}"#, r#"{"type":"ended","id":2,"turns":0}"#],
            &["note: a result without work names no command of ours: it ends nothing"; 2],
        ),
        (
            &[r#"{"type":"ended","id":2,"how":"failed","kind":"server","why":"503"}"#],
            &["taken 7", "failed (Server: 503) 7"],
        ),
        (&[r#"{"type":"ended","id":2,"how":"cancelled"}"#], &["taken 7", "cancelled unasked 7"]),
        // The answer is made of the pieces, unless the end has one.
        (
            &[r#"{"type":"text","text":"a"}"#, r#"{"type":"text","text":"b"}"#, r#"{"type":"ended","id":2}"#],
            &["taken 7", "done 7 \"ab\""],
        ),
        (&[r#"{"type":"text","text":"a"}"#, done], &["taken 7", "done 7 \"yes\""]),
    ];
    for (lines, expected) in rows {
        let story = lines.iter().fold(greeted().prompt(5, 7), |story, line| story.line(line));
        assert_eq!(after(&story), expected, "{lines:?}");
    }
}

#[test]
fn usage_is_told_with_the_end() {
    let usage = json!({ "turn": { "input_tokens": 11, "output_tokens": 7, "cost_usd": 0.1 }, "model": "m" });
    let end = json!({ "type": "ended", "id": 2, "usage": usage });
    assert_eq!(after(&greeted().prompt(5, 7).line(end.to_string())), ["taken 7", "done 7 for 11+7"]);
}

#[test]
fn an_interrupt_counts_for_the_turn_in_which_it_was_said() {
    let cancelled = |id| format!(r#"{{"type":"ended","id":{id},"how":"cancelled"}}"#);
    let done = |id| format!(r#"{{"type":"ended","id":{id}}}"#);
    let asked = greeted().prompt(5, 7).said(Label::Interrupt).line(cancelled(2));
    assert_eq!(after(&asked), ["taken 7", "interrupted 7"]);
    let crossed = greeted().prompt(5, 7).said(Label::Interrupt).line(done(2)).prompt(6, 8).line(cancelled(4));
    assert_eq!(after(&crossed), ["taken 7", "done 7", "taken 8", "cancelled by a crossed interrupt 8"]);
}

#[test]
fn a_request_is_open_until_it_is_answered_taken_back_or_its_turn_ends() {
    let asks = |key| format!(r#"{{"type":"asks","request":"{key}","kind":"permission","title":"rm {key}"}}"#);
    let asked = greeted().prompt(5, 7).line(asks("a1"));
    let answer = |id| {
        let (request, verdict) = (RequestId(id), Consent::Deny);
        Intent::Answer(RequestReply { request, verdict, words: Some("no".into()), always: false })
    };
    let (fold, told) = folded(&scripted(), &asked);
    assert_eq!(short(&told).last().unwrap(), "activity Waiting");
    let said = fold.say(3, &answer(1)).unwrap();
    let object: Value = serde_json::from_slice(&said.bytes).unwrap();
    assert_eq!(
        (&object["request"], &object["allow"], &object["words"]),
        (&json!("a1"), &json!(false), &json!("no"))
    );
    assert_eq!(said.label, Label::Answer(RequestId(1)));
    assert_eq!(fold.say(3, &answer(2)), Err(CannotSay::NoSuchRequest));

    let rows = [
        (asked.clone().said(Label::Answer(RequestId(1))), vec!["asks r1 Permission rm a1"]),
        (
            asked.clone().line(r#"{"type":"takes_back","request":"a1"}"#),
            vec!["asks r1 Permission rm a1", "withdrawn r1"],
        ),
        (
            // Codex withdraws it after the end of the turn, which has already ended it.
            asked.clone().line(r#"{"type":"ended","id":2}"#).line(r#"{"type":"takes_back","request":"a1"}"#),
            vec!["asks r1 Permission rm a1", "taken 7", "withdrawn r1", "done 7"],
        ),
        (asked.clone().ends(Exit::Code(0)), vec!["asks r1 Permission rm a1", "withdrawn r1"]),
        (asked.clone().let_go(5, 7), vec!["asks r1 Permission rm a1", "withdrawn r1"]),
        (
            asked.clone().line(asks("a1")),
            vec![
                "asks r1 Permission rm a1",
                "note: a request of the agent was dropped: one of this id is open already",
            ],
        ),
        (asked.line(asks("a2")), vec!["asks r1 Permission rm a1", "asks r2 Permission rm a2"]),
    ];
    for (story, expected) in rows {
        assert_eq!(after(&story), expected);
        let (fold, _) = folded(&scripted(), &story);
        let open = expected.len() == 2 && !expected[1].starts_with("withdrawn");
        assert_eq!(fold.say(9, &answer(1)).is_ok(), open, "{expected:?}");
    }
}

#[test]
fn the_vendor_session_is_learned_and_each_change_of_it() {
    let named = |id: &str| json!({ "type": "session", "id": id }).to_string();
    let story = greeted()
        .line(named("s-1"))
        .line(named("s-1"))
        .line(named("s-2"))
        .line(named(""))
        .line(named("a\nb"));
    let odd = "note: the agent named a vendor session that cannot be one: ignored";
    assert_eq!(after(&story), ["session s-1", "session s-2 after s-1", odd, odd]);
    assert_eq!(folded(&scripted(), &story).0.vendor_session(), Some("s-2"));
    let known = Setup { vendor_session: Some("s-1".into()), ..scripted() };
    assert_eq!(ends(&observed(&known, &greeted().line(named("s-1")))), ["wants handshake 1"]);
    let hello = folded(&known, &Story::new()).0.say(1, &Intent::Handshake { step: 1 }).unwrap();
    let hello: Value = serde_json::from_slice(&hello.bytes).unwrap();
    assert_eq!((&hello["session"], &hello["dir"], &hello["id"]), (&json!("s-1"), &json!("/work"), &json!(1)));
}

#[test]
fn limits_logins_and_own_work_are_told_and_change_what_the_agent_is_doing() {
    let rows = [
        (
            r#"{"type":"limit","reach":"reached","until_ms":1794809117000}"#,
            "limit Reached until 1794809117000",
            "activity Limited",
        ),
        (r#"{"type":"login","text":"Please run /login"}"#, "login Please run /login", "activity Limited"),
        (r#"{"type":"work","under_way":true}"#, "own work true", "activity Working"),
    ];
    for (line, expected, activity) in rows {
        let told = short(&observed(&scripted(), &greeted().line(line)));
        assert_eq!(told[told.len() - 2..], [expected, activity]);
        let over = greeted().line(line).line(r#"{"type":"work","under_way":false}"#);
        let over =
            over.line(r#"{"type":"limit","reach":"off"}"#).prompt(5, 7).line(r#"{"type":"ended","id":2}"#);
        assert_eq!(short(&observed(&scripted(), &over)).last().unwrap(), "activity Idle");
    }
    let near = greeted().line(r#"{"type":"limit","reach":"near","used":0.9}"#);
    assert_eq!(short(&observed(&scripted(), &near)).last().unwrap(), "limit Near");
    assert_eq!(after(&greeted().line(r#"{"type":"refused","why":"busy"}"#)), ["refused Busy"]);
}

#[test]
fn a_time_that_counts_from_a_line_is_that_of_its_entry() {
    let story = greeted().line(r#"{"type":"limit","reach":"reached","in_ms":1000}"#);
    let Wall(begin) = Wall(1_794_800_000_000);
    assert_eq!(after(&story), [format!("limit Reached until {}", begin + 2 + 1000)]);
}

#[test]
fn what_is_not_of_the_protocol_is_noted_and_changes_nothing() {
    let deep = "[".repeat(100_000);
    let odd = [
        "garbage",
        "{",
        "[]",
        "\u{0}",
        deep.as_str(),
        r#"{"type":"ended","id":2}{"type":"ended","id":2}"#,
        r#"{"type":"ended","id":-1}"#,
        r#"{"type":"ended","id":"2"}"#,
        r#"{"type":"taken"}"#,
        r#"{"id":2}"#,
    ];
    for line in odd {
        let told = after(&greeted().prompt(5, 7).line(line).line(r#"{"id":2,"x":1,"type":"ended"}"#));
        assert!(told[0].starts_with("note: a line is not of the agent's protocol"), "{told:?}");
        assert_eq!(told[1..], ["taken 7", "done 7"], "{line:.40}");
    }
    for quiet in ["", "  ", r#"{"type":"of a later version"}"#] {
        assert_eq!(after(&greeted().line(quiet)), Vec::<String>::new());
    }
}

#[test]
fn what_no_agent_treats_well_is_not_said() {
    let ready = folded(&scripted(), &greeted()).0;
    assert_eq!(ready.say(2, &Intent::Interrupt), Err(CannotSay::NoTurn));
    assert_eq!(ready.say(2, &Intent::Handshake { step: 2 }), Err(CannotSay::NotWanted));
    assert_eq!(ready.say(2, &prompt(5, 1, &"x".repeat(17 << 20))), Err(CannotSay::TooLong));
    let busy = folded(&scripted(), &greeted().prompt(5, 7)).0;
    assert_eq!(busy.say(3, &prompt(6, 8, "x")), Err(CannotSay::TurnUnderWay));
    let interrupt = busy.say(3, &Intent::Interrupt).unwrap();
    assert_eq!((interrupt.heard, interrupt.close), (Some(busy.to()), false));
    let own = folded(&scripted(), &greeted().line(r#"{"type":"began"}"#)).0;
    assert!(own.say(2, &Intent::Interrupt).is_ok() && own.say(2, &prompt(5, 1, "x")).is_ok());
    let said = ready.say(2, &prompt(5, 1, "hi")).unwrap();
    let object: Value = serde_json::from_slice(&said.bytes).unwrap();
    assert_eq!((&object["id"], &object["text"], &object["delivery"]), (&json!(2), &json!("hi"), &json!(1)));
}

#[test]
fn output_that_is_missing_costs_the_line_in_which_it_is() {
    let story = greeted()
        .prompt(5, 7)
        .out(r#"{"type":"ended","#)
        .gap(100)
        .line(r#""id":2}"#)
        .line(r#"{"type":"ended","id":2}"#);
    assert_eq!(after(&story), ["note: 100 bytes of output are missing", "taken 7", "done 7"]);
}
