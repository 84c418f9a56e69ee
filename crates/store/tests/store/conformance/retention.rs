//! What is pruned, and what never is.

use crate::conformance::Ground;
use crate::driven::Driven;
use crate::home::{audit, id, note};
use pinfold_core::event::{Ask, MessageEvent, TurnEnd};
use pinfold_core::inbox::MessageChange;
use pinfold_core::life::Purpose;
use pinfold_core::{Event, Exit, MessageId, RunNumber, Wall};
use pinfold_store::{
    AnswerTold, Batch, CommitError, Committed, CompleteFrom, EventQuery, KEPT_EVENTS, KEPT_RUNS,
    MessagePlace, Old, Prune, Reader, Reason, RunId, RunStep, SessionId, SpentKey, Step, Store, Sweep,
    SweepLimits, Take, Tally, Ulid, Untold,
};
use std::num::NonZeroU64;
use std::time::Duration;

const FOR_EVER: Wall = Wall(i64::MAX);
const ALL_EVENTS: Old = Old::Events { keep: NonZeroU64::MIN };

pub(crate) fn prune(old: Old, before: Wall) -> Prune {
    Prune { old, before, reason: Reason::Age, within: Duration::MAX, at_least: 0 }
}

fn committed(store: &Store, prune: Prune) -> Committed {
    let mut batch = Batch::new();
    batch.prune(prune);
    store.commit(batch).wait().unwrap()
}

fn pruned(store: &Store, old: Old, before: Wall) -> u64 {
    committed(store, prune(old, before)).pruned.rows()
}

fn runs(reader: &Reader, session: SessionId) -> Vec<u64> {
    reader.runs(session, Take::All).unwrap().iter().map(|run| run.number.0).collect()
}

fn messages(reader: &Reader, session: SessionId) -> Vec<(u128, &'static str)> {
    let rows = reader.messages(session, None, Take::All).unwrap();
    rows.iter().map(|row| (MessageId::from(row.id).0, row.state.word())).collect()
}

fn seqs(reader: &Reader, session: Option<SessionId>) -> Vec<u64> {
    let query = EventQuery { session, ..EventQuery::default() };
    reader.events(&query).unwrap().iter().map(|event| event.seq).collect()
}

/// Creates events of a session, each a millisecond after the one before.
fn told_of(session: SessionId, times: std::ops::Range<i64>) -> Batch {
    let mut batch = Batch::new();
    for at in times {
        batch.event(pinfold_store::AuditEvent { session: Some(session), ..audit("note", at, &[]) });
    }
    batch
}

fn prune_all(store: &Store, old: &Old, before: Wall) -> u64 {
    let mut all = 0;
    loop {
        let Committed { pruned, more, .. } = committed(store, prune(old.clone(), before));
        all += pruned.rows();
        if !more {
            return all;
        }
    }
}

fn old_runs_go_from_the_first_on_and_the_newest_stay(ground: &Ground) {
    let store = ground.open();
    let mut batch = Driven::on_demand(1, "api").1;
    let ends: Vec<Wall> = (1..=13).map(Wall).collect();
    for number in 1..=KEPT_RUNS + 4 {
        let (session, run, at) = (id(1), RunNumber(number), Wall(number.cast_signed()));
        let (purpose, id) = (Purpose::Headless, Some(RunId(Ulid::new(1, u128::from(number)))));
        batch.steps.push(Step::Run { session, at, run: RunStep::Decided { run, purpose, id } });
        if number < KEPT_RUNS + 4 {
            batch.steps.push(Step::Run { session, at, run: RunStep::Settled { run } });
        }
    }
    store.commit(batch).wait().unwrap();
    let (reader, of) = (store.reader().unwrap(), || Old::Runs { session: id(1) });
    assert_eq!(runs(&reader, id(1)), (1..=14).collect::<Vec<_>>());
    assert_eq!(reader.with_old_runs(ends[0]).unwrap(), [], "none had ended before the first");
    assert_eq!(reader.with_old_runs(ends[2]).unwrap(), [id(1)]);
    assert_eq!(pruned(&store, of(), ends[2]), 2);
    assert_eq!(runs(&reader, id(1)), (3..=14).collect::<Vec<_>>());
    assert_eq!(pruned(&store, of(), FOR_EVER), 2);
    assert_eq!(runs(&reader, id(1)), (5..=14).collect::<Vec<_>>(), "ten, with the one that lives");
    assert_eq!(reader.with_old_runs(FOR_EVER).unwrap(), [], "no more than stay");
}

