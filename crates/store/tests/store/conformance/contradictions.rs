//! What contradicts the store is refused, and nothing of its batch is stored.

use crate::conformance::Ground;
use crate::conformance::retention::prune;
use crate::driven::Driven;
use crate::home::{id, note};
use pinfold_core::inbox::MessageChange;
use pinfold_core::life::Purpose;
use pinfold_core::{MessageId, RunNumber, Session, Wall};
use pinfold_store::{
    AnswerTold, Batch, CommitError, NewSession, Old, Reader, RunId, RunStep, SessionId, Step, Store, Take,
    TurnPlace, Ulid,
};
use std::sync::Arc;

const AT: Wall = Wall(1_700_000_000_500);

fn queued(session: SessionId, message: u128, key: Option<&str>) -> Step {
    let change = MessageChange::Queued { message: MessageId(message), key: key.map(str::to_owned) };
    let words = Some(format!("text of {message}"));
    Step::Message {
        session,
        at: AT,
        change,
        words,
        told: AnswerTold::default(),
        from: Some("other".into()),
        place: None,
    }
}

fn message(session: SessionId, change: MessageChange) -> Step {
    Step::Message {
        session,
        at: AT,
        change,
        words: None,
        told: AnswerTold::default(),
        from: None,
        place: None,
    }
}

fn decided(session: SessionId, run: u64, id: u128) -> Step {
    let (run, purpose, id) = (RunNumber(run), Purpose::Headless, Some(RunId(Ulid::new(1, id))));
    Step::Run { session, at: AT, run: RunStep::Decided { run, purpose, id } }
}

fn of(steps: Vec<Step>) -> Batch {
    let mut batch = note(1);
    batch.steps.extend(steps);
    batch
}

fn child(number: u64, name: &str, parent: Option<SessionId>, like: &Session) -> Batch {
    let (id, name, definition) = (id(number), name.to_owned(), serde_json::json!({}));
    let mut batch = note(1);
    batch.create(NewSession { id, name, definition, parent, created_at: AT }, like);
    batch
}

/// Fills a store: sessions 1 and 2; message 1 with key `k` and run 1 in the first.
fn filled(store: &Store) -> Driven {
    let (driven, mut batch) = Driven::on_demand(1, "first");
    batch.append(Driven::on_demand(2, "second").1);
    batch.steps.extend([queued(id(1), 1, Some("k")), decided(id(1), 1, 1)]);
    store.commit(batch).wait().unwrap();
    driven
}

/// Returns why a batch fails, whatever failed before it.
fn refused(store: &Store, mut batch: Batch) -> Arc<CommitError> {
    let before = store.position();
    batch.reloaded.extend([1, 2, 3, 9].map(id));
    let error = store.commit(batch).wait().unwrap_err();
    assert_eq!(store.position(), before, "{error}");
    error
}

fn what_is_there_already_is_not_made_again(ground: &Ground) {
    let store = ground.open();
    let driven = filled(&store);
    let rows = [
        child(1, "another", None, &driven.session),
        of(vec![queued(id(2), 1, None)]),
        of(vec![queued(id(1), 2, Some("k"))]),
        of(vec![decided(id(2), 1, 1)]),
    ];
    for batch in rows {
        let error = refused(&store, batch.clone());
        assert!(matches!(*error, CommitError::Contradiction { .. }), "{error}: {batch:?}");
        assert!(!error.is_storage());
    }
    // A key of one session is free in another, and a run that is known is not decided twice.
    let mut batch = of(vec![queued(id(2), 3, Some("k")), decided(id(1), 1, 9)]);
    batch.reloaded.extend([id(1), id(2)]);
    store.commit(batch).wait().unwrap();
}

fn what_belongs_to_no_session_is_refused(ground: &Ground) {
    let store = ground.open();
    let driven = filled(&store);
    for batch in [
        child(3, "third", Some(id(9)), &driven.session),
        of(vec![queued(id(9), 9, None)]),
        of(vec![decided(id(9), 1, 9)]),
    ] {
        let error = refused(&store, batch.clone());
        assert!(matches!(*error, CommitError::Contradiction { .. }), "{error}: {batch:?}");
    }
}

