//! What is damaged is refused, reported, and left as it is.

use crate::driven::Driven;
use crate::home::{Home, note, whole};
use pinfold_core::MessageId;
use pinfold_store::{CommitError, Damage, Loaded, OpenError, Reader, Store, StoreOptions};
use std::fs;

const PAGE: usize = 4096;

/// Creates a closed store with enough in it to have many pages.
fn filled() -> Home {
    let home = Home::new();
    let store = home.open();
    let (mut driven, batch) = Driven::on_demand(1, "api");
    let mut batches = vec![batch];
    batches.extend((0..50).map(|number| driven.send(MessageId(number), Some(&format!("key {number}")))));
    batches.extend((0..500).map(note));
    let tickets: Vec<_> = batches.into_iter().map(|batch| store.commit(batch)).collect();
    tickets.into_iter().for_each(|ticket| _ = ticket.wait().unwrap());
    drop(store);
    assert_eq!(home.bytes().len(), 1, "closed cleanly, there is only one file");
    home
}

/// Checks that opening fails and changes not one byte.
fn refused(home: &Home) -> OpenError {
    let before = home.bytes();
    let error = Store::open(&home.path(), &StoreOptions::default()).unwrap_err();
    assert_eq!(home.bytes(), before, "{error}");
    error
}

fn assert_damaged(home: &Home) {
    let error = refused(home);
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
}

#[test]
fn garbage_is_refused() {
    for length in [1, 15, 16, 99, 100, 511, 512, PAGE, 3 * PAGE + 7] {
        let home = Home::new();
        fs::write(home.path(), vec![b'x'; length]).unwrap();
        assert_damaged(&home);
        assert!(Reader::open(&home.path()).is_err(), "{length}");
    }
}

#[test]
fn zeros_are_refused() {
    for length in [1, 100, 512, PAGE, 2 * PAGE] {
        let home = Home::new();
        fs::write(home.path(), vec![0; length]).unwrap();
        assert_damaged(&home);
    }
}

#[test]
fn a_truncated_file_is_refused() {
    let whole = filled();
    let bytes = fs::read(whole.path()).unwrap();
    for length in
        [1, 10, 16, 100, 600, PAGE - 1, PAGE, PAGE + 1, bytes.len() / 2, bytes.len() - PAGE, bytes.len() - 1]
    {
        let home = Home::new();
        fs::write(home.path(), &bytes[..length]).unwrap();
        assert_damaged(&home);
    }
}

#[test]
fn a_page_whose_head_is_overwritten_is_refused_whichever_it_is() {
    let whole = filled();
    let bytes = fs::read(whole.path()).unwrap();
    assert!(bytes.len() > 20 * PAGE);
    for page in 0..bytes.len() / PAGE {
        let mut torn = bytes.clone();
        let head = if page == 0 { 100 } else { page * PAGE };
        torn[head..head + 8].fill(0xFF);
        let home = Home::new();
        fs::write(home.path(), torn).unwrap();
        assert_damaged(&home);
    }
}

#[test]
fn a_torn_header_is_refused() {
    let whole = filled();
    let bytes = fs::read(whole.path()).unwrap();
    // The magic, the page size, the number of pages, the schema format, the owner.
    for at in [0, 15, 16, 30, 47, 70] {
        let mut torn = bytes.clone();
        torn[at] ^= 0x55;
        let home = Home::new();
        fs::write(home.path(), torn).unwrap();
        assert_damaged(&home);
    }
}

#[test]
fn a_damaged_file_with_a_log_keeps_both() {
    let live = Home::new();
    let store = live.open();
    let tickets: Vec<_> = (0..500).map(|number| store.commit(note(number))).collect();
    tickets.into_iter().for_each(|ticket| _ = ticket.wait().unwrap());
    let mut files = live.bytes();
    let file = files.get_mut("pinfold.db").unwrap();
    file.truncate(2 * PAGE);
    file[PAGE..].fill(0xFF);

    let home = Home::new();
    for name in ["pinfold.db", "pinfold.db-wal"] {
        fs::write(home.folder().join(name), &files[name]).unwrap();
    }
    let error = Store::open(&home.path(), &StoreOptions::default()).unwrap_err();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
    for name in ["pinfold.db", "pinfold.db-wal"] {
        assert_eq!(home.bytes()[name], files[name], "{name}");
    }
}

#[test]
fn a_log_without_its_file_is_never_taken_for_an_empty_store() {
    let live = Home::new();
    let store = live.open();
    store.commit(note(1)).wait().unwrap();
    let log = &live.bytes()["pinfold.db-wal"];
    for file in [None, Some("")] {
        let home = Home::new();
        fs::write(home.folder().join("pinfold.db-wal"), log).unwrap();
        if let Some(text) = file {
            fs::write(home.path(), text).unwrap();
        }
        let error = refused(&home);
        assert!(matches!(error, OpenError::Damaged { problem: Damage::LogOnly, .. }), "{error:?}");
    }
}

#[test]
fn a_file_of_a_later_version_is_refused() {
    let home = filled();
    home.raw().pragma_update(None, "user_version", 99).unwrap();
    let error = refused(&home);
    assert!(matches!(error, OpenError::TooNew { found: 99, known: 9, .. }), "{error:?}");
    let error = Reader::open(&home.path()).unwrap_err();
    assert!(matches!(error, OpenError::TooNew { found: 99, .. }), "{error:?}");
}

#[test]
fn the_database_of_another_program_is_refused() {
    let home = Home::new();
    home.raw().execute_batch("CREATE TABLE theirs (x); PRAGMA user_version = 1").unwrap();
    let error = refused(&home);
    assert!(matches!(error, OpenError::Damaged { problem: Damage::NotOurs, .. }), "{error:?}");
}

#[test]
fn one_damaged_session_hides_none_of_the_others() {
    for (column, value) in [
        ("core", "{torn"),
        ("core", r#"{"life":"of a later version"}"#),
        ("definition", ""),
        ("parent", "no id"),
        ("id", "no id"),
    ] {
        let home = Home::new();
        let store = home.open();
        for (number, name) in [(1, "one"), (2, "two"), (3, "three")] {
            store.commit(Driven::on_demand(number, name).1).wait().unwrap();
        }
        drop(store);
        let raw = home.raw();
        raw.pragma_update(None, "foreign_keys", false).unwrap();
        raw.execute(&format!("UPDATE sessions SET {column} = ?1 WHERE name = 'two'"), [value]).unwrap();
        drop(raw);

        let store = home.open();
        let mut sessions = store.reader().unwrap().sessions().unwrap();
        assert_eq!(sessions.len(), 3);
        let Loaded::Damaged(damaged) = sessions.remove(1) else { panic!("{column}: {value}") };
        assert_eq!(damaged.name, "two");
        let named = if column == "core" { "state" } else { column };
        assert!(damaged.problem.contains(named), "{}", damaged.problem);
        let names: Vec<String> = sessions.into_iter().map(|loaded| whole(loaded).name).collect();
        assert_eq!(names, ["one", "three"]);
    }
}

#[test]
fn a_file_that_is_damaged_under_the_writer_fails_the_batch_and_says_so() {
    let home = filled();
    let store = home.open();
    let mut bytes = fs::read(home.path()).unwrap();
    bytes[PAGE..].fill(0xFF);
    fs::write(home.path(), bytes).unwrap();
    let error = store.commit(note(1)).wait().unwrap_err();
    assert!(matches!(*error, CommitError::Damaged { .. }), "{error:?}");
}
