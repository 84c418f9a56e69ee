//! The rules of `docs/protocol.md`.

use crate::dice::Dice;
use crate::kit::{Story, conforms, ends, folded, observed, prompt, setup, short};
use pinfold_agents::preset::{MessageFormat, TurnEndRule};
use pinfold_agents::{CannotSay, Intent, Label, MessageSender, Observation, Prompt, Protocol, Setup};
use pinfold_core::{Exit, MessageId};

fn done() -> Setup {
    Setup { turns: TurnEndRule::Done, ..setup(Protocol::Line) }
}

const OWN: &str = "00000000000000000000000005";
const OTHER: &str = "00000000000000000000000006";

#[test]
fn a_turn_without_a_mark_is_over_when_it_was_written() {
    let story = Story::new().prompt(5, 1).line("PINFOLD_DONE x").written().written().prompt(6, 2).written();
    let expected = ["taken 1", "done 1", "taken 2", "done 2"];
    assert_eq!(ends(&observed(&setup(Protocol::Line), &story)), expected);
    let unwritten = Story::new().prompt(5, 1).ends(Exit::Code(0));
    assert_eq!(ends(&observed(&setup(Protocol::Line), &unwritten)), Vec::<String>::new());
}

#[test]
fn the_rest_of_the_line_with_the_mark_is_the_answer() {
    let rows = [
        ("PINFOLD_DONE", "done 1 \"\""),
        ("PINFOLD_DONE 42", "done 1 \"42\""),
        ("PINFOLD_DONE it works\r", "done 1 \"it works\""),
        ("PINFOLD_DONE \"two\\nlines\"", "done 1 \"two\\nlines\""),
        ("PINFOLD_DONE \"not closed", "done 1 \"\\\"not closed\""),
        ("PINFOLD_DONE {\"a\": 1}", "done 1 \"{\\\"a\\\": 1}\""),
        (&format!("PINFOLD_DONE {OWN} all done"), "done 1 \"all done\""),
        (&format!("PINFOLD_DONE  {OWN}"), "done 1 \"\""),
        (&format!("PINFOLD_DONE {OWN}x all"), &format!("done 1 \"{OWN}x all\"")),
        (&format!("PINFOLD_DONE \"{OTHER}\""), &format!("done 1 \"{OTHER}\"")),
    ];
    for (line, expected) in rows {
        let story =
            Story::new().line("noise").prompt(5, 1).written().line("PINFOLD_DON").line(" PINFOLD_DONE no");
        let story = story.line(line).line("late");
        assert_eq!(ends(&observed(&done(), &story)), ["taken 1", expected], "{line}");
        conforms(&done(), &story, &mut Dice(1));
    }
}

#[test]
fn a_line_counts_if_it_begins_within_the_turn_and_on_standard_output() {
    let stray = "note: the agent ended a turn while none was under way";
    let rows = [
        (Story::new().line("PINFOLD_DONE early").prompt(5, 1), vec![stray]),
        (Story::new().out("PINFOLD_").prompt(5, 1).line("DONE half"), vec![stray]),
        (Story::new().prompt(5, 1).err("PINFOLD_DONE on stderr\n"), vec![]),
        (
            Story::new().prompt(5, 1).line("PINFOLD_DONE a").line("PINFOLD_DONE b"),
            vec!["taken 1", "done 1 \"a\"", stray],
        ),
        // An agent that died without a newline has ended its line all the same.
        (
            Story::new().prompt(5, 1).out("PINFOLD_DONE cut").ends(Exit::Signal(9)),
            vec!["taken 1", "done 1 \"cut\""],
        ),
        (Story::new().prompt(5, 1).out("PINFOLD_DON").ends(Exit::Code(0)), vec![]),
        (Story::new().prompt(5, 1).let_go(5, 1).line("PINFOLD_DONE late"), vec![stray]),
    ];
    for (story, expected) in rows {
        assert_eq!(ends(&observed(&done(), &story)), expected, "{story:?}");
        conforms(&done(), &story, &mut Dice(2));
    }
}

