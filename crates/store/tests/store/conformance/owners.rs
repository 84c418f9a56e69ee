//! Ownership, names and inbox, as every implementation of the port must provide them.
//!
//! With one host an implementation is made of a store, so it is tested on each back-end.

use crate::conformance::Ground;
use crate::driven::{Driven, answer, text};
use crate::home::{audit, id, note};
use pinfold_core::event::TurnEnd;
use pinfold_core::{Ask, Event, MessageId};
use pinfold_store::{
    Batch, CommitError, Committed, EventQuery, MessageState, Outcome, Owner, Owners, Promise, Put, SessionId,
    Solo, Store,
};
use std::rc::Rc;
use std::sync::mpsc::channel;

/// Creates a daemon of this generation, which has announced itself.
fn daemon(store: &Store, generation: u64) -> (Solo, Owner) {
    let mut batch = Batch::new();
    batch.daemon_started(generation, "boot");
    batch.event(audit("daemon_started", 1, &[]));
    store.commit(batch).wait().unwrap();
    let solo = Solo::new(store, Rc::new(store.reader().unwrap()), generation);
    let owner = solo.here();
    (solo, owner)
}

fn put(owners: &dyn Owners, seen: &Owner, batch: Batch) -> Outcome {
    let (promise, ticket) = Promise::with_ticket();
    owners.put(Put { seen: seen.clone(), batch }, promise);
    ticket.wait()
}

/// Returns the message that the key `k` of a session stands for.
fn known(owners: &dyn Owners, session: SessionId) -> Option<MessageId> {
    owners.known(session, "k").unwrap()
}

fn a_session_belongs_to_who_created_it(ground: &Ground) {
    let store = ground.open();
    let (owners, here) = daemon(&store, 1);
    assert_eq!(owners.owner(id(1)).unwrap(), None, "nobody has what is not there");
    put(&owners, &here, Driven::on_demand(1, "api").1).unwrap();
    assert_eq!(owners.owner(id(1)).unwrap(), Some(here));
}

fn a_new_owner_has_a_greater_fence_and_the_one_before_is_refused(ground: &Ground) {
    let store = ground.open();
    let (first, before) = daemon(&store, 1);
    let (mut driven, create) = Driven::on_demand(1, "api");
    put(&first, &before, create).unwrap();
    let (second, after) = daemon(&store, 2);
    assert!(after.fence > before.fence && after.incarnation > before.incarnation);
    assert_eq!(first.owner(driven.id).unwrap(), Some(after.clone()), "also the one before can see it");

    let late = driven.send(MessageId(1), None);
    let refused = put(&first, &before, late.clone()).unwrap_err();
    assert!(matches!(*refused, CommitError::StaleGeneration { wanted: 1, found: 2 }), "{refused}");
    assert_eq!(second.message(MessageId(1)).unwrap(), None, "nothing of it landed");
    let mut again = late;
    again.reloaded(driven.id);
    put(&second, &after, again).unwrap();
}

fn a_name_is_taken_by_one_session_until_it_is_archived(ground: &Ground) {
    let store = ground.open();
    let (owners, here) = daemon(&store, 1);
    assert_eq!(owners.named("api").unwrap(), None);
    let (mut first, create) = Driven::on_demand(1, "api");
    put(&owners, &here, create).unwrap();
    assert_eq!(owners.named("api").unwrap(), Some(first.id));
    let prefix = &first.id.to_string()[..20];
    assert_eq!(owners.named(prefix).unwrap(), None, "the beginning of an id is not a name");

    let taken = put(&owners, &here, Driven::on_demand(2, "api").1).unwrap_err();
    assert!(matches!(&*taken, CommitError::NameTaken { name } if name == "api"), "{taken}");
    assert_eq!(owners.owner(id(2)).unwrap(), None, "without its name there is no session");

    put(&owners, &here, first.handle(&Event::Asked(Ask::Archive))).unwrap();
    assert_eq!(owners.named("api").unwrap(), None);
    put(&owners, &here, Driven::on_demand(3, "api").1).unwrap();
    assert_eq!(owners.named("api").unwrap(), Some(id(3)));
}

fn of_two_who_want_a_name_at_once_one_gets_it(ground: &Ground) {
    let store = ground.open();
    let (owners, here) = daemon(&store, 1);
    let (told, tell) = channel();
    for number in 1..=4 {
        let told = told.clone();
        let promise = Promise::new(move |outcome: Outcome| told.send((number, outcome)).unwrap());
        owners.put(Put { seen: here.clone(), batch: Driven::on_demand(number, "api").1 }, promise);
    }
    let outcomes: Vec<(u64, Outcome)> = tell.iter().take(4).collect();
    let numbers: Vec<u64> = outcomes.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [1, 2, 3, 4], "in the order in which they were given");
    assert!(outcomes[0].1.is_ok() && outcomes[1..].iter().all(|(_, outcome)| outcome.is_err()));
    assert_eq!(owners.named("api").unwrap(), Some(id(1)));
}

