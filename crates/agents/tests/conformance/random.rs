//! Tapes made by chance: words of the protocols, whole and damaged, in any order, among bytes of any kind.

use crate::dice::Dice;
use crate::kit::{Story, conforms, setup};
use pinfold_agents::preset::Turns;
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
            // A word that is cut off, or damaged.
            let mut word = dice.pick(&WORDS).as_bytes().to_vec();
            word.truncate(dice.below(word.len() + 1));
            if !word.is_empty() {
                let place = dice.below(word.len());
                word[place] = dice.bytes(1).first().copied().unwrap_or(b'\n');
            }
            story.out(word)
        }
        3 => story.said(Label::Handshake(1)),
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
        _ => story.line(dice.pick(&WORDS)),
    }
}

fn setups() -> Vec<Setup> {
    let exec = PresetChanges::from_toml(include_str!("../presets/codex-exec.toml")).unwrap().preset();
    vec![
        setup(Protocol::Scripted),
        setup(Protocol::Line),
        Setup { turns: Turns::Done, ..setup(Protocol::Line) },
        setup(Protocol::Exec),
        Setup::new(&exec, "/work", Some("s-1")),
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
    use pinfold_agents::{Observation, Turn};
    for seed in 0..500 {
        let story = random(&mut Dice(seed), 120);
        for setup in setups() {
            let mut ended = Vec::new();
            for told in crate::kit::observed(&setup, &story) {
                if let Observation::TurnEnded { turn: Turn::Of(delivery), .. } = told {
                    assert!(!ended.contains(&delivery.delivery), "{delivery:?}, seed {seed}");
                    assert!(delivery.delivery <= story.last_said());
                    ended.push(delivery.delivery);
                }
            }
        }
    }
}
