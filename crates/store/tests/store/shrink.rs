//! Retention and the file: forgotten rows give space back to the file system, but only from files that can shrink.

use crate::driven::Driven;
use crate::home::{Home, audit, id, note};
use pinfold_core::event::TurnEnd;
use pinfold_core::{MessageId, Wall};
use pinfold_store::{Batch, CheckPace, Committed, Old, Prune, Reason, Store, Trouble, Ulid, backup};
use serde_json::Value;
use std::num::NonZeroU64;
use std::time::Duration;

const V3: &[u8] = include_bytes!("../fixtures/v3.db");
const V5: &[u8] = include_bytes!("../fixtures/v5.db");

fn fill(store: &Store, count: i64) {
    let mut batch = Batch::new();
    (0..count).for_each(|at| batch.event(audit("note", at, &[("word", Value::from("x".repeat(1000)))])));
    store.commit(batch).wait().unwrap();
}

fn prune(store: &Store, old: Old, within: Duration) -> Committed {
    prune_at_least(store, old, within, 0)
}

fn prune_at_least(store: &Store, old: Old, within: Duration, at_least: u64) -> Committed {
    let mut batch = Batch::new();
    batch.prune(Prune { old, before: Wall(i64::MAX), reason: Reason::Age, within, at_least });
    store.commit(batch).wait().unwrap()
}

fn prune_events(store: &Store) {
    while prune(store, Old::Events { keep: NonZeroU64::MIN }, Duration::MAX).more {}
}

fn give_back(store: &Store, within: Duration) -> bool {
    let mut batch = Batch::new();
    batch.give_back(within);
    store.commit(batch).wait().unwrap().more
}

fn length(home: &Home) -> u64 {
    std::fs::metadata(home.path()).unwrap().len()
}

#[test]
fn what_was_forgotten_is_given_back_while_the_store_is_in_use() {
    let home = Home::new();
    let store = home.open();
    fill(&store, 3_000);
    prune_events(&store);
    let reader = store.reader().unwrap();
    assert!(reader.bytes_free().unwrap() > 2 << 20);
    let mut steps = 1;
    while give_back(&store, Duration::ZERO) {
        steps += 1;
        store.commit(note(steps)).wait().unwrap();
    }
    assert!(steps > 10, "a little at a time: {steps}");
    assert_eq!(reader.bytes_free().unwrap(), 0);
    // Enough for a checkpoint, which cuts the file.
    (0..1_500).for_each(|number| drop(store.commit(note(number))));
    store.commit(note(1)).wait().unwrap();
    assert_eq!(store.trouble(), Trouble::None, "a file that was cut by ourselves is not missed");
    drop((reader, store));
    assert!(length(&home) < 1 << 20, "{} bytes", length(&home));
    assert_eq!(home.reader().check(&CheckPace::at_once()).unwrap(), [""; 0]);
    home.open();
}

#[test]
fn a_file_of_before_is_as_it_was_until_a_copy_of_it_is_put_back() {
    for file in [V3, V5] {
        let home = Home::new();
        std::fs::write(home.path(), file).unwrap();
        let copy = home.folder().join("copy");
        // A copy of the old file itself, and one of the file after opening it.
        for open in [false, true] {
            if open {
                let store = home.open();
                fill(&store, 100);
                prune_events(&store);
                let reader = store.reader().unwrap();
                assert_eq!(reader.bytes_free().unwrap(), 0, "none that can be given back");
                assert!(!give_back(&store, Duration::MAX));
            }
            home.reader().backup(&copy).unwrap();
            let other = Home::new();
            let witness = other.folder().join("witness");
            backup::look(&copy).unwrap().put_back(&other.path(), &witness, 1, Wall(1)).unwrap();
            std::fs::remove_file(&copy).unwrap();
            let store = other.open();
            fill(&store, 100);
            prune_events(&store);
            assert!(store.reader().unwrap().bytes_free().unwrap() > 0);
            assert_eq!(other.reader().check(&CheckPace::at_once()).unwrap(), [""; 0]);
        }
    }
}

#[test]
fn a_step_whose_time_is_up_leaves_the_rest_to_the_next_one() {
    let home = Home::new();
    let store = home.open();
    fill(&store, 100);
    let old = || Old::Events { keep: NonZeroU64::MIN };
    let first = prune(&store, old(), Duration::ZERO);
    assert!(first.more && (1..50).contains(&first.pruned.events), "{first:?}");
    let rest = prune(&store, old(), Duration::MAX);
    assert_eq!((rest.pruned.events + first.pruned.events, rest.more), (99, false));
}

#[test]
fn a_step_that_has_to_keep_up_with_others_goes_on_for_as_long_as_that_takes() {
    let home = Home::new();
    let store = home.open();
    fill(&store, 1000);
    let old = || Old::Events { keep: NonZeroU64::MIN };
    let first = prune_at_least(&store, old(), Duration::ZERO, 700);
    assert!(first.more && (700..750).contains(&first.pruned.events), "{first:?}");
}

#[test]
fn a_damaged_message_is_not_forgotten_and_its_key_not_taken_for_whole() {
    let home = Home::new();
    let (mut driven, mut batch) = Driven::on_demand(1, "api");
    batch.append(driven.send(MessageId(1), Some("k")));
    batch.append(driven.start());
    batch.append(driven.take(MessageId(1)));
    batch.append(driven.end_turn(MessageId(1), TurnEnd::Answered));
    let store = home.open();
    store.commit(batch).wait().unwrap();
    drop(store);
    home.raw().execute("UPDATE messages SET key = 'K'", []).unwrap();
    let store = home.open();
    let old = Old::Messages { session: id(1), ids: vec![Ulid::from(MessageId(1))] };
    assert_eq!(prune(&store, old, Duration::MAX).pruned.rows(), 0);
    assert_eq!(store.reader().unwrap().spent_key(id(1), "K").unwrap(), None);
}

#[test]
fn a_key_that_is_damaged_is_named_and_not_taken_for_free() {
    let home = Home::new();
    let store = home.open();
    store.commit(Driven::on_demand(1, "api").1).wait().unwrap();
    let row = rusqlite::params![id(1).to_string(), id(2).0.to_string()];
    home.raw().execute("INSERT INTO keys VALUES (?1, 'k', ?2, 1, 2, 3)", row).unwrap();
    store.reader().unwrap().spent_key(id(1), "k").unwrap_err();
    let found = home.reader().check(&CheckPace::at_once()).unwrap();
    assert_eq!(found, ["key k is damaged: its checksum is wrong"]);
}
