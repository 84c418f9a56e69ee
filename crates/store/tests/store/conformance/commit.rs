//! Batches: all or nothing, in order, durable when the ticket says so.

use crate::conformance::Ground;
use crate::driven::{Driven, answer, text};
use crate::home::{audit, durable, id, note, whole};
use pinfold_core::event::{MessageEvent, TurnEnd};
use pinfold_core::{Ask, Event, MessageId, RunNumber};
use pinfold_store::{Batch, CommitError, EventQuery, MessageState, Outcome, Store, StorePosition, Take};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Keeps the writer busy until it is dropped, so that batches form a group. A back-end may write on the
/// thread of the committer, so this one has its own.
fn hold(store: &Store) -> Sender<()> {
    let (here, arrived) = channel::<()>();
    let (held, hold) = channel::<()>();
    let store = store.clone();
    thread::spawn(move || {
        store.commit_then(Batch::new(), move |_| {
            drop(here);
            hold.recv().unwrap_err();
        });
    });
    arrived.recv().unwrap_err();
    held
}

fn queue(store: &Store, batches: Vec<Batch>) -> Receiver<Outcome> {
    let (told, tell) = channel();
    for batch in batches {
        let told = told.clone();
        store.commit_then(batch, move |outcome| told.send(outcome).unwrap());
    }
    tell
}

fn numbers(store: &Store) -> Vec<(u64, u64)> {
    let events = store.reader().unwrap().events(&EventQuery::default()).unwrap();
    events.iter().map(|event| (event.seq, event.data["number"].as_u64().unwrap())).collect()
}

fn a_batch_is_there_when_its_ticket_says_so(ground: &Ground) {
    let store = ground.open();
    let (driven, batch) = Driven::on_demand(1, "api");
    let committed = store.commit(batch).wait().unwrap();
    assert_eq!(committed.seqs, 1..2);
    let stored = whole(store.reader().unwrap().session(driven.id).unwrap().unwrap());
    assert_eq!(stored.session, durable(&driven.session));
    assert_eq!((stored.name.as_str(), &stored.definition["env"]["K"]), ("api", &"ü\n".into()));
    assert_eq!((stored.parent, stored.archived_at, stored.position), (None, None, 1));
}

fn the_batches_of_a_group_keep_their_order_and_their_numbers(ground: &Ground) {
    let store = ground.open();
    let held = hold(&store);
    let outcomes = queue(&store, (0..100).map(note).collect());
    drop(held);
    for seq in 1..=100 {
        assert_eq!(outcomes.recv().unwrap().unwrap().seqs, seq..seq + 1);
    }
    assert_eq!(numbers(&store), (0..100).map(|number| (number + 1, number)).collect::<Vec<_>>());
}

fn one_bad_batch_fails_alone_and_leaves_nothing_behind(ground: &Ground) {
    let store = ground.open();
    let mut bad = note(2);
    bad.remove(id(9));
    let held = hold(&store);
    let outcomes = queue(&store, vec![note(1), bad, note(3)]);
    drop(held);
    let outcomes: Vec<Outcome> = outcomes.iter().take(3).collect();
    assert_eq!(outcomes[0].as_ref().unwrap().seqs, 1..2);
    assert!(
        matches!(**outcomes[1].as_ref().unwrap_err(), CommitError::NoSuchSession { id: missing } if missing == id(9))
    );
    assert_eq!(outcomes[2].as_ref().unwrap().seqs, 2..3);
    assert_eq!(numbers(&store), [(1, 1), (2, 3)]);
}

fn an_empty_batch_is_durable_behind_those_before_it(ground: &Ground) {
    let store = ground.open();
    let held = hold(&store);
    let outcomes = queue(&store, vec![note(1), Batch::new()]);
    drop(held);
    assert_eq!(outcomes.recv().unwrap().unwrap().seqs, 1..2);
    assert!(outcomes.recv().unwrap().unwrap().seqs.is_empty());
}

