//! Long lines and long answers.

use crate::kit::{Story, folded, observed, resumes_anywhere, setup, short};
use pinfold_agents::{LONGEST_LINE, Label, Protocol};

/// Output comes in entries of at most this many bytes.
const ENTRY: usize = 64 << 10;

fn greeted() -> Story {
    Story::new().said(Label::Handshake(1)).line(r#"{"type":"hello","id":1}"#).prompt(5, 7)
}

/// Returns an end with an answer, this long in all.
fn ended(length: usize) -> String {
    let begin = r#"{"type":"ended","id":2,"answer":""#;
    format!("{begin}{}\"}}", "x".repeat(length - begin.len() - 2))
}

fn in_entries(story: Story, output: &str) -> Story {
    output.as_bytes().chunks(ENTRY).fold(story, |story, piece| story.out(piece))
}

#[test]
fn a_line_of_32_mib_is_heard_and_one_byte_more_fails_its_turn() {
    let setup = setup(Protocol::Scripted);
    let story = in_entries(greeted(), &(ended(LONGEST_LINE) + "\n"));
    let told = short(&observed(&setup, &story));
    assert!(told[told.len() - 2].starts_with("done 7 \"xxx"));

    let story = in_entries(greeted(), &(ended(LONGEST_LINE + 1) + "\n"));
    let story = story.line(r#"{"type":"ended","id":2}"#).prompt(6, 8).line(r#"{"type":"ended","id":3}"#);
    let told = short(&observed(&setup, &story));
    let expected = [
        "note: a line of output was too long, and passed over",
        "taken 7",
        "failed (LineTooLong: a line of its output has more than 32 MiB, and cannot be read) 7",
        "wants interrupt",
        "activity Idle",
        "note: the agent ended the turn \"2\", which is not under way: ignored",
        "activity Working",
        "taken 8",
        "done 8",
        "activity Idle",
    ];
    assert_eq!(told[told.len() - expected.len()..], expected);
}

#[test]
fn a_line_without_an_end_is_told_of_as_soon_as_it_is_too_long_and_is_not_kept() {
    let setup = setup(Protocol::Scripted);
    let piece = "x".repeat(ENTRY);
    let mut story = greeted();
    for _ in 0..LONGEST_LINE / ENTRY {
        story = story.out(&piece);
    }
    let (fold, _) = folded(&setup, &story);
    assert_eq!(fold.holding(), LONGEST_LINE);
    assert!(fold.reads_from() < fold.to() && fold.cursor().len() < 4_000);
    let story = story.out("x").out(&piece);
    let (fold, told) = folded(&setup, &story);
    assert_eq!((fold.holding(), fold.reads_from()), (0, fold.to()));
    assert!(short(&told).contains(&"wants interrupt".to_owned()));
    let after = story.out("\n").line(r#"{"type":"session","id":"s"}"#);
    assert_eq!(short(&observed(&setup, &after)).last().unwrap(), "session s");
    let (first, last) = (after.steps.len() / 2, after.steps.len() - 2);
    resumes_anywhere(&setup, &after, |stopped| [4, first, last].contains(&stopped));
}

#[test]
fn a_long_answer_in_pieces_is_told_in_parts_and_the_cursor_stays_small() {
    let setup = setup(Protocol::Scripted);
    // This character takes six bytes in JSON.
    let text = "\\u0001".repeat(20_000);
    let piece = format!(r#"{{"type":"text","text":"{text}"}}"#);
    let story = (0..60).fold(greeted(), |story, _| story.line(&piece)).line(r#"{"type":"ended","id":2}"#);
    let told = short(&observed(&setup, &story));
    assert!(told.iter().filter(|line| line.starts_with("part ")).count() > 5);
    resumes_anywhere(&setup, &story, |stopped| stopped % 13 == 0);
}
