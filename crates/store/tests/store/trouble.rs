//! When the disk refuses, the store waits: nothing is lost, nothing is decided anew, and work resumes by itself.

use crate::driven::Driven;
use crate::home::{Home, note};
use pinfold_store::{CommitError, HeldUp, Store, StoreOptions, Ticket, Trouble};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const PAGE: u64 = 4096;
const SOON: Duration = Duration::from_secs(240);

/// Creates a store that waits, with everything in its file and nothing in its log; also returns its reports.
fn waiting() -> (Home, Store, Receiver<Trouble>) {
    let home = Home::new();
    let store = home.open();
    let (_, create) = Driven::on_demand(1, "api");
    store.commit(create).wait().unwrap();
    (0..300).map(|number| store.commit(note(number))).for_each(|ticket| _ = ticket.wait().unwrap());
    drop(store);
    let options = StoreOptions { when_held_up: HeldUp::Wait, ..StoreOptions::default() };
    let store = Store::open(&home.path(), &options).unwrap();
    let (told, tell) = channel();
    store.on_trouble(move |trouble| drop(told.send(trouble.clone())));
    (home, store, tell)
}

/// Overwrites all pages but the first in place; returns what was there.
fn damage(home: &Home) -> Vec<u8> {
    let before = fs::read(home.path()).unwrap();
    write(home, &vec![0xFF; before.len() - PAGE as usize]);
    before
}

fn write(home: &Home, pages: &[u8]) {
    let file = OpenOptions::new().write(true).open(home.path()).unwrap();
    file.write_all_at(pages, PAGE).unwrap();
}

fn next(tell: &Receiver<Trouble>) -> Trouble {
    tell.recv_timeout(SOON).unwrap()
}

#[test]
fn a_file_that_is_damaged_under_the_writer_is_waited_for_until_it_is_whole() {
    let (home, store, tell) = waiting();
    let before = damage(&home);
    let ticket: Ticket = store.commit(note(1));
    let trouble = next(&tell);
    assert!(matches!(trouble, Trouble::Damaged { .. }) && trouble.holds_up(), "{trouble}");
    write(&home, &before[PAGE as usize..]);
    let seqs = ticket.wait().unwrap().seqs;
    assert_eq!(next(&tell), Trouble::None);
    assert_eq!(store.reader().unwrap().max_seq().unwrap() + 1, seqs.end);
}

#[test]
fn a_batch_that_does_not_wait_fails_and_the_damage_is_said_until_it_is_over() {
    let (home, store, tell) = waiting();
    let before = damage(&home);
    let mut batch = note(1);
    batch.fail_if_held_up();
    let error = store.commit(batch).wait().unwrap_err();
    assert!(matches!(*error, CommitError::Damaged { .. }), "{error:?}");
    assert!(matches!(next(&tell), Trouble::Damaged { .. }));
    // The check every two seconds does not mistake it for healthy.
    tell.recv_timeout(Duration::from_millis(2_500)).unwrap_err();
    write(&home, &before[PAGE as usize..]);
    assert_eq!(next(&tell), Trouble::None);
}

#[test]
fn a_store_that_is_closed_does_not_wait_for_the_disk() {
    let (home, store, tell) = waiting();
    damage(&home);
    let ticket = store.commit(note(1));
    assert!(matches!(next(&tell), Trouble::Damaged { .. }));
    store.give_up();
    assert!(matches!(*ticket.wait().unwrap_err(), CommitError::Damaged { .. }));
}