fn what_builds_on_a_failed_batch_is_refused_until_the_session_is_loaded_again(ground: &Ground) {
    let store = ground.open();
    let (mut driven, create) = Driven::on_demand(1, "api");
    store.commit(create).wait().unwrap();
    let mut bad = driven.send(MessageId(1), None);
    bad.remove(id(9));
    let next = driven.send(MessageId(2), None);

    let held = hold(&store);
    let outcomes = queue(&store, vec![bad, next, note(1)]);
    drop(held);
    assert!(matches!(*outcomes.recv().unwrap().unwrap_err(), CommitError::NoSuchSession { .. }));
    let refused = outcomes.recv().unwrap().unwrap_err();
    assert!(matches!(*refused, CommitError::BuildsOnFailed { id } if id == driven.id), "{refused}");
    outcomes.recv().unwrap().unwrap();

    driven.session = whole(store.reader().unwrap().session(driven.id).unwrap().unwrap()).session;
    assert_eq!(driven.session.inbox().queued(), 0);
    let mut again = driven.send(MessageId(3), None);
    again.reloaded(driven.id);
    store.commit(again).wait().unwrap();
    store.commit(driven.send(MessageId(4), None)).wait().unwrap();
}

fn a_name_is_unique_among_sessions_that_are_not_archived(ground: &Ground) {
    let store = ground.open();
    let (mut first, create) = Driven::on_demand(1, "api");
    store.commit(create).wait().unwrap();

    let (_, create) = Driven::on_demand(2, "api");
    let taken = store.commit(create).wait().unwrap_err();
    assert!(matches!(&*taken, CommitError::NameTaken { name } if name == "api"), "{taken}");

    store.commit(first.handle(&Event::Asked(Ask::Archive))).wait().unwrap();
    let (_, create) = Driven::on_demand(3, "api");
    store.commit(create).wait().unwrap();
    let taken = store.commit(first.handle(&Event::Asked(Ask::Restore))).wait().unwrap_err();
    assert!(matches!(&*taken, CommitError::NameTaken { name } if name == "api"), "{taken}");
    let stored = whole(store.reader().unwrap().session(first.id).unwrap().unwrap());
    assert!(stored.archived_at.is_some(), "the archive keeps what cannot be restored");
}

fn a_message_follows_its_turn_to_its_answer(ground: &Ground) {
    let store = ground.open();
    let (mut driven, mut batch) = Driven::on_demand(1, "api");
    let message = MessageId(u128::MAX / 3);
    batch.append(driven.send(message, Some("k")));
    store.commit(batch).wait().unwrap();
    let reader = store.reader().unwrap();
    let stored = || reader.message(message).unwrap().unwrap();
    assert_eq!((stored().state, stored().tries, stored().text), (MessageState::Queued, 0, text(message)));
    assert_eq!(reader.message_by_key(driven.id, "k").unwrap(), Some(stored()));

    store.commit(driven.start()).wait().unwrap();
    assert_eq!(stored().state, MessageState::Queued, "handed over is not yet taken");
    store.commit(driven.take(message)).wait().unwrap();
    assert_eq!((stored().state, stored().tries), (MessageState::Delivered, 1));
    store.commit(driven.end_turn(message, TurnEnd::Answered)).wait().unwrap();
    assert_eq!((stored().state, stored().answer), (MessageState::Done, Some(answer(message))));
    assert_eq!(stored().done_at, Some(driven.now.wall));
}

fn a_failed_message_says_why_and_can_be_retried(ground: &Ground) {
    let store = ground.open();
    let (mut driven, mut batch) = Driven::on_demand(1, "api");
    let message = MessageId(7);
    batch.append(driven.send(message, None));
    batch.append(driven.start());
    batch.append(driven.take(message));
    batch.append(driven.end_turn(message, TurnEnd::Failed));
    store.commit(batch).wait().unwrap();
    let reader = store.reader().unwrap();
    let stored = || reader.message(message).unwrap().unwrap();
    assert_eq!((stored().state, stored().failure.as_deref()), (MessageState::Failed, Some("turn_failed")));

    store
        .commit(driven.handle(&Event::Message(MessageEvent::Retried {
            message,
            read: pinfold_core::inbox::Read::Maybe,
        })))
        .wait()
        .unwrap();
    assert_eq!((stored().state, stored().tries, stored().failure), (MessageState::Queued, 0, None));
    assert_eq!(stored().done_at, None);
}

