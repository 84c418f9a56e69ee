//! Two back-ends that are given the same batches answer the same, to the last field.

use super::property::Dice;
use super::retention::prune;
use crate::conformance::Ground;
use crate::driven::Driven;
use pinfold_core::Wall;
use pinfold_store::{
    Batch, EventQuery, ListPage, MessagePlace, MessageQuery, MessageState, Old, Reader, SessionId, Store,
    Take, Tally, Ulid,
};
use std::num::NonZeroU64;
use std::time::Duration;

const STATES: [Option<MessageState>; 5] = [
    None,
    Some(MessageState::Queued),
    Some(MessageState::Delivered),
    Some(MessageState::Done),
    Some(MessageState::Failed),
];

/// Returns what became of a batch, without the back-end's own words.
fn outcome(store: &Store, batch: Batch) -> String {
    match store.commit(batch).wait() {
        Ok(committed) => format!("{committed:?}"),
        Err(error) => error.to_string(),
    }
}

/// Returns what a daemon does now and then, whatever its sessions do.
fn chore(dice: &mut Dice, driven: &Driven) -> Batch {
    let mut batch = Batch::new();
    let before = Wall(driven.now.wall.0 - i64::try_from(dice.below(2_000)).unwrap());
    match dice.below(7) {
        0 => batch.prune(prune(Old::Events { keep: NonZeroU64::new(1 + dice.below(30)).unwrap() }, before)),
        1 => batch.prune(prune(Old::Runs { session: driven.id }, before)),
        2 => {
            let ids = driven.keys.values().map(|id| Ulid::from(*id)).collect();
            batch.prune(prune(Old::Messages { session: driven.id, ids }, before));
        }
        3 => batch.define(driven.id, &serde_json::json!({ "number": dice.below(9) })),
        4 => batch.daemon_started(dice.below(40), "boot"),
        5 => batch.told(before, Tally { events: dice.below(9), ..Tally::default() }),
        _ => batch.remove(crate::home::id(99)),
    }
    batch.reloaded(driven.id);
    batch
}

fn parts(reader: &Reader, query: MessageQuery, room: usize) -> Vec<Vec<pinfold_store::Message>> {
    let (mut all, mut next) = (Vec::new(), Some(MessagePlace::default()));
    while let Some(place) = next {
        let ListPage { rows, next: then } = reader.message_part(query, place, u64::MAX, room).unwrap();
        all.push(rows);
        next = then;
    }
    all
}

/// Returns everything that can be asked about a session and its events, as text: places are numbered as each
/// back-end likes.
fn everything(reader: &Reader, id: SessionId, young: Wall) -> Vec<String> {
    let mut all = vec![
        format!("{:?}", reader.sessions().unwrap()),
        format!("{:?}", reader.find("api").unwrap()),
        format!("{:?} {:?}", reader.meta().unwrap(), reader.complete_from().unwrap()),
        format!("{:?}", reader.untold().unwrap()),
        format!(
            "{:?}",
            reader.old_messages(id, young, MessagePlace::default(), u64::from(u32::MAX)).unwrap()
        ),
        format!("{} {}", reader.max_seq().unwrap(), reader.waiting_bytes(id).unwrap()),
        format!("{:?} {:?}", reader.with_old_runs(young).unwrap(), reader.with_old_messages(young).unwrap()),
    ];
    all.extend((0..40).map(|n| format!("{:?}", reader.spent_key(id, &format!("key {n}")).unwrap())));
    for take in [Take::All, Take::First(3), Take::Last(3)] {
        all.push(format!("{:?}", reader.runs(id, take).unwrap()));
        for since in [None, Some(young)] {
            let query = EventQuery { after: 5, since, session: Some(id), take, ..EventQuery::default() };
            all.push(format!(
                "{:?} {:?}",
                reader.events(&query).unwrap(),
                reader.event_place(&query).unwrap()
            ));
            all.push(format!("{:?}", reader.event_part(&query, 7, 4, 700).unwrap()));
        }
    }
    for state in STATES {
        let query = MessageQuery { session: id, state };
        all.push(format!("{:?}", reader.messages(id, state, Take::Last(5)).unwrap()));
        all.push(format!("{:?}", parts(reader, query, 600)));
        let from = reader.message_place(query, Take::Last(2)).unwrap();
        let more = reader.message_behind_which_more_come(query, MessagePlace::default(), 2).unwrap();
        all.push(format!("{} {more:?}", reader.count_messages(query, from).unwrap()));
    }
    all
}

fn answers_as_sqlite_does(ground: &Ground) {
    for seed in 100..106 {
        let mut dice = Dice(seed);
        let (judged, judge) = (ground.another(), Ground::sqlite());
        let stores = [judged.open(), judge.open()];
        let (mut driven, create) = Driven::new(seed, "api", dice.spec());
        stores.iter().for_each(|store| _ = store.commit(create.clone()).wait().unwrap());
        for round in 0..200 {
            driven.pass(Duration::from_millis(dice.below(30)));
            let event = dice.event(&driven.session, &driven.failed);
            let batch = driven.handle(&event);
            let chore = chore(&mut dice, &driven);
            for batch in [batch, chore] {
                let [one, two] = [0, 1].map(|at| outcome(&stores[at], batch.clone()));
                assert_eq!(one, two, "seed {seed}, round {round}: {batch:?}");
            }
            if round % 10 == 0 {
                let young = Wall(driven.now.wall.0 - 1_000);
                let [one, two] = [0, 1].map(|at| everything(&stores[at].reader().unwrap(), driven.id, young));
                assert_eq!(one, two, "seed {seed}, round {round}");
            }
        }
    }
}

/// Every back-end except SQLite has a test like this one.
#[test]
fn memory_answers_as_sqlite_does() {
    answers_as_sqlite_does(&Ground::memory());
}