fn a_key_stands_for_one_message_of_a_session_whatever_becomes_of_it(ground: &Ground) {
    let store = ground.open();
    let (owners, here) = daemon(&store, 1);
    let (mut driven, create) = Driven::on_demand(1, "api");
    put(&owners, &here, create).unwrap();
    assert_eq!(known(&owners, driven.id), None);
    put(&owners, &here, driven.send(MessageId(1), Some("k"))).unwrap();
    assert_eq!(known(&owners, driven.id), Some(MessageId(1)));
    assert_eq!(known(&owners, id(2)), None, "of another session");

    // A writer that has not read that the key is taken is refused where the write lands.
    driven.keys.clear();
    let mut blind = driven.session.clone();
    let event =
        pinfold_core::event::MessageEvent::Sent { message: MessageId(2), key: Some("k".into()), known: None };
    let decision = blind.handle(&Event::Message(event), driven.now);
    let facts = pinfold_store::Facts { texts: [(MessageId(2), "t".into())].into(), ..Default::default() };
    let mut batch = Batch::new();
    let (id, at) = (driven.id, driven.now.wall);
    batch.decided(pinfold_store::Decided { id, session: &blind, decision: &decision, at }, &facts);
    let refused = put(&owners, &here, batch).unwrap_err();
    assert!(matches!(*refused, CommitError::Contradiction { .. }), "{refused}");
    assert_eq!((known(&owners, id), owners.message(MessageId(2)).unwrap()), (Some(MessageId(1)), None));
}

fn a_message_is_sent_taken_and_done_in_order_and_once(ground: &Ground) {
    let store = ground.open();
    let (owners, here) = daemon(&store, 1);
    let (mut driven, create) = Driven::on_demand(1, "api");
    put(&owners, &here, create).unwrap();
    let message = MessageId(7);
    let read = || owners.message(message).unwrap().unwrap();
    put(&owners, &here, driven.send(message, None)).unwrap();
    assert_eq!((read().state, read().text), (MessageState::Queued, text(message)));
    assert_eq!(owners.waiting_bytes(driven.id).unwrap(), text(message).len() as u64);
    put(&owners, &here, driven.start()).unwrap();
    put(&owners, &here, driven.take(message)).unwrap();
    assert_eq!((read().state, read().tries), (MessageState::Delivered, 1));
    let done = driven.end_turn(message, TurnEnd::Answered);
    put(&owners, &here, done.clone()).unwrap();
    assert_eq!((read().state, read().answer), (MessageState::Done, Some(answer(message))));
    assert_eq!(owners.waiting_bytes(driven.id).unwrap(), 0);
    let twice = put(&owners, &here, done).unwrap_err();
    assert!(matches!(*twice, CommitError::NoSuchMessage { .. }), "{twice}");
}

fn what_the_host_keeps_is_there_with_it_or_not_at_all(ground: &Ground) {
    let store = ground.open();
    let (owners, here) = daemon(&store, 1);
    let (_, mut create) = Driven::on_demand(1, "api");
    create.append(note(5));
    assert_eq!(put(&owners, &here, create).unwrap().seqs, 2..4, "session_created and the note");
    let (_, mut taken) = Driven::on_demand(2, "api");
    taken.append(note(6));
    put(&owners, &here, taken).unwrap_err();
    let events = store.reader().unwrap().events(&EventQuery::default()).unwrap();
    assert_eq!(events.len(), 3);
}

fn a_put_of_nothing_is_answered_after_those_before_it(ground: &Ground) {
    let store = ground.open();
    let (owners, here) = daemon(&store, 1);
    let before = store.position();
    assert_eq!(put(&owners, &here, Batch::new()).unwrap(), Committed::default());
    assert_eq!(store.position(), before, "and nothing is written for it");
}

crate::conformance::on_every_back_end! {
    a_session_belongs_to_who_created_it,
    a_new_owner_has_a_greater_fence_and_the_one_before_is_refused,
    a_name_is_taken_by_one_session_until_it_is_archived,
    of_two_who_want_a_name_at_once_one_gets_it,
    a_key_stands_for_one_message_of_a_session_whatever_becomes_of_it,
    a_message_is_sent_taken_and_done_in_order_and_once,
    what_the_host_keeps_is_there_with_it_or_not_at_all,
    a_put_of_nothing_is_answered_after_those_before_it,
}