/// Creates two messages, one done and one that waits, in a session that may then be archived.
fn chat(number: u64, name: &str, archived: bool) -> Batch {
    let (mut driven, mut batch) = Driven::on_demand(number, name);
    let message = |n: u64| MessageId(u128::from(100 * number + n));
    batch.append(driven.send(message(1), Some("k")));
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

fn every_message(number: u64) -> Old {
    let ids = (1..=3).map(|n| Ulid::from(MessageId(u128::from(100 * number + n)))).collect();
    Old::Messages { session: id(number), ids }
}

fn only_messages_that_are_done_go(ground: &Ground) {
    let store = ground.open();
    store.commit(chat(1, "api", false)).wait().unwrap();
    let reader = store.reader().unwrap();
    assert_eq!(messages(&reader, id(1)), [(101, "done"), (102, "queued"), (103, "failed")]);
    assert_eq!(reader.with_old_messages(FOR_EVER).unwrap(), [id(1)]);
    let old = reader.old_messages(id(1), FOR_EVER, MessagePlace::default(), 9).unwrap();
    assert_eq!((old.rows, old.next), (vec![Ulid::from(MessageId(101))], None));
    assert_eq!(pruned(&store, every_message(1), Wall(0)), 0);
    assert_eq!(pruned(&store, every_message(1), FOR_EVER), 1);
    assert_eq!(messages(&reader, id(1)), [(102, "queued"), (103, "failed")]);
    assert_eq!(reader.with_old_messages(FOR_EVER).unwrap(), []);
}

fn the_key_of_a_message_that_went_is_still_that_messages(ground: &Ground) {
    let store = ground.open();
    store.commit(chat(1, "api", false)).wait().unwrap();
    let reader = store.reader().unwrap();
    let known = reader.message_by_key(id(1), "k").unwrap().unwrap();
    assert_eq!(reader.spent_key(id(1), "k").unwrap(), None);
    pruned(&store, every_message(1), FOR_EVER);
    assert_eq!(reader.message_by_key(id(1), "k").unwrap(), None);
    let spent = SpentKey {
        key: "k".into(),
        message: known.id,
        enqueued_at: known.enqueued_at,
        done_at: known.done_at,
    };
    assert_eq!(reader.spent_key(id(1), "k").unwrap(), Some(spent));
    // The key is taken, whatever the writer had read.
    let change = MessageChange::Queued { message: MessageId(9), key: Some("k".to_owned()) };
    let again = Step::Message {
        session: id(1),
        at: Wall(1),
        change,
        words: Some("again".into()),
        told: AnswerTold::default(),
        from: None,
        place: None,
    };
    let mut batch = Batch::new();
    batch.steps.push(again);
    let error = store.commit(batch).wait().unwrap_err();
    assert!(matches!(*error, CommitError::Contradiction { .. }), "{error}");
    let mut batch = Batch::new();
    batch.reloaded(id(1));
    batch.remove(id(1));
    store.commit(batch).wait().unwrap();
    assert_eq!(reader.spent_key(id(1), "k").unwrap(), None, "it goes with its session");
}

fn nothing_of_an_archived_session_goes(ground: &Ground) {
    let store = ground.open();
    store.commit(chat(1, "api", true)).wait().unwrap();
    let reader = store.reader().unwrap();
    let before = (runs(&reader, id(1)), messages(&reader, id(1)));
    assert_eq!(reader.with_old_runs(FOR_EVER).unwrap(), []);
    assert_eq!(reader.with_old_messages(FOR_EVER).unwrap(), []);
    // Archived between the query and the batch.
    assert_eq!(pruned(&store, Old::Runs { session: id(1) }, FOR_EVER), 0);
    assert_eq!(pruned(&store, every_message(1), FOR_EVER), 0);
    assert_eq!((runs(&reader, id(1)), messages(&reader, id(1))), before);
}

fn the_newest_events_of_each_session_stay_and_it_is_said_from_where_on_all_are_there(ground: &Ground) {
    let store = ground.open();
    let [(_, busy), (_, quiet)] = [(1, "busy"), (2, "quiet")].map(|(n, name)| Driven::on_demand(n, name));
    store.commit(busy).wait().unwrap();
    store.commit(quiet).wait().unwrap();
    store.commit(told_of(id(2), 0..1)).wait().unwrap();
    store.commit(told_of(id(1), 0..700)).wait().unwrap();
    store.commit(note(9)).wait().unwrap();
    let reader = store.reader().unwrap();
    assert_eq!(reader.complete_from().unwrap().map(|from| from.seq), Some(1));
    // Of 704 events the newest is never pruned; two of `quiet` and 100 of `busy` stay.
    assert_eq!(prune_all(&store, &ALL_EVENTS, FOR_EVER), 703 - 102);
    assert_eq!(reader.complete_from().unwrap(), Some(CompleteFrom { seq: 704, at: Wall(9) }));
    assert_eq!(seqs(&reader, Some(id(2))), [2, 3]);
    assert_eq!(seqs(&reader, Some(id(1))), (604..=703).collect::<Vec<_>>());
    // Those that stayed are pruned once there are newer ones in their place.
    store.commit(told_of(id(1), 700..760)).wait().unwrap();
    store.commit(note(10)).wait().unwrap();
    assert_eq!(prune_all(&store, &ALL_EVENTS, FOR_EVER), 61);
    assert_eq!(seqs(&reader, Some(id(1))).len() as u64, KEPT_EVENTS);
    assert_eq!(seqs(&reader, Some(id(1)))[0], 664);
    assert_eq!(reader.max_seq().unwrap(), 765);
}

fn of_a_session_that_was_removed_nothing_stays_for_its_sake(ground: &Ground) {
    let store = ground.open();
    store.commit(Driven::on_demand(1, "kept").1).wait().unwrap();
    store.commit(Driven::on_demand(2, "passed").1).wait().unwrap();
    store.commit(Driven::on_demand(3, "later").1).wait().unwrap();
    let reader = store.reader().unwrap();
    assert_eq!(prune_all(&store, &ALL_EVENTS, FOR_EVER), 0);
    assert_eq!(seqs(&reader, None), [1, 2, 3]);
    // An event that was passed over goes with its session; one that was not goes when it is passed.
    for number in [2, 3] {
        let mut batch = Batch::new();
        batch.remove(id(number));
        store.commit(batch).wait().unwrap();
    }
    assert_eq!(seqs(&reader, None), [1, 3]);
    store.commit(note(1)).wait().unwrap();
    assert_eq!(prune_all(&store, &ALL_EVENTS, FOR_EVER), 1);
    assert_eq!(seqs(&reader, None), [1, 4]);
    assert_eq!(reader.untold().unwrap().tally.events, 2);
}

fn what_went_is_counted_until_it_is_told(ground: &Ground) {
    let store = ground.open();
    (1..=5).for_each(|number| drop(store.commit(note(number))));
    let reader = store.reader().unwrap();
    let kept = prune(Old::Events { keep: NonZeroU64::new(3).unwrap() }, FOR_EVER);
    committed(&store, kept.clone());
    let tally = Tally { events: 2, ..Tally::default() };
    assert_eq!(reader.untold().unwrap(), Untold { tally, told_at: None });
    store.commit(note(6)).wait().unwrap();
    committed(&store, Prune { reason: Reason::Size, ..kept });
    let tally = Tally { events: 3, by_size: true, ..Tally::default() };
    assert_eq!(reader.untold().unwrap(), Untold { tally, told_at: None });
    let mut batch = note(7);
    batch.told(Wall(77), tally);
    store.commit(batch).wait().unwrap();
    assert_eq!(reader.untold().unwrap(), Untold { tally: Tally::default(), told_at: Some(Wall(77)) });
}

fn what_was_forgotten_leaves_room(ground: &Ground) {
    let store = ground.open();
    let mut batch = Batch::new();
    (0..400).for_each(|n| batch.append(note(n)));
    store.commit(batch).wait().unwrap();
    let reader = store.reader().unwrap();
    let before = reader.bytes_used().unwrap();
    assert_eq!(pruned(&store, ALL_EVENTS, FOR_EVER), 399);
    let after = reader.bytes_used().unwrap();
    assert!(after < before, "{after} of {before} bytes are used");
    assert_eq!(reader.complete_from().unwrap(), Some(CompleteFrom { seq: 400, at: Wall(399) }));
}

/// Sweeps until nothing is left to do; returns how many batches that took.
fn sweep(store: &Store, limits: SweepLimits) -> u64 {
    let (reader, mut sweep) = (store.reader().unwrap(), Sweep::new(limits));
    let mut batches = 0;
    while let Some(batch) = sweep.next(&*reader).unwrap() {
        batches += 1;
        assert!(batches < 500, "{sweep:?}");
        sweep.done(&store.commit(batch).wait().unwrap());
    }
    batches
}

fn a_sweep_takes_what_its_limits_name_and_comes_to_an_end(ground: &Ground) {
    let store = ground.open();
    store.commit(chat(1, "api", false)).wait().unwrap();
    store.commit(chat(2, "old", true)).wait().unwrap();
    store.commit(told_of(id(1), 0..1_500)).wait().unwrap();
    assert_eq!(sweep(&store, SweepLimits::default()), 0, "without limits nothing is due");
    let before = Some(Wall(1_800_000_000_000));
    sweep(&store, SweepLimits { events: before, messages: before, ..SweepLimits::default() });
    let reader = store.reader().unwrap();
    assert_eq!(seqs(&reader, Some(id(1))).len() as u64, KEPT_EVENTS);
    assert_eq!(messages(&reader, id(1)), [(102, "queued"), (103, "failed")]);
    assert_eq!(messages(&reader, id(2)).len(), 3, "archived");
    assert_eq!(reader.untold().unwrap().tally.messages, 1);
}

fn past_its_size_a_sweep_takes_the_oldest_events_and_leaves_the_newest(ground: &Ground) {
    let store = ground.open();
    for part in 0..40 {
        let mut batch = Batch::new();
        (0..100)
            .for_each(|n| batch.event(audit("note", 100 * part + n, &[("word", "x".repeat(500).into())])));
        store.commit(batch).wait().unwrap();
    }
    let reader = store.reader().unwrap();
    let half = reader.bytes_used().unwrap() / 2;
    sweep(&store, SweepLimits { size: Some(half), ..SweepLimits::default() });
    assert!(reader.bytes_used().unwrap() <= half);
    let left = seqs(&reader, None).len();
    assert!((1_200..2_100).contains(&left), "{left}");
    assert!(reader.untold().unwrap().tally.by_size);
    // A limit that is too small for anything leaves the newest, and does not go on forever.
    sweep(&store, SweepLimits { size: Some(1), ..SweepLimits::default() });
    assert_eq!(seqs(&reader, None), (3_001..=4_000).collect::<Vec<_>>());
}

crate::conformance::on_every_back_end! {
    old_runs_go_from_the_first_on_and_the_newest_stay,
    only_messages_that_are_done_go,
    the_key_of_a_message_that_went_is_still_that_messages,
    nothing_of_an_archived_session_goes,
    the_newest_events_of_each_session_stay_and_it_is_said_from_where_on_all_are_there,
    of_a_session_that_was_removed_nothing_stays_for_its_sake,
    what_went_is_counted_until_it_is_told,
    what_was_forgotten_leaves_room,
    a_sweep_takes_what_its_limits_name_and_comes_to_an_end,
    past_its_size_a_sweep_takes_the_oldest_events_and_leaves_the_newest,
}
