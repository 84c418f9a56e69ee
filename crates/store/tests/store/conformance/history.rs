//! Events and runs: the history that can be read afterwards.

use crate::conformance::Ground;
use crate::driven::Driven;
use crate::home::{audit, id, note};
use pinfold_core::event::{RunEvent, Shim};
use pinfold_core::life::HolderSeen;
use pinfold_core::{Ended, Event, EventKind, Exit, MessageId, Mode, RunNumber, Spec, Wall};
use pinfold_store::{Batch, Decided, EventQuery, Facts, Old, Prune, Reader, Reason, Store, Take};
use serde_json::{Value, json};
use std::num::NonZeroU64;
use std::time::Duration;

fn kinds(reader: &Reader, query: &EventQuery) -> Vec<String> {
    reader.events(query).unwrap().into_iter().map(|event| event.kind.to_string()).collect()
}

fn seqs(reader: &Reader, query: &EventQuery) -> Vec<u64> {
    reader.events(query).unwrap().iter().map(|event| event.seq).collect()
}

fn an_exit_is_told_with_everything_that_the_contract_names(ground: &Ground) {
    let store = ground.open();
    let (mut driven, mut batch) = Driven::new(1, "api", Spec::new(Mode::Always));
    batch.append(driven.start());
    let first = driven.run_id(RunNumber(1)).to_string();
    batch.append(driven.exit(Exit::Code(3)));
    store.commit(batch).wait().unwrap();

    let events = store.reader().unwrap().events(&EventQuery::default()).unwrap();
    let exited = events.iter().find(|event| event.kind == EventKind::RunExited).unwrap();
    assert_eq!((exited.name.as_deref(), exited.session), (Some("api"), Some(driven.id)));
    assert_eq!(exited.run, Some(first));
    assert_eq!(
        (exited.at, exited.why.as_str()),
        (driven.now.wall, "it exited with 3 (crash); the next run starts at once")
    );
    let fields = json!({ "code": 3, "signal": null, "end": "code", "verdict": "crash", "uptime_ms": 1500,
                         "crashes": 1, "forced": false, "output": ["last", "words"] });
    assert_eq!(Value::Object(exited.data.clone()), fields);
    let all: Vec<&str> = events.iter().map(|event| event.kind.word()).collect();
    assert_eq!(all, ["session_created", "lock_acquired", "run_started", "lock_released", "run_exited"]);
}

fn an_event_names_the_run_that_it_is_about(ground: &Ground) {
    let store = ground.open();
    let (mut driven, mut batch) = Driven::new(1, "api", Spec::new(Mode::Always));
    batch.append(driven.send(MessageId(1), None));
    batch.append(driven.start());
    batch.append(driven.take(MessageId(1)));
    // A record that names its run does not depend on which run was live.
    let run = driven.live_run();
    let ended = Ended::new(Exit::Code(0), Duration::from_secs(1));
    let exited = RunEvent::Exited { ended, shim: Shim::Absent, holder: None };
    let decision = driven.session.handle(&Event::Run { run, event: exited }, driven.now);
    let run_ids = [(RunNumber(2), driven.run_id(RunNumber(2)))].into();
    let (id, session, at) = (driven.id, &driven.session, driven.now.wall);
    let facts = Facts { run_ids, ..Facts::default() };
    batch.decided(Decided { id, session, decision: &decision, at }, &facts);
    store.commit(batch).wait().unwrap();

    let events = store.reader().unwrap().events(&EventQuery::default()).unwrap();
    let run_of = |kind: &str| events.iter().find(|event| event.kind.word() == kind).unwrap().run.clone();
    let first = Some(driven.run_id(RunNumber(1)).to_string());
    for kind in ["lock_acquired", "run_started", "message_delivered", "run_exited"] {
        assert_eq!(run_of(kind), first, "{kind}");
    }
    assert_eq!(run_of("session_created"), None);
}

fn a_busy_lock_is_told_with_its_holder(ground: &Ground) {
    let store = ground.open();
    let (mut driven, mut batch) = Driven::new(1, "api", Spec::new(Mode::Always));
    let holder = HolderSeen {
        resource: "session:api".into(),
        pid: Some(7),
        command: Some("claude".into()),
        session: None,
        since: Some(Wall(5)),
    };
    batch.append(driven.run(RunEvent::LockBusy { holder: Some(Box::new(holder)) }));
    store.commit(batch).wait().unwrap();
    let reader = store.reader().unwrap();
    let events = reader.events(&EventQuery::default()).unwrap();
    let busy = events.iter().find(|event| event.kind == EventKind::LockBusy).unwrap();
    let holder =
        json!({ "resource": "session:api", "pid": 7, "command": "claude", "session": null, "since_ms": 5 });
    assert_eq!(busy.data["holder"], holder);
    let run = &reader.runs(driven.id, Take::All).unwrap()[0];
    assert_eq!((run.started_at, run.ended_at), (None, Some(driven.now.wall)), "it came to nothing");
}

