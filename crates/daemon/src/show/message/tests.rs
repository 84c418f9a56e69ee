//! Messages as they are shown.

use super::*;
use pinfold_core::RunNumber;
use pinfold_store::{MessageState as Stored, RowDamage, SessionId, TurnPlace, Ulid};

fn row() -> pinfold_store::Message {
    pinfold_store::Message {
        id: Ulid::new(1, 2),
        session: SessionId(Ulid::new(1, 3)),
        key: Some("k".into()),
        from: Some("b".into()),
        text: "do it".into(),
        state: Stored::Done,
        tries: 2,
        enqueued_at: Wall(1_000),
        done_at: Some(Wall(2_000)),
        taken: None,
        files: Vec::new(),
        kept: pinfold_store::AnswerKept::default(),
        answer: Some("done".into()),
        failure: None,
        place: Some(TurnPlace { run: RunNumber(4), from: 5, to: Some(6) }),
        damage: None,
    }
}

#[test]
fn a_message_is_told_as_it_is_stored() {
    let told = message(row(), "a");
    assert_eq!(
        (told.id, told.session, told.from.as_deref()),
        (Ulid::new(1, 2).to_string(), "a".into(), Some("b"))
    );
    assert_eq!((told.text.as_str(), told.key.as_deref(), told.tries), ("do it", Some("k"), 2));
    assert_eq!((told.state, told.damaged), (MessageState::Done, None));
    assert_eq!((told.enqueued_at, told.done_at), (time(Wall(1_000)), Some(time(Wall(2_000)))));
    assert_eq!((told.answer.as_deref(), told.answer_bytes), (Some("done"), Some(4)));
    let turn = told.turn.unwrap();
    assert_eq!((turn.run, turn.from, turn.to), (4, 5, Some(6)));
}

#[test]
fn a_list_has_the_beginning_of_an_answer_and_says_how_long_it_is() {
    let long = "é".repeat(4_000);
    let told = listed(pinfold_store::Message { answer: Some(long.clone()), ..row() }, "a");
    assert_eq!(told.answer.as_deref(), Some(&*"é".repeat(2_048)), "cut between characters");
    assert_eq!(told.answer_bytes, Some(8_000));
    assert_eq!(listed(row(), "a").answer.as_deref(), Some("done"));
    assert_eq!(
        message(pinfold_store::Message { answer: Some(long.clone()), ..row() }, "a").answer,
        Some(long)
    );
}

#[test]
fn of_a_damaged_message_only_that_is_told() {
    let damage = RowDamage { id: "01X".into(), problem: "torn".into() };
    let told = message(pinfold_store::Message { damage: Some(damage), ..row() }, "a");
    assert_eq!(
        (told.id.as_str(), told.state, told.damaged.as_deref()),
        ("01X", MessageState::Damaged, Some("torn"))
    );
    assert_eq!((told.text.as_str(), told.key, told.answer, told.turn), ("", None, None, None));
}

#[test]
fn an_event_says_who_did_it_apart_and_nothing_where_there_is_no_sentence() {
    let data = serde_json::json!({ "by": { "user": 1 }, "code": 3 }).as_object().unwrap().clone();
    let row = pinfold_store::StoredEvent {
        seq: 9,
        at: Wall(1_000),
        session: None,
        name: Some("a".into()),
        run: Some("r".into()),
        kind: "run_exited".into(),
        why: String::new(),
        data,
        damage: None,
    };
    let told = crate::show::event::event(row);
    assert_eq!((told.seq, told.session.as_deref(), told.run.as_deref()), (9, Some("a"), Some("r")));
    assert_eq!((told.by, told.why), (Some(serde_json::json!({ "user": 1 })), None));
    assert_eq!((told.facts.len(), &told.facts["code"]), (1, &serde_json::json!(3)));
    assert_eq!((told.at, told.kind.word()), (time(Wall(1_000)), "run_exited"));
}

#[test]
fn a_failure_is_a_word_and_where_one_is_known_a_reason() {
    let rows = [
        (None, (None, None)),
        (Some("cancelled"), (Some("cancelled"), None)),
        (Some("turn_failed: it: broke"), (Some("turn_failed"), Some("it: broke"))),
    ];
    for (stored, told) in rows {
        let row = pinfold_store::Message { failure: stored.map(str::to_owned), ..row() };
        let shown = message(row, "a");
        assert_eq!((shown.failure.as_deref(), shown.reason.as_deref()), told);
    }
}