#[test]
fn a_line_that_names_another_message_is_told_and_the_turn_goes_on() {
    let story = Story::new().prompt(5, 1).line(format!("PINFOLD_DONE {OTHER} late"));
    let story = story.line(format!("PINFOLD_DONE {OWN} right"));
    let doubt = format!("doubt 1 named 6 \"{OTHER} late\"");
    assert_eq!(ends(&observed(&done(), &story)), ["taken 1", &doubt, "done 1 \"right\""]);
}

#[test]
fn marks_outside_of_turns_are_not_told_without_end() {
    let story = (0..100).fold(Story::new(), |story, _| story.line("PINFOLD_DONE"));
    assert_eq!(ends(&observed(&done(), &story)).len(), 16);
}

#[test]
fn an_answer_has_a_bound() {
    let story = Story::new().prompt(5, 1).line("PINFOLD_DONE ".to_owned() + &"a".repeat(2 << 20));
    let observed = observed(&done(), &story);
    let mut answers = observed
        .into_iter()
        .filter_map(|told| if let Observation::TurnEnded { answer, .. } = told { answer } else { None });
    let answer = answers.next_back().unwrap();
    assert!(!answer.whole && answer.text.len() <= 1 << 20);
}

#[test]
fn activity_is_told_only_where_turns_end_with_a_mark() {
    let story = Story::new().prompt(5, 1).written().line("PINFOLD_DONE");
    let activities = |setup: &Setup| -> Vec<String> {
        short(&observed(setup, &story)).into_iter().filter(|line| line.starts_with("activity")).collect()
    };
    let expected = ["activity Idle", "activity Working", "activity Idle"];
    assert_eq!(activities(&done()), expected);
    assert_eq!(activities(&setup(Protocol::Line)), Vec::<String>::new());
}

#[test]
fn a_message_is_one_line_whatever_is_in_it() {
    let from = |own| Some(MessageSender { session: "boss".into(), own });
    let id = OWN;
    let rows = [
        (MessageFormat::Line, "", None, "\n".to_owned()),
        (MessageFormat::Line, "--help", None, "--help\n".into()),
        (MessageFormat::Line, "a\nb\\n c\\", None, "a\\nb\\\\n c\\\\\n".into()),
        (MessageFormat::Line, "a\nb", from(false), "[from session boss] a\\nb\n".into()),
        (MessageFormat::Line, "a\nb", from(true), "a\\nb\n".into()),
        (MessageFormat::Json, "a\nb", None, format!("{{\"id\":\"{id}\",\"text\":\"a\\nb\",\"try\":2}}\n")),
        (
            MessageFormat::Json,
            "a",
            from(true),
            format!("{{\"from\":\"boss\",\"id\":\"{id}\",\"text\":\"a\",\"try\":2}}\n"),
        ),
    ];
    for (input, text, from, expected) in rows {
        let (fold, _) = folded(&Setup { input, ..done() }, &Story::new());
        let (message, text, files) = (MessageId(5), text.to_owned(), Vec::new());
        let prompt = Prompt { message, delivery: 9, attempt: 2, text, repetition: true, files, from };
        let said = fold.say(1, &Intent::Prompt(prompt)).unwrap();
        assert_eq!(String::from_utf8(said.bytes).unwrap(), expected);
        assert_eq!((said.label, said.close), (Label::Prompt { message, delivery: 9 }, false));
    }
}

#[test]
fn it_gets_one_message_at_a_time_and_has_no_other_words() {
    let (fold, _) = folded(&done(), &Story::new().prompt(5, 1));
    assert_eq!(fold.say(2, &prompt(6, 2, "x")), Err(CannotSay::TurnUnderWay));
    assert_eq!(fold.say(2, &Intent::Interrupt), Err(CannotSay::NotOffered));
    let close = fold.say(2, &Intent::Close).unwrap();
    assert_eq!((close.bytes.len(), close.close, close.heard), (0, true, Some(fold.to())));
    let (fold, _) = folded(&done(), &Story::new().said(Label::Close));
    assert_eq!(fold.say(2, &prompt(6, 2, "x")), Err(CannotSay::Closed));
}