fn a_run_is_kept_from_its_decision_to_its_verdict(ground: &Ground) {
    let store = ground.open();
    let reader = store.reader().unwrap();
    let (mut driven, batch) = Driven::new(1, "api", Spec::new(Mode::Always));
    store.commit(batch).wait().unwrap();
    let run = |number: usize| reader.runs(driven_id(), Take::All).unwrap()[number].clone();
    fn driven_id() -> pinfold_store::SessionId {
        id(1)
    }
    assert_eq!((run(0).id, run(0).started_at), (Some(driven.run_id(RunNumber(1))), None));
    store.commit(driven.start()).wait().unwrap();
    assert_eq!((run(0).pid, run(0).fence, run(0).started_at), (Some(4711), Some(7), Some(driven.now.wall)));
    assert_eq!(run(0).ended_at, None);
    store.commit(driven.exit(Exit::Signal(11))).wait().unwrap();
    let ended = run(0);
    assert_eq!((ended.code, ended.signal, ended.verdict.as_deref()), (None, Some(11), Some("crash")));
    assert_eq!((ended.lived_ms, ended.forced, ended.ended_at), (Some(1500), false, Some(driven.now.wall)));
    assert_eq!(run(1).number, RunNumber(2), "the next one is decided");
    assert_eq!(reader.run(driven.run_id(RunNumber(1))).unwrap(), Some(ended));
    assert_eq!(reader.runs(driven.id, Take::Last(1)).unwrap(), [run(1)]);
}

fn events_are_found_by_number_time_and_session(ground: &Ground) {
    let store = ground.open();
    let (driven, create) = Driven::on_demand(1, "api");
    (1..=5).for_each(|number| drop(store.commit(note(number))));
    store.commit(create).wait().unwrap();
    let reader = store.reader().unwrap();
    let all = EventQuery::default();
    assert_eq!(seqs(&reader, &all), [1, 2, 3, 4, 5, 6]);
    assert_eq!(seqs(&reader, &EventQuery { after: 4, ..all.clone() }), [5, 6]);
    assert_eq!(seqs(&reader, &EventQuery { after: 1, until: Some(3), ..all.clone() }), [2, 3]);
    assert_eq!(seqs(&reader, &EventQuery { since: Some(Wall(4)), ..all.clone() }), [4, 5, 6]);
    assert_eq!(seqs(&reader, &EventQuery { take: Take::First(2), ..all.clone() }), [1, 2]);
    assert_eq!(seqs(&reader, &EventQuery { take: Take::Last(2), ..all.clone() }), [5, 6]);
    assert_eq!(seqs(&reader, &EventQuery { after: u64::MAX, ..all.clone() }), [0; 0]);
    let of_session = EventQuery { session: Some(driven.id), ..all };
    assert_eq!(kinds(&reader, &of_session), ["session_created"]);
    assert_eq!(kinds(&reader, &EventQuery { session: Some(id(9)), ..of_session }), [""; 0]);
    assert_eq!(reader.max_seq().unwrap(), 6);
}

fn prune(store: &Store, before: i64, keep: u64) -> u64 {
    let mut batch = Batch::new();
    let old = Old::Events { keep: NonZeroU64::new(keep).unwrap() };
    batch.prune(Prune { old, before: Wall(before), reason: Reason::Age, within: Duration::MAX, at_least: 0 });
    store.commit(batch).wait().unwrap().pruned.events
}

fn pruning_takes_the_oldest_leaves_the_newest_and_never_reuses_a_number(ground: &Ground) {
    let store = ground.open();
    assert_eq!(prune(&store, i64::MAX, 1), 0, "nothing is nothing to prune");
    (1..=10).for_each(|number| drop(store.commit(note(number))));
    let reader = store.reader().unwrap();
    assert_eq!(prune(&store, 4, 1), 3);
    assert_eq!(seqs(&reader, &EventQuery::default()), [4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(prune(&store, i64::MAX, 5), 2);
    assert_eq!(prune(&store, i64::MAX, u64::MAX), 0);
    assert_eq!(prune(&store, i64::MAX, 1), 4);
    assert_eq!(store.commit(note(11)).wait().unwrap().seqs, 11..12);
    assert_eq!(seqs(&reader, &EventQuery::default()), [10, 11]);
}

fn much_is_pruned_in_parts_so_that_nobody_waits_long(ground: &Ground) {
    let store = ground.open();
    let mut batch = Batch::new();
    (0..1_200).for_each(|at| batch.event(audit("note", at, &[])));
    store.commit(batch).wait().unwrap();
    let parts: Vec<u64> = (0..4).map(|_| prune(&store, i64::MAX, 1)).collect();
    assert_eq!(parts, [500, 500, 199, 0]);
}

fn a_clock_that_was_set_back_tears_no_hole_into_the_numbers(ground: &Ground) {
    let store = ground.open();
    for at in [10, 20, 5, 30] {
        let mut batch = Batch::new();
        batch.event(audit("note", at, &[]));
        store.commit(batch).wait().unwrap();
    }
    assert_eq!(prune(&store, 15, 1), 1);
    assert_eq!(seqs(&store.reader().unwrap(), &EventQuery::default()), [2, 3, 4]);
}

#[test]
fn a_session_that_nothing_durable_happens_to_is_not_written() {
    let (mut driven, _) = Driven::on_demand(1, "api");
    assert!(driven.handle(&Event::Ticked).is_empty());
}

crate::conformance::on_every_back_end! {
    an_exit_is_told_with_everything_that_the_contract_names,
    an_event_names_the_run_that_it_is_about,
    a_busy_lock_is_told_with_its_holder,
    a_run_is_kept_from_its_decision_to_its_verdict,
    events_are_found_by_number_time_and_session,
    pruning_takes_the_oldest_leaves_the_newest_and_never_reuses_a_number,
    much_is_pruned_in_parts_so_that_nobody_waits_long,
    a_clock_that_was_set_back_tears_no_hole_into_the_numbers,
}
