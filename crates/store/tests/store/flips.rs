//! One changed byte in the database: what is read is what was written, or the damage is reported.

use crate::driven::Driven;
use crate::home::{Home, id};
use pinfold_core::MessageId;
use pinfold_core::event::TurnEnd;
use pinfold_store::{Batch, Loaded, Reader, Store, StoreOptions, StoredSession, Take};
use std::fs;

const PAGE: usize = 4096;
/// Only one in this many bytes of index pages is tried: all of them would take a minute.
const STRIDE: usize = 11;
const MESSAGES: u128 = 6;

/// Creates a closed store of one session with waiting messages.
fn filled() -> Home {
    filled_and(|_| Vec::new())
}

fn filled_and(more: impl Fn(&mut Driven) -> Vec<Batch>) -> Home {
    let home = Home::new();
    let store = home.open();
    let (mut driven, batch) = Driven::on_demand(1, "api");
    let mut batches = vec![batch];
    batches
        .extend((0..MESSAGES).map(|number| driven.send(MessageId(number), Some(&format!("key {number}")))));
    batches.extend(more(&mut driven));
    batches.into_iter().for_each(|batch| _ = store.commit(batch).wait().unwrap());
    home
}

fn session(reader: &Reader) -> StoredSession {
    match reader.sessions().unwrap().remove(0) {
        Loaded::Whole(stored) => *stored,
        Loaded::Damaged(damaged) => panic!("{damaged:?}"),
    }
}

/// Returns the bytes of indexes that are in use.
fn of_indexes(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let indexes = (1..bytes.len() / PAGE).map(|page| page * PAGE).filter(|start| bytes[*start] == 10);
    indexes.flat_map(|start| start..start + PAGE).filter(|at| bytes[*at] != 0).step_by(STRIDE)
}

#[test]
fn a_changed_byte_of_an_index_is_refused_or_changes_nothing() {
    let whole = filled();
    let bytes = fs::read(whole.path()).unwrap();
    let known = session(&whole.reader());
    let (home, mut refused) = (Home::new(), 0);
    for at in of_indexes(&bytes) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        fs::write(home.path(), &flipped).unwrap();
        match Store::open(&home.path(), &StoreOptions::default()) {
            Ok(store) => assert_eq!(session(&store.reader().unwrap()), known, "byte {at}"),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn a_waiting_message_that_is_damaged_is_counted_and_not_delivered() {
    let home = filled();
    home.raw()
        .execute("UPDATE messages SET text = 'other' WHERE id IN (SELECT min(id) FROM messages)", [])
        .unwrap();
    let reader = home.reader();
    let stored = session(&reader);
    assert_eq!(stored.session.inbox().queued() as u128, MESSAGES - 1);
    assert_eq!(stored.damaged, 1);
    let shown = reader.messages(stored.id, None, Take::All).unwrap();
    assert_eq!(shown.iter().filter(|message| message.damage.is_some()).count(), 1);
}

/// A wrong index must not make an agent do the same work twice.
#[test]
fn a_message_that_is_done_does_not_wait_whatever_the_index_says() {
    let first = MessageId(0);
    let home = filled_and(|driven| {
        vec![driven.start(), driven.take(first), driven.end_turn(first, TurnEnd::Answered)]
    });
    let sql = "SELECT rootpage FROM sqlite_master WHERE name = 'messages_waiting'";
    let page: usize = home.raw().query_row(sql, [], |row| row.get(0)).unwrap();

    // The last byte of an entry is its row: the second message's entry now names the first, which is done.
    let mut bytes = fs::read(home.path()).unwrap();
    let entry = [id(1).to_string().as_bytes(), &[2]].concat();
    let index = &mut bytes[(page - 1) * PAGE..page * PAGE];
    let found = index.windows(entry.len()).position(|window| window == entry).unwrap();
    index[found + entry.len() - 1] = 1;
    fs::write(home.path(), &bytes).unwrap();
    let waiting = session(&home.reader()).session;
    assert!(waiting.inbox().waiting().all(|queued| queued.message != first), "{:?}", waiting.inbox());
}
