//! Claude Code driven by other clients: recordings in which messages have ids that are not ours, or none. The
//! meaning of each line is kept as well; and noise of every kind that an agent may print.

use crate::dice::Dice;
use crate::kit::{Story, conforms, each, ends, label, observed, setup, short};
use crate::recordings::{Recorded, Recording, all};
use crate::stream_json::{IDLE, greeted, in_short, lifecycle, prompted, result};
use pinfold_agents::{Label, Protocol};
use pinfold_core::Exit;
use serde_json::{Value, json};

fn of_others() -> impl Iterator<Item = Recording> {
    all().filter(|recording| recording.agent == "claude")
}

/// Returns the label of a line that another client said.
fn said(line: &Recorded, story: &Story) -> Label {
    let text: Value = serde_json::from_str(&line.text).unwrap_or_default();
    match (text["type"].as_str(), text["request"]["subtype"].as_str()) {
        (Some("user"), _) => label(u128::from(story.last_said() + 1), story.last_said() + 1),
        (Some("control_request"), Some("initialize")) => Label::Handshake(1),
        (Some("control_request"), Some("interrupt")) => Label::Interrupt,
        _ => Label::Other("a word that pinfold does not have".into()),
    }
}

/// A recording as a story, with its lines shortened.
fn told(recording: &Recording) -> (Story, Vec<String>) {
    let (mut story, mut lines) = (Story::beginning(recording.began()), vec!["begin".to_owned()]);
    for line in &recording.lines {
        let at = story.clone().at(recording.began() + line.millis());
        story = match line.direction.as_str() {
            "in" => {
                let label = said(line, &at);
                at.said(label)
            }
            "out" => at.line(&line.text),
            "err" => at.err(format!("{}\n", line.text)),
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

#[test]
fn every_line_of_every_recording_means_what_it_meant() {
    for recording in of_others() {
        let (story, lines) = told(&recording);
        let observed = each(&setup(Protocol::StreamJson), &story);
        let meant = lines.iter().zip(&observed).map(|(line, observed)| {
            let observed: String = short(observed).iter().map(|one| format!("    {one}\n")).collect();
            format!("{line}\n{observed}")
        });
        insta::with_settings!({ snapshot_path => "../snapshots/claude", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(recording.case.clone(), meant.collect::<String>());
        });
    }
}

#[test]
fn every_recording_conforms_with_what_was_said_in_it() {
    let mut dice = Dice(13);
    for recording in of_others() {
        conforms(&setup(Protocol::StreamJson), &told(&recording).0, &mut dice);
    }
}

/// Returns what is observed after the handshake, without activity and beginnings.
fn after(story: &Story) -> Vec<String> {
    let claude = setup(Protocol::StreamJson);
    conforms(&claude, story, &mut Dice(5));
    ends(&observed(&claude, story))[1..].to_vec()
}

const DONE: &str = "done 1 \"yes\" for 0+0 in all";

fn done() -> String {
    result(&[1], &json!({ "result": "yes" }))
}

#[test]
fn what_cannot_be_read_is_noted_and_the_turn_goes_on() {
    let mut halves = done().into_bytes();
    halves.extend(b"{\"type\":\"system\"}\n");
    for noise in
        [halves, b"\xff\xfe{\"type\":\"result\"}\n".to_vec(), b"{\"type\":\"result\",\xc3\x28}\n".to_vec()]
    {
        let told = after(&prompted().out(&noise).line(done()));
        assert!(told[0].starts_with("note: a line is not of the agent's protocol"), "{told:?}");
        assert_eq!(told[1..], ["taken 1", DONE]);
    }
}

#[test]
fn the_order_of_keys_does_not_count() {
    let Value::Object(fields) = serde_json::from_str(&done()).unwrap() else {
        unreachable!("it is an object")
    };
    let mut pairs: Vec<String> = fields.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
    for _ in 0..pairs.len() {
        pairs.rotate_left(1);
        assert_eq!(after(&prompted().line(format!("{{{}}}", pairs.join(",")))), ["taken 1", DONE]);
    }
}

#[test]
fn a_last_line_that_is_cut_off_ends_nothing() {
    let line = done();
    for length in [1, line.len() / 2, line.len() - 1] {
        let cut = prompted().out(&line[..length]).ends(Exit::Signal(9));
        assert!(!after(&cut).iter().any(|told| told.starts_with("done")), "{length} bytes");
    }
}

#[test]
fn an_end_that_comes_late_or_again_ends_nothing() {
    let late = "note: the agent ended the turn \"2\", which is not under way: ignored";
    let twice = prompted().line(done()).line(done());
    assert_eq!(after(&twice), ["taken 1", DONE, late]);
    let interrupted = prompted().said(Label::Interrupt).line(lifecycle(1, "cancelled")).line(IDLE);
    assert_eq!(after(&interrupted.line(done())), ["taken 1", "interrupted 1", late]);
    assert_eq!(after(&greeted().line(done())).len(), 1, "an end without a beginning is noted");
}

#[test]
fn a_request_that_comes_after_the_end_is_one_all_the_same_and_ids_are_words() {
    let asks = |id: Value| {
        let request = json!({ "subtype": "can_use_tool", "tool_name": "Bash", "input": { "command": "ls" } });
        json!({ "type": "control_request", "request_id": id, "request": request }).to_string()
    };
    let told = after(&prompted().line(done()).line(asks("q1".into())));
    assert_eq!(told[..2], ["taken 1", DONE]);
    assert!(told[2].starts_with("asks r1 Permission"), "{told:?}");
    assert_eq!(after(&prompted().line(asks(7.into())).line(done())), ["taken 1", DONE]);
}

#[test]
fn answers_of_10_and_30_megabytes_are_whole() {
    for length in [10_000_000, 30_000_000] {
        let text = "x".repeat(length);
        let line = result(&[1], &json!({ "result": text })) + "\n";
        let pieces = line.as_bytes().chunks(64 << 10);
        let told = ends(&observed(
            &setup(Protocol::StreamJson),
            &pieces.fold(prompted(), |story, piece| story.out(piece)),
        ));
        let ended = told.iter().find(|told| told.starts_with("done 1")).unwrap();
        assert!(ended.len() > length, "{} of {length}", ended.len());
    }
}
