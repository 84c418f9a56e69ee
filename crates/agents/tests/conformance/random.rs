//! Random tapes: words of the protocols, whole and damaged, in any order, among arbitrary bytes.

use crate::dice::Dice;
use crate::kit::{Story, conforms, setup};
use pinfold_agents::preset::TurnEndRule;
use pinfold_agents::{Label, PresetChanges, Protocol, RequestId, Setup};
use pinfold_core::Exit;

const WORDS: [&str; 30] = [
    r#"{"type":"hello","id":1}"#,
    r#"{"type":"hello","id":1,"more":true}"#,
    r#"{"type":"hello","id":2}"#,
    r#"{"type":"session","id":"s-1"}"#,
    r#"{"type":"session","id":"s-2"}"#,
    r#"{"type":"taken","id":2}"#,
    r#"{"type":"taken","id":3}"#,
    r#"{"type":"began","id":2}"#,
    r#"{"type":"began"}"#,
    r#"{"type":"text","text":"some \u0000 text \ud83d\udc11"}"#,
    r#"{"type":"ended","id":2,"answer":"a"}"#,
    r#"{"type":"ended","id":3,"how":"cancelled"}"#,
    r#"{"type":"ended","id":4,"how":"failed","why":"x"}"#,
    r#"{"type":"ended"}"#,
    r#"{"type":"ended","id":2,"turns":0}"#,
    r#"{"type":"ended","id":2,"usage":{"turn":{"cost_usd":0.30000000000000004}}}"#,
    r#"{"type":"asks","request":"a1","kind":"permission","title":"t"}"#,
    r#"{"type":"asks","request":"a2","kind":"question"}"#,
    r#"{"type":"takes_back","request":"a1"}"#,
    r#"{"type":"work","under_way":true}"#,
    r#"{"type":"work","under_way":false}"#,
    r#"{"type":"limit","reach":"reached","in_ms":9223372036854775807}"#,
    r#"{"type":"limit","reach":"off"}"#,
    r#"{"type":"login"}"#,
    "PINFOLD_DONE yes",
    "PINFOLD_DONE 00000000000000000000000001 named",
    "PINFOLD_DONE 00000000000000000000000002 named",
    "PINFOLD_DONE \"a\\nb\"",
    r#"{"type":"error","message":"x","cost":0.1}"#,
    "",
];

/// Lines of Claude Code. The ids are those of deliveries that were sent.
const CLAUDE: [&str; 34] = [
    r#"{"type":"control_response","response":{"subtype":"success","request_id":"pinfold-1"}}"#,
    r#"{"type":"control_response","response":{"subtype":"error","request_id":"pinfold-2","error":"no"}}"#,
    r#"{"type":"command_lifecycle","command_uuid":"5775264a-9a7e-8b09-8359-f24f3b94d42c","state":"queued"}"#,
    r#"{"type":"command_lifecycle","command_uuid":"5775264a-9a7e-8b09-8359-f24f3b94d42c","state":"started"}"#,
    r#"{"type":"command_lifecycle","command_uuid":"5775264a-9a7e-8b09-8359-f24f3b94d42c","state":"completed"}"#,
    r#"{"type":"command_lifecycle","command_uuid":"f88ed945-105f-8739-980b-fb928438beef","state":"cancelled"}"#,
    r#"{"type":"command_lifecycle","command_uuid":"x","state":"started","wakeup_source":"loop_wakeup"}"#,
    r#"{"type":"system","subtype":"init","session_id":"s-1","model":"m","user_message_uuids":["f88ed945-105f-8739-980b-fb928438beef"]}"#,
    r#"{"type":"system","subtype":"init","session_id":"s-2"}"#,
    r#"{"type":"system","subtype":"session_state_changed","state":"idle"}"#,
    r#"{"type":"system","subtype":"session_state_changed","state":"running"}"#,
    r#"{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"b1"}]}"#,
    r#"{"type":"system","subtype":"background_tasks_changed","tasks":[]}"#,
    r#"{"type":"system","subtype":"background_tasks_changed","tasks":7}"#,
    r#"{"type":"system","subtype":"api_retry","attempt":1,"error":"overloaded"}"#,
    r#"{"type":"user","tool_use_result":{"id":"c1","recurring":true,"nextFireAt":1794896305405.4473}}"#,
    r#"{"type":"user","tool_use_result":{"id":"c1"}}"#,
    r#"{"type":"user","tool_use_result":{"scheduledFor":1e300}}"#,
    r#"{"type":"user","tool_use_result":{"scheduledFor":0}}"#,
    r#"{"type":"assistant","message":{"content":[{"type":"text","text":"some \u0000 \ud83d\udc11"}],"usage":{"input_tokens":18446744073709551615,"output_tokens":1}}}"#,
    r#"{"type":"assistant","error":"rate_limit","message":{"content":[{"type":"text","text":"no more"}]}}"#,
    r#"{"type":"assistant","parent_tool_use_id":"t","message":{"content":"x"}}"#,
    r#"{"type":"result","subtype":"success","num_turns":1,"result":"a","user_message_uuids":["5775264a-9a7e-8b09-8359-f24f3b94d42c"]}"#,
    r#"{"type":"result","subtype":"success","is_error":true,"num_turns":1,"result":"b","user_message_uuids":["f88ed945-105f-8739-980b-fb928438beef","5775264a-9a7e-8b09-8359-f24f3b94d42c"],"model_usage_since_last_result":{"m":{"costUSD":0.30000000000000004}}}"#,
    r#"{"type":"result","subtype":"error_during_execution","terminal_reason":"aborted_tools","num_turns":1,"user_message_uuids":["f88ed945-105f-8739-980b-fb928438beef"]}"#,
    r#"{"type":"result","num_turns":0,"user_message_uuids":["5775264a-9a7e-8b09-8359-f24f3b94d42c"]}"#,
    r#"{"type":"result","subtype":"success","num_turns":1,"origin":{"kind":"task-notification"}}"#,
    r#"{"type":"result","is_error":"yes","num_turns":"1","user_message_uuids":"x"}"#,
    r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":9223372036854775807}}"#,
    r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}"#,
    r#"{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"permission_suggestions":[{"type":"addRules"}]}}"#,
    r#"{"type":"control_request","request_id":"q2","request":{"subtype":"elicitation"}}"#,
    r#"{"type":"control_request","request_id":"q3","request":{"subtype":"can_use_tool","tool_name":"AskUserQuestion","input":{"questions":[{"question":"?"},7]}}}"#,
    r#"{"type":"control_cancel_request","request_id":"q1"}"#,
];

