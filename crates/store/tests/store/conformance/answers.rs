//! Long answers: whole when asked for, only the beginning in lists, and gone with their messages.

use super::on_every_back_end;
use crate::conformance::Ground;
use crate::driven::Driven;
use crate::home::id;
use pinfold_core::event::TurnEnd;
use pinfold_core::{MessageId, Wall};
use pinfold_store::{
    AnswerKept, AnswerPart, AnswerTold, BEGINNING, Batch, GivenAnswer, LONGEST_IN_ROW, Message, Old, Prune,
    Query, Reason, Take, Ulid,
};
use std::time::Duration;

pub(crate) const FIRST: MessageId = MessageId(1);

/// Returns a text of about this many bytes in which no two places look alike.
pub(crate) fn long(bytes: u64) -> String {
    let mut text = String::new();
    for number in 0.. {
        if text.len() as u64 >= bytes {
            return text;
        }
        text.push_str(&format!("{number} ü "));
    }
    text
}

/// Creates a session whose message is being answered.
pub(crate) fn asked() -> (Driven, Batch) {
    let (mut driven, mut batch) = Driven::on_demand(1, "api");
    batch.append(driven.send(FIRST, Some("k")));
    batch.append(driven.start());
    batch.append(driven.take(FIRST));
    (driven, batch)
}

pub(crate) fn part(offset: u64, text: &str) -> AnswerPart {
    AnswerPart { session: id(1), message: FIRST.into(), offset, text: text.to_owned() }
}

/// Ends the turn, with what was not delivered in parts before.
pub(crate) fn answered(driven: &mut Driven, rest: &str, told: AnswerTold) -> Batch {
    driven.answers.insert(FIRST, GivenAnswer { rest: rest.to_owned(), told });
    driven.end_turn(FIRST, TurnEnd::Answered)
}

fn listed(reader: &dyn Query) -> Message {
    reader.messages(id(1), None, Take::All).unwrap().remove(0)
}

fn whole(reader: &dyn Query) -> String {
    reader.answered(FIRST).unwrap().unwrap().answer.unwrap()
}

fn a_long_answer_is_whole_and_lists_have_its_beginning(ground: &Ground) {
    let text = long(LONGEST_IN_ROW + 1);
    let (mut driven, mut batch) = asked();
    batch.append(answered(&mut driven, &text, AnswerTold::default()));
    ground.open().commit(batch).wait().unwrap();
    let reader = ground.open().reader().unwrap();
    let row = listed(&*reader);
    assert_eq!(row.kept, AnswerKept { beside: Some(text.len() as u64), cut: false });
    let beginning = row.answer.unwrap();
    assert!(beginning.len() <= BEGINNING && beginning.len() + 4 > BEGINNING, "{}", beginning.len());
    assert!(text.starts_with(&beginning));
    assert_eq!(whole(&*reader), text);
}

fn an_answer_that_fits_is_in_its_message(ground: &Ground) {
    let text = "x".repeat(usize::try_from(LONGEST_IN_ROW).unwrap());
    let (mut driven, mut batch) = asked();
    batch.append(answered(&mut driven, &text, AnswerTold::default()));
    ground.open().commit(batch).wait().unwrap();
    let reader = ground.open().reader().unwrap();
    let row = listed(&*reader);
    assert_eq!((row.answer.as_ref(), row.kept), (Some(&text), AnswerKept::default()));
    assert_eq!(whole(&*reader), text);
}

/// As when a daemon is killed in between and hears the last part once more.
fn parts_are_one_text_however_often_the_last_of_them_is_told(ground: &Ground) {
    for bytes in [300_000, 3 * LONGEST_IN_ROW] {
        let ground = ground.another();
        let text = long(bytes);
        let [one, two] = [3, 2].map(|part| text.floor_char_boundary(text.len() / part));
        let (mut driven, mut batch) = asked();
        batch.answer_parts([part(0, &text[..one])]);
        ground.open().commit(batch).wait().unwrap();
        for _ in 0..2 {
            let mut batch = driven.handle(&pinfold_core::Event::Ticked);
            batch.answer_parts([part(one as u64, &text[one..two])]);
            batch.steps.push(crate::home::note(1).steps.remove(0));
            ground.open().commit(batch).wait().unwrap();
        }
        let told = AnswerTold { before: two as u64, cut: false };
        ground.open().commit(answered(&mut driven, &text[two..], told)).wait().unwrap();
        let reader = ground.open().reader().unwrap();
        assert_eq!(whole(&*reader), text, "{bytes}");
        let beside = (text.len() as u64 > LONGEST_IN_ROW).then_some(text.len() as u64);
        assert_eq!(listed(&*reader).kept, AnswerKept { beside, cut: false });
    }
}

fn an_answer_that_begins_anew_has_nothing_of_the_first_one(ground: &Ground) {
    let (mut driven, mut batch) = asked();
    batch.answer_parts([part(0, &long(200_000)), part(0, "second ")]);
    batch.append(answered(&mut driven, "answer", AnswerTold { before: 7, cut: false }));
    ground.open().commit(batch).wait().unwrap();
    assert_eq!(whole(&*ground.open().reader().unwrap()), "second answer");
}

fn an_answer_of_which_something_is_missing_says_so(ground: &Ground) {
    for (told, rest) in [
        (AnswerTold { before: 0, cut: true }, long(BEGINNING as u64)),
        (AnswerTold { before: 0, cut: true }, long(LONGEST_IN_ROW + 1)),
        // The part that was delivered before is missing.
        (AnswerTold { before: 1 << 20, cut: false }, long(BEGINNING as u64)),
    ] {
        let ground = ground.another();
        let (mut driven, mut batch) = asked();
        batch.append(answered(&mut driven, &rest, told));
        ground.open().commit(batch).wait().unwrap();
        let reader = ground.open().reader().unwrap();
        assert!(listed(&*reader).kept.cut, "{told:?}");
        assert_eq!(whole(&*reader), rest);
    }
}

fn a_long_answer_goes_with_its_message(ground: &Ground) {
    let (mut driven, mut batch) = asked();
    batch.append(answered(&mut driven, &long(LONGEST_IN_ROW + 1), AnswerTold::default()));
    let store = ground.open();
    store.commit(batch).wait().unwrap();
    let old = Old::Messages { session: id(1), ids: vec![Ulid::from(FIRST)] };
    let (before, within) = (Wall(i64::MAX), Duration::MAX);
    let mut batch = Batch::new();
    batch.prune(Prune { old, before, reason: Reason::Age, within, at_least: 0 });
    assert_eq!(store.commit(batch).wait().unwrap().pruned.messages, 1);
    assert_eq!(store.reader().unwrap().answered(FIRST).unwrap(), None);
}

on_every_back_end! {
    a_long_answer_is_whole_and_lists_have_its_beginning,
    an_answer_that_fits_is_in_its_message,
    parts_are_one_text_however_often_the_last_of_them_is_told,
    an_answer_that_begins_anew_has_nothing_of_the_first_one,
    an_answer_of_which_something_is_missing_says_so,
    a_long_answer_goes_with_its_message,
}