fn texts_come_back_as_they_were(ground: &Ground) {
    let store = ground.open();
    let (driven, batch) = Driven::on_demand(1, "api");
    store.commit(batch).wait().unwrap();
    for (number, text) in ["", "-", "--help", "a\nb\\n\"'", "ü€😀", &"x".repeat(1 << 20)].iter().enumerate()
    {
        let message = MessageId(number as u128);
        let mut session = driven.session.clone();
        let sent = Event::Message(MessageEvent::Sent { message, key: None, known: None });
        let decision = session.handle(&sent, driven.now);
        let mut batch = Batch::new();
        let facts = pinfold_store::Facts {
            texts: [(message, (*text).to_owned())].into(),
            run_ids: [(RunNumber(1), driven.run_id(RunNumber(1)))].into(),
            ..Default::default()
        };
        let (id, at) = (driven.id, driven.now.wall);
        batch.decided(pinfold_store::Decided { id, session: &session, decision: &decision, at }, &facts);
        store.commit(batch).wait().unwrap();
        assert_eq!(store.reader().unwrap().message(message).unwrap().unwrap().text, *text);
    }
}

fn what_the_core_cannot_carry_must_be_given(ground: &Ground) {
    let store = ground.open();
    let (mut driven, batch) = Driven::on_demand(1, "api");
    store.commit(batch).wait().unwrap();
    let before = driven.session.clone();

    let mut decide = |event: &Event, facts: &pinfold_store::Facts| {
        driven.session = before.clone();
        let decision = driven.session.handle(event, driven.now);
        let (id, at) = (driven.id, driven.now.wall);
        let mut batch = Batch::new();
        batch.reloaded(id);
        batch
            .decided(pinfold_store::Decided { id, session: &driven.session, decision: &decision, at }, facts);
        store.commit(batch).wait().unwrap_err()
    };
    let sent = Event::Message(MessageEvent::Sent { message: MessageId(1), key: None, known: None });
    let textless = decide(&sent, &pinfold_store::Facts::default());
    assert!(matches!(*textless, CommitError::MessageWithoutText { .. }), "{textless}");
    let nameless = decide(&Event::Asked(Ask::Start), &pinfold_store::Facts::default());
    assert!(matches!(*nameless, CommitError::RunWithoutId { run: RunNumber(1), .. }), "{nameless}");
}

fn a_removed_session_leaves_only_its_events(ground: &Ground) {
    let store = ground.open();
    let (mut driven, mut batch) = Driven::on_demand(1, "api");
    batch.append(driven.send(MessageId(1), None));
    batch.append(driven.start());
    store.commit(batch).wait().unwrap();
    let reader = store.reader().unwrap();
    let before = reader.events(&EventQuery::default()).unwrap();

    let mut batch = Batch::new();
    batch.remove(driven.id);
    store.commit(batch).wait().unwrap();
    assert_eq!(reader.sessions().unwrap(), []);
    assert_eq!(reader.messages(driven.id, None, Take::All).unwrap(), []);
    assert_eq!(reader.runs(driven.id, Take::All).unwrap(), []);
    let query = EventQuery { session: Some(driven.id), ..EventQuery::default() };
    assert_eq!(reader.events(&query).unwrap(), before);
    assert!(before.iter().all(|event| event.name.as_deref() == Some("api")));
}

fn a_definition_can_be_replaced(ground: &Ground) {
    let store = ground.open();
    let (driven, mut batch) = Driven::on_demand(1, "api");
    batch.define(driven.id, &serde_json::json!({ "command": ["other"] }));
    store.commit(batch).wait().unwrap();
    let stored = whole(store.reader().unwrap().session(driven.id).unwrap().unwrap());
    assert_eq!(stored.definition, serde_json::json!({ "command": ["other"] }));
}