fn word(dice: &mut Dice) -> &'static str {
    let words: &[&str] = if dice.one_in(2) { &WORDS } else { &CLAUDE };
    dice.pick::<&str>(words)
}

fn random(dice: &mut Dice, length: usize) -> Story {
    let mut story = Story::new();
    let mut deliveries = 0;
    for _ in 0..length {
        story = step(story, dice, &mut deliveries);
    }
    match dice.below(4) {
        0 => story,
        1 => story.ends(Exit::Signal(9)),
        2 => story.ends(Exit::Code(1)),
        _ => story.ends(Exit::Code(0)),
    }
}

fn step(story: Story, dice: &mut Dice, deliveries: &mut u64) -> Story {
    match dice.below(16) {
        0 => story.out(dice.bytes(300)),
        1 => story.err(dice.bytes(100)),
        2 => {
            // A word that is cut off or damaged.
            let mut word = word(dice).as_bytes().to_vec();
            word.truncate(dice.below(word.len() + 1));
            if !word.is_empty() {
                let place = dice.below(word.len());
                word[place] = dice.bytes(1).first().copied().unwrap_or(b'\n');
            }
            story.out(word)
        }
        3 => story.said(Label::Handshake(1 + u32::from(dice.one_in(3)))),
        4 | 5 => {
            *deliveries += 1;
            story.prompt(u128::from(*deliveries % 3), *deliveries)
        }
        6 => story.written(),
        7 => story.said(Label::Interrupt),
        8 => story.said(Label::Answer(RequestId(1 + dice.below(3) as u64))),
        9 if dice.one_in(4) => story.gap(77),
        9 if dice.one_in(8) => story.said(Label::Close),
        9 => story.said(Label::Other("of a later version".into())),
        10 if *deliveries > 0 => story.let_go(u128::from(*deliveries % 3), *deliveries),
        11 => story.err("already has an active writer\n"),
        _ => story.line(word(dice)),
    }
}

fn setups() -> Vec<Setup> {
    let exec = PresetChanges::from_toml(include_str!("../presets/codex-exec.toml")).unwrap().preset();
    vec![
        setup(Protocol::Scripted),
        setup(Protocol::Line),
        Setup { turns: TurnEndRule::Done, ..setup(Protocol::Line) },
        setup(Protocol::Exec),
        Setup::new(&exec, "/work", Some("s-1")),
        setup(Protocol::StreamJson),
        setup(Protocol::Acp),
    ]
}

#[test]
fn tapes_of_any_kind_conform() {
    for seed in 0..40 {
        let story = random(&mut Dice(seed), 40);
        for setup in setups() {
            conforms(&setup, &story, &mut Dice(seed + 1));
        }
    }
}

#[test]
fn a_delivery_ends_once_at_most_whatever_is_printed() {
    use pinfold_agents::{Observation, TurnOwner};
    for seed in 0..500 {
        let story = random(&mut Dice(seed), 120);
        for setup in setups() {
            let mut ended = Vec::new();
            for told in crate::kit::observed(&setup, &story) {
                if let Observation::TurnEnded { turn: TurnOwner::Of(delivery), .. } = told {
                    assert!(!ended.contains(&delivery.delivery), "{delivery:?}, seed {seed}");
                    assert!(delivery.delivery <= story.last_said());
                    ended.push(delivery.delivery);
                }
            }
        }
    }
}
