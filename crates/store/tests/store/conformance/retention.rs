//! What is forgotten, and what never is.

use crate::conformance::Ground;
use crate::driven::Driven;
use crate::home::id;
use pinfold_core::event::{Ask, MessageEvent, TurnEnd};
use pinfold_core::{Event, Exit, MessageId, Mode, Spec, Wall};
use pinfold_store::{Batch, Reader, SessionId, Store, Take};

const FOR_EVER: Wall = Wall(i64::MAX);

fn pruned(store: &Store, add: impl FnOnce(&mut Batch)) -> u64 {
    let mut batch = Batch::new();
    add(&mut batch);
    store.commit(batch).wait().unwrap().pruned
}

fn runs(reader: &Reader, session: SessionId) -> Vec<u64> {
    reader.runs(session, Take::All).unwrap().iter().map(|run| run.number.0).collect()
}

fn messages(reader: &Reader, session: SessionId) -> Vec<(u128, &'static str)> {
    let rows = reader.messages(session, None, Take::All).unwrap();
    rows.iter().map(|row| (MessageId::from(row.id).0, row.state.word())).collect()
}

fn old_runs_go_from_the_first_on_and_the_newest_stays(ground: &Ground) {
    let store = ground.open();
    let (mut driven, mut batch) = Driven::new(1, "api", Spec::new(Mode::Always));
    let mut ends = Vec::new();
    for _ in 0..4 {
        batch.append(driven.start());
        batch.append(driven.exit(Exit::Code(0)));
        ends.push(driven.now.wall);
    }
    store.commit(batch).wait().unwrap();
    let reader = ground.reader();
    assert_eq!(runs(&reader, id(1)), [1, 2, 3, 4, 5]);
    assert_eq!(reader.with_old_runs(ends[0]).unwrap(), [], "none had ended before the first");
    assert_eq!(reader.with_old_runs(ends[2]).unwrap(), [id(1)]);
    assert_eq!(pruned(&store, |batch| batch.prune_runs(id(1), ends[2])), 2);
    assert_eq!(runs(&reader, id(1)), [3, 4, 5]);
    pruned(&store, |batch| batch.prune_runs(id(1), FOR_EVER));
    assert_eq!(runs(&reader, id(1)), [5], "the newest, which lives");
}

/// Two messages, one done and one that waits, in a session that may be archived then.
fn chat(number: u64, name: &str, archived: bool) -> Batch {
    let (mut driven, mut batch) = Driven::on_demand(number, name);
    let message = |n: u64| MessageId(u128::from(100 * number + n));
    batch.append(driven.send(message(1), None));
    batch.append(driven.start());
    batch.append(driven.take(message(1)));
    batch.append(driven.end_turn(message(1), TurnEnd::Answered));
    batch.append(driven.handle(&Event::Asked(Ask::Stop { grace: None })));
    batch.append(driven.exit(Exit::Code(0)));
    batch.append(driven.send(message(2), None));
    batch.append(driven.send(message(3), None));
    batch.append(driven.handle(&Event::Message(MessageEvent::Cancelled { message: message(3) })));
    if archived {
        batch.append(driven.handle(&Event::Asked(Ask::Archive)));
    }
    batch
}

fn only_messages_that_are_done_go(ground: &Ground) {
    let store = ground.open();
    store.commit(chat(1, "api", false)).wait().unwrap();
    let reader = ground.reader();
    assert_eq!(messages(&reader, id(1)), [(101, "done"), (102, "queued"), (103, "failed")]);
    assert_eq!(reader.with_old_messages(FOR_EVER).unwrap(), [id(1)]);
    assert_eq!(pruned(&store, |batch| batch.prune_messages(id(1), Wall(0))), 0);
    assert_eq!(pruned(&store, |batch| batch.prune_messages(id(1), FOR_EVER)), 1);
    assert_eq!(messages(&reader, id(1)), [(102, "queued"), (103, "failed")]);
    assert_eq!(reader.with_old_messages(FOR_EVER).unwrap(), []);
}

fn nothing_of_an_archived_session_goes(ground: &Ground) {
    let store = ground.open();
    store.commit(chat(1, "api", true)).wait().unwrap();
    let reader = ground.reader();
    let before = (runs(&reader, id(1)), messages(&reader, id(1)));
    assert_eq!(reader.with_old_runs(FOR_EVER).unwrap(), []);
    assert_eq!(reader.with_old_messages(FOR_EVER).unwrap(), []);
    // Archived between the look and the batch.
    assert_eq!(pruned(&store, |batch| batch.prune_runs(id(1), FOR_EVER)), 0);
    assert_eq!(pruned(&store, |batch| batch.prune_messages(id(1), FOR_EVER)), 0);
    assert_eq!((runs(&reader, id(1)), messages(&reader, id(1))), before);
}

fn what_was_forgotten_leaves_room(ground: &Ground) {
    let store = ground.open();
    let mut batch = Batch::new();
    (0..400).for_each(|n| batch.append(crate::home::note(n)));
    store.commit(batch).wait().unwrap();
    let reader = ground.reader();
    let before = reader.bytes_used().unwrap();
    let keep = std::num::NonZeroU64::MIN;
    assert_eq!(pruned(&store, |batch| batch.prune(pinfold_store::Prune { before: FOR_EVER, keep })), 399);
    let after = reader.bytes_used().unwrap();
    assert!(after < before, "{after} of {before} bytes are used");
    assert_eq!(reader.oldest_event().unwrap(), Some(Wall(399)));
}

crate::conformance::on_every_back_end! {
    old_runs_go_from_the_first_on_and_the_newest_stays,
    only_messages_that_are_done_go,
    nothing_of_an_archived_session_goes,
    what_was_forgotten_leaves_room,
}