fn a_generation_must_be_later_than_the_one_before(ground: &Ground) {
    let store = ground.open();
    let reader = store.reader().unwrap();
    assert_eq!(reader.meta().unwrap().generation, 0);
    let start = |generation, boot: &str| {
        let mut batch = Batch::new();
        batch.daemon_started(generation, boot);
        batch.event(audit("daemon_started", 1, &[]));
        store.commit(batch).wait()
    };
    start(1, "a").unwrap();
    start(2, "b").unwrap();
    let stale = start(2, "c").unwrap_err();
    assert!(matches!(*stale, CommitError::StaleGeneration { wanted: 2, found: 2 }), "{stale}");
    let meta = reader.meta().unwrap();
    assert_eq!((meta.generation, meta.boot_id.as_deref()), (2, Some("b")));
    assert_eq!(reader.max_seq().unwrap(), 2, "the event of a refused start is not there");
}

fn what_is_acknowledged_is_how_far_it_is(ground: &Ground) {
    let store = ground.open();
    assert_eq!(store.position(), StorePosition::default());
    store.commit(note(1)).wait().unwrap();
    let first = store.position();
    assert_eq!((first.generation, first.seq, first.steps), (0, 1, 0));
    let (driven, create) = Driven::on_demand(1, "api");
    let mut started = create;
    started.daemon_started(7, "boot");
    store.commit(started).wait().unwrap();
    assert_eq!((store.position().generation, store.position().seq), (7, 2));
    let mut silent = Batch::new();
    silent.define(driven.id, &serde_json::json!({}));
    let before = store.position();
    store.commit(silent).wait().unwrap();
    assert!(before.is_behind(&store.position()), "a batch without an event counts too");
    let mut bad = note(2);
    bad.remove(id(9));
    let before = store.position();
    store.commit(bad).wait().unwrap_err();
    assert_eq!(store.position(), before, "what failed does not count");
}

fn a_callback_that_panics_harms_no_other(ground: &Ground) {
    let store = ground.open();
    store.commit_then(note(1), |_| panic!("a test wants this"));
    assert_eq!(store.commit(note(2)).wait().unwrap().seqs, 2..3);
}

fn a_store_that_its_own_callback_drops_does_not_wait_for_itself(ground: &Ground) {
    let store = ground.open();
    let (told, tell) = channel();
    let last = store.clone();
    store.commit_then(note(1), move |_| {
        drop(last);
        told.send(()).unwrap();
    });
    drop(store);
    tell.recv().unwrap();
}

fn many_threads_commit_and_each_hears_of_its_own(ground: &Ground) {
    let store = ground.open();
    let threads: Vec<_> = (0..8)
        .map(|first| {
            let store = store.clone();
            thread::spawn(move || {
                for number in 0..25 {
                    let number = 100 * first + number;
                    let seq = store.commit(note(number)).wait().unwrap().seqs.start;
                    let query = EventQuery { after: seq - 1, until: Some(seq), ..EventQuery::default() };
                    let events = store.reader().unwrap().events(&query).unwrap();
                    assert_eq!(events[0].data["number"].as_u64(), Some(number));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let seqs: Vec<u64> = numbers(&store).into_iter().map(|(seq, _)| seq).collect();
    assert_eq!(seqs, (1..=200).collect::<Vec<_>>());
}

crate::conformance::on_every_back_end! {
    what_is_acknowledged_is_how_far_it_is,
    a_callback_that_panics_harms_no_other,
    a_store_that_its_own_callback_drops_does_not_wait_for_itself,
    many_threads_commit_and_each_hears_of_its_own,
    a_batch_is_there_when_its_ticket_says_so,
    the_batches_of_a_group_keep_their_order_and_their_numbers,
    one_bad_batch_fails_alone_and_leaves_nothing_behind,
    an_empty_batch_is_durable_behind_those_before_it,
    what_builds_on_a_failed_batch_is_refused_until_the_session_is_loaded_again,
    a_name_is_unique_among_sessions_that_are_not_archived,
    a_message_follows_its_turn_to_its_answer,
    a_failed_message_says_why_and_can_be_retried,
    texts_come_back_as_they_were,
    what_the_core_cannot_carry_must_be_given,
    a_removed_session_leaves_only_its_events,
    a_definition_can_be_replaced,
    a_generation_must_be_later_than_the_one_before,
}
