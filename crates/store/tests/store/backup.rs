//! Copies are whole, private and never replaced; one that is put back is newer than everything before it.

use crate::home::{Home, note};
use pinfold_core::Wall;
use pinfold_store::backup::{self, BackupError};
use pinfold_store::{Batch, Damage, OpenError, Store, StoreOptions};
use std::fs;
use std::os::unix::fs::MetadataExt;

fn announced(generation: u64) -> Batch {
    let mut batch = Batch::new();
    batch.daemon_started(generation, "boot");
    batch
}

#[test]
fn a_copy_is_made_while_the_store_is_written_and_can_be_put_back() {
    let home = Home::new();
    let witness = home.folder().join("witness");
    let options = StoreOptions { witness: Some(witness.clone()), ..StoreOptions::default() };
    let copy = home.folder().join("copy");
    let store = Store::open(&home.path(), &options).unwrap();
    store.commit(announced(4)).wait().unwrap();
    (1..=3).for_each(|number| _ = store.commit(note(number)).wait().unwrap());
    let reader = store.reader().unwrap();
    let bytes = reader.backup(&copy).unwrap();
    let facts = fs::metadata(&copy).unwrap();
    assert_eq!((facts.len(), facts.mode() & 0o777), (bytes, 0o600));
    (4..=9).for_each(|number| _ = store.commit(note(number)).wait().unwrap());
    store.commit(announced(7)).wait().unwrap();
    drop((reader, store));

    let found = backup::look(&copy).unwrap();
    assert_eq!((found.position.seq, found.position.generation), (3, 4));
    let position = found.put_back(&home.path(), &witness, 5, Wall(1)).unwrap();
    assert!(position.generation > 7, "above what the witness saw: {position:?}");
    let store = Store::open(&home.path(), &options).unwrap();
    let reader = store.reader().unwrap();
    assert_eq!(reader.max_seq().unwrap(), 4, "the three, and that it was put back");
    assert_eq!(reader.meta().unwrap().generation, position.generation);
    assert!(home.folder().join("pinfold.db.old").exists());
}

#[test]
fn a_copy_replaces_nothing() {
    let home = Home::new();
    let store = home.open();
    let there = home.folder().join("there");
    fs::write(&there, "mine").unwrap();
    let error = store.reader().unwrap().backup(&there).unwrap_err();
    assert!(matches!(error, BackupError::Exists { .. }), "{error}");
    assert_eq!(fs::read(&there).unwrap(), b"mine");
}

#[test]
fn a_damaged_store_is_not_copied_and_the_store_is_named() {
    let home = Home::new();
    let store = home.open();
    (1..=300).for_each(|number| _ = store.commit(note(number)).wait().unwrap());
    drop(store);
    let mut bytes = fs::read(home.path()).unwrap();
    let page = bytes.len() - 4096;
    bytes[page..].fill(0x55);
    fs::write(home.path(), bytes).unwrap();
    let copy = home.folder().join("copy");
    let error = home.reader().backup(&copy).unwrap_err();
    assert!(
        matches!(&error, BackupError::Unusable(OpenError::Damaged { path, .. }) if path.ends_with("pinfold.db")),
        "{error:?}"
    );
    let left: Vec<String> = home.bytes().into_keys().filter(|name| name.starts_with("copy")).collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn a_damaged_copy_is_not_put_back() {
    let home = Home::new();
    let store = home.open();
    (1..=3).for_each(|number| _ = store.commit(note(number)).wait().unwrap());
    let copy = home.folder().join("copy");
    store.reader().unwrap().backup(&copy).unwrap();
    let raw = rusqlite::Connection::open(&copy).unwrap();
    raw.execute("UPDATE events SET why = 'another' WHERE seq = 2", []).unwrap();
    drop(raw);
    let error = backup::look(&copy).unwrap_err();
    let BackupError::Unusable(OpenError::Damaged { problem: Damage::Faults(faults), .. }) = &error else {
        panic!("{error}")
    };
    assert_eq!(faults, &["event 2 is damaged: its checksum is wrong"]);
}
