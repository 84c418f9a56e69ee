//! How far a store had come is known outside of it: one that lost something is refused.

use crate::driven::Driven;
use crate::home::{Home, note};
use pinfold_store::{Batch, CommitError, Damage, HeldUp, OpenError, Store, StoreOptions, Trouble};
use std::fs;
use std::sync::mpsc::channel;
use std::time::Duration;

fn options(home: &Home) -> StoreOptions {
    StoreOptions { witness: Some(home.folder().join("witness")), ..StoreOptions::default() }
}

fn open(home: &Home) -> Result<Store, OpenError> {
    Store::open(&home.path(), &options(home))
}

fn problem(home: &Home) -> Damage {
    // SQLite's shared index is not data.
    let data = || home.bytes().into_iter().filter(|(name, _)| name != "pinfold.db-shm").collect::<Vec<_>>();
    let before = data();
    let OpenError::Damaged { problem, .. } = open(home).unwrap_err() else { panic!("it is not damaged") };
    assert!(data() == before, "nothing may be changed");
    problem
}

/// Returns the files as a crash leaves them.
fn crashed(batches: impl IntoIterator<Item = Batch>) -> Home {
    let (live, home) = (Home::new(), Home::new());
    let store = open(&live).unwrap();
    batches.into_iter().for_each(|batch| _ = store.commit(batch).wait().unwrap());
    for name in ["pinfold.db", "pinfold.db-wal", "witness"] {
        fs::copy(live.folder().join(name), home.folder().join(name)).unwrap();
    }
    home
}

#[test]
fn a_store_as_it_was_left_opens_again_and_again() {
    let home = crashed((1..=3).map(note));
    for seq in 4..7 {
        let store = open(&home).unwrap();
        assert!(!store.opened().witnessed);
        assert_eq!(store.commit(note(seq)).wait().unwrap().seqs, seq..seq + 1);
    }
}

#[test]
fn a_store_without_its_log_is_behind() {
    let home = crashed((1..=3).map(note));
    fs::remove_file(home.folder().join("pinfold.db-wal")).unwrap();
    let problem = problem(&home);
    assert!(
        matches!(problem, Damage::Behind { found, noted } if (found.seq, noted.seq) == (0, 3)),
        "{problem}"
    );
}

#[test]
fn a_change_without_an_event_is_missed_too() {
    let (driven, create) = Driven::on_demand(1, "api");
    let mut define = Batch::new();
    define.define(driven.id, &serde_json::json!({ "changed": true }));
    let home = crashed([create, define]);
    let log = home.folder().join("pinfold.db-wal");
    let mut bytes = fs::read(&log).unwrap();
    let last = bytes.len() - 100;
    bytes[last] ^= 1;
    fs::write(&log, bytes).unwrap();
    let problem = problem(&home);
    assert!(matches!(problem, Damage::Behind { .. }), "{problem}");
}

#[test]
fn a_store_that_is_missing_is_not_made_anew() {
    let home = crashed((1..=3).map(note));
    fs::remove_file(home.folder().join("pinfold.db-wal")).unwrap();
    fs::remove_file(home.path()).unwrap();
    assert!(matches!(problem(&home), Damage::Missing(noted) if noted.seq == 3));
}

#[test]
fn another_store_in_its_place_is_noticed() {
    let home = crashed((1..=3).map(note));
    let other = crashed((11..=19).map(note));
    for name in ["pinfold.db", "pinfold.db-wal"] {
        fs::copy(other.folder().join(name), home.folder().join(name)).unwrap();
    }
    let problem = problem(&home);
    assert!(matches!(problem, Damage::Another(noted) if noted.seq == 3), "{problem}");
}

#[test]
fn a_store_that_is_ahead_is_fine_and_one_without_a_witness_gets_one() {
    let home = crashed((1..=3).map(note));
    let old = fs::read(home.folder().join("witness")).unwrap();
    drop(open(&home).unwrap().commit(note(4)));
    fs::write(home.folder().join("witness"), old).unwrap();
    drop(open(&home).unwrap());
    fs::remove_file(home.folder().join("witness")).unwrap();
    assert!(open(&home).unwrap().opened().witnessed);
    assert!(!open(&home).unwrap().opened().witnessed);
}

#[test]
fn a_witness_that_cannot_be_read_is_said_and_nothing_is_guessed() {
    let home = crashed((1..=3).map(note));
    fs::write(home.folder().join("witness"), vec![7; 8192]).unwrap();
    assert!(matches!(problem(&home), Damage::Witness(_)));
}

#[test]
fn nothing_is_acknowledged_while_the_file_has_lost_its_name() {
    for name in ["pinfold.db", "pinfold.db-wal"] {
        let home = Home::new();
        let store = open(&home).unwrap();
        store.commit(note(1)).wait().unwrap();
        fs::remove_file(home.folder().join(name)).unwrap();
        let error = store.commit(note(2)).wait().unwrap_err();
        assert!(matches!(&*error, CommitError::Gone { path } if path.ends_with(name)), "{error}");
    }
}

#[test]
fn nothing_is_acknowledged_while_a_file_is_cut_and_what_is_left_of_it_is_not_spread() {
    for name in ["pinfold.db", "pinfold.db-wal"] {
        let home = Home::new();
        let store = open(&home).unwrap();
        store.commit(note(1)).wait().unwrap();
        let file = home.folder().join(name);
        let before = fs::metadata(&file).unwrap().len();
        fs::File::options().write(true).open(&file).unwrap().set_len(before / 2).unwrap();
        let error = store.commit(note(2)).wait().unwrap_err();
        assert!(matches!(&*error, CommitError::Gone { path } if path.ends_with(name)), "{error}");
        let database = fs::read(home.path()).unwrap();
        drop(store);
        assert!(fs::read(home.path()).unwrap() == database, "{name}: an orderly end wrote into it");
    }
}

#[test]
fn a_file_that_is_moved_away_is_noticed_without_a_commit_and_waited_for() {
    let home = Home::new();
    let store =
        Store::open(&home.path(), &StoreOptions { when_held_up: HeldUp::Wait, ..options(&home) }).unwrap();
    store.commit(note(1)).wait().unwrap();
    let (told, tell) = channel();
    store.on_trouble(move |trouble| drop(told.send(trouble.clone())));
    let aside = home.folder().join("aside");
    fs::rename(home.path(), &aside).unwrap();
    let trouble = tell.recv_timeout(Duration::from_secs(240)).unwrap();
    assert!(matches!(trouble, Trouble::Gone { .. }) && trouble.holds_up());
    let waiting = store.commit(note(2));
    fs::rename(&aside, home.path()).unwrap();
    assert_eq!(waiting.wait().unwrap().seqs, 2..3);
    assert_eq!(tell.recv_timeout(Duration::from_secs(240)).unwrap(), Trouble::None);
}

#[test]
fn another_program_that_writes_is_waited_out() {
    let home = Home::new();
    let busy = StoreOptions {
        busy_timeout: Duration::from_millis(20),
        when_held_up: HeldUp::Wait,
        ..options(&home)
    };
    let store = Store::open(&home.path(), &busy).unwrap();
    let (told, tell) = channel();
    store.on_trouble(move |trouble| drop(told.send(trouble.clone())));
    let raw = home.raw();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    let ticket = store.commit(note(1));
    assert_eq!(tell.recv_timeout(Duration::from_secs(240)).unwrap(), Trouble::Busy);
    raw.execute_batch("ROLLBACK").unwrap();
    assert_eq!(ticket.wait().unwrap().seqs, 1..2);
    assert_eq!(tell.recv_timeout(Duration::from_secs(240)).unwrap(), Trouble::None);
}