fn a_message_takes_no_step_that_its_state_does_not_allow(ground: &Ground) {
    let store = ground.open();
    filled(&store);
    let first = MessageId(1);
    let deny = |session, change: MessageChange| {
        let error = refused(&store, of(vec![message(session, change.clone())]));
        assert!(matches!(*error, CommitError::NoSuchMessage { .. }), "{error}: {change:?}");
    };
    let take = |change| {
        let mut batch = of(vec![message(id(1), change)]);
        batch.reloaded.extend([id(1), id(2)]);
        store.commit(batch).wait().unwrap();
    };
    deny(id(1), MessageChange::Taken { message: MessageId(9) });
    deny(id(2), MessageChange::Taken { message: first });
    deny(id(1), MessageChange::Retried { message: first, read: pinfold_core::inbox::Read::Maybe });
    take(MessageChange::Taken { message: first });
    deny(id(1), MessageChange::Taken { message: first });
    take(MessageChange::Done { message: first });
    deny(id(1), MessageChange::Done { message: first });
    deny(id(1), MessageChange::Taken { message: first });
    deny(id(1), MessageChange::Retried { message: first, read: pinfold_core::inbox::Read::Maybe });
}

fn a_message_says_who_sent_it_and_where_its_turn_stands(ground: &Ground) {
    let store = ground.open();
    filled(&store);
    let place = TurnPlace { run: RunNumber(1), from: 7, to: None };
    let change = MessageChange::Taken { message: MessageId(1) };
    let step = Step::Message {
        session: id(1),
        at: AT,
        change,
        words: None,
        told: AnswerTold::default(),
        from: None,
        place: Some(place),
    };
    store.commit(of(vec![step])).wait().unwrap();
    let stored = store.reader().unwrap().message(MessageId(1)).unwrap().unwrap();
    assert_eq!((stored.from.as_deref(), stored.place), (Some("other"), Some(place)));
}

fn inbox(reader: &Reader) -> Vec<u128> {
    let rows = reader.messages(id(1), None, Take::All).unwrap();
    rows.into_iter().map(|row| MessageId::from(row.id).0).collect()
}

fn a_batch_that_fails_late_leaves_everything_as_it_was(ground: &Ground) {
    let store = ground.open();
    let driven = filled(&store);
    let reader = store.reader().unwrap();
    let look = || {
        let runs = reader.runs(id(1), Take::All).unwrap();
        let events = reader.events(&pinfold_store::EventQuery::default()).unwrap();
        let past = (reader.untold().unwrap(), reader.complete_from().unwrap());
        (reader.sessions().unwrap(), inbox(&reader), runs, events, reader.meta().unwrap(), past)
    };
    let before = look();
    let mut batch = child(3, "third", Some(id(1)), &driven.session);
    batch.steps.push(queued(id(1), 7, Some("new")));
    batch.steps.push(message(id(1), MessageChange::Taken { message: MessageId(1) }));
    batch.steps.push(decided(id(1), 2, 2));
    batch.daemon_started(5, "boot");
    batch.prune(prune(Old::Events { keep: std::num::NonZeroU64::MIN }, Wall(i64::MAX)));
    batch.prune(prune(Old::Messages { session: id(1), ids: vec![Ulid::from(MessageId(1))] }, Wall(i64::MAX)));
    batch.told(AT, pinfold_store::Tally { events: 1, ..Default::default() });
    batch.remove(id(1));
    batch.remove(id(9));
    let error = refused(&store, batch);
    assert!(matches!(*error, CommitError::NoSuchSession { .. }), "{error}");
    assert_eq!(look(), before);
    assert_eq!(reader.message_by_key(id(1), "new").unwrap(), None);
    assert_eq!(reader.run(RunId(Ulid::new(1, 2))).unwrap(), None);
}

fn a_child_outlives_its_parent(ground: &Ground) {
    let store = ground.open();
    let driven = filled(&store);
    store.commit(child(3, "third", Some(id(1)), &driven.session)).wait().unwrap();
    let parent = |reader: &Reader| crate::home::whole(reader.session(id(3)).unwrap().unwrap()).parent;
    let reader = store.reader().unwrap();
    assert_eq!(parent(&reader), Some(id(1)));
    let mut batch = Batch::new();
    batch.remove(id(1));
    store.commit(batch).wait().unwrap();
    assert_eq!(parent(&reader), None);
}

crate::conformance::on_every_back_end! {
    what_is_there_already_is_not_made_again,
    what_belongs_to_no_session_is_refused,
    a_message_takes_no_step_that_its_state_does_not_allow,
    a_message_says_who_sent_it_and_where_its_turn_stands,
    a_batch_that_fails_late_leaves_everything_as_it_was,
    a_child_outlives_its_parent,
}
