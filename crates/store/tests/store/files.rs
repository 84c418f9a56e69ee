//! What is on disk: modes, names, sizes.

use crate::driven::Driven;
use crate::home::{Home, note};
use crate::reexec;
use pinfold_store::{OpenError, Reader, Store, StoreOptions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn modes(folder: &Path) -> Vec<(String, u32)> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let mut modes: Vec<(String, u32)> = entries
        .map(|entry| {
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            (entry.file_name().into_string().unwrap(), mode)
        })
        .collect();
    modes.sort();
    modes
}

fn private() -> Vec<(String, u32)> {
    ["pinfold.db", "pinfold.db-shm", "pinfold.db-wal"].map(|name| (name.to_owned(), 0o600)).to_vec()
}

#[test]
fn nobody_else_may_read_the_files_whatever_the_umask() {
    if let Some(path) = reexec::role() {
        let store = Store::open(Path::new(&path), &StoreOptions::default()).unwrap();
        store.commit(note(1)).wait().unwrap();
        assert_eq!(modes(Path::new(&path).parent().unwrap()), private());
        return;
    }
    let home = Home::new();
    let before = ["sh", "-c", "umask 000; exec \"$0\" \"$@\""];
    let test = "files::nobody_else_may_read_the_files_whatever_the_umask";
    let status = reexec::again(&before, test, home.path().to_str().unwrap()).status().unwrap();
    assert!(status.success());
    assert_eq!(modes(home.folder()), [("pinfold.db".to_owned(), 0o600)], "it was there, and closed cleanly");
}

#[test]
fn files_that_others_could_read_are_tightened_and_that_is_said() {
    let home = Home::new();
    let store = home.open();
    assert!(store.opened().created && !store.opened().tightened);
    store.commit(note(1)).wait().unwrap();
    for (name, _) in private() {
        let file = home.folder().join(name);
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    let second = home.open();
    assert!(!second.opened().created && second.opened().tightened);
    assert_eq!(modes(home.folder()), private());
    drop(second);
    assert!(!home.open().opened().tightened);
}

#[test]
fn an_empty_file_becomes_a_store() {
    let home = Home::new();
    std::fs::write(home.path(), "").unwrap();
    let store = home.open();
    assert!(store.opened().created);
    store.commit(note(1)).wait().unwrap();
    drop(store);
    assert_eq!(modes(home.folder()), [("pinfold.db".to_owned(), 0o600)]);
    assert_eq!(home.reader().max_seq().unwrap(), 1);
}

#[test]
fn a_path_may_have_any_characters() {
    let home = Home::new();
    let path = home.folder().join("ü %41?a=b#c.db");
    for number in 1..=2 {
        let store = Store::open(&path, &StoreOptions::default()).unwrap();
        assert_eq!(store.commit(note(number)).wait().unwrap().seqs, number..number + 1);
    }
    assert_eq!(modes(home.folder()).len(), 1);
}

#[test]
fn a_reader_creates_no_store() {
    let home = Home::new();
    assert!(matches!(Reader::open(&home.path()).unwrap_err(), OpenError::Missing { .. }));
    assert!(home.bytes().is_empty());
}

#[test]
fn a_folder_that_is_missing_is_an_error_of_the_system() {
    let home = Home::new();
    let path = home.folder().join("none/pinfold.db");
    assert!(matches!(Store::open(&path, &StoreOptions::default()).unwrap_err(), OpenError::Io { .. }));
}

#[test]
fn the_disk_that_is_used_is_that_of_all_files() {
    let home = Home::new();
    let store = home.open();
    let (_, batch) = Driven::on_demand(1, "api");
    store.commit(batch).wait().unwrap();
    let all: usize = home.bytes().values().map(Vec::len).sum();
    assert_eq!(store.reader().unwrap().disk_used(), all as u64);
}

#[test]
fn the_bundled_sqlite_has_no_wal_reset_bug() {
    // Fixed in 3.51.3.
    assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
}

#[test]
fn a_reader_leaves_the_log_of_a_dead_writer_as_it_is() {
    let live = Home::new();
    let store = live.open();
    store.commit(note(1)).wait().unwrap();
    let files = live.bytes();
    let home = Home::new();
    for name in ["pinfold.db", "pinfold.db-wal"] {
        std::fs::write(home.folder().join(name), &files[name]).unwrap();
    }
    assert_eq!(home.reader().max_seq().unwrap(), 1);
    for name in ["pinfold.db", "pinfold.db-wal"] {
        assert_eq!(home.bytes()[name], files[name], "{name}");
    }
}
