//! A full disk is an error with a name, and nothing worse.

use crate::driven::Driven;
use crate::home::{audit, note};
use crate::reexec;
use crate::rights::needs;
use pinfold_store::{Batch, CommitError, EventQuery, Store, StoreOptions};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

const FULL: &str = "full_disk::a_full_disk_fails_the_batch_and_the_store_works_again_when_there_is_space";
const ROOM: &str = "full_disk::a_log_that_fills_the_disk_makes_room_for_itself";

#[test]
fn a_full_disk_fails_the_batch_and_the_store_works_again_when_there_is_space() {
    if let Some(folder) = reexec::role() {
        return fill_and_recover(Path::new(&folder));
    }
    needs!(Mount);
    let said = on_a_small_disk(FULL);
    assert!(said.contains("the disk was full"), "{said}");
}

#[test]
fn a_log_that_fills_the_disk_makes_room_for_itself() {
    if let Some(folder) = reexec::role() {
        return write_more_than_fits(Path::new(&folder));
    }
    needs!(Mount);
    let said = on_a_small_disk(ROOM);
    assert!(said.contains("all was written"), "{said}");
}

/// Runs a test in its own mount namespace, where the small disk goes away with the process.
fn on_a_small_disk(test: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let role = folder.path().to_str().unwrap();
    let output = reexec::again(&["unshare", "--mount"], test, role).output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "mounting must be possible for this test: {said:?}");
    said.concat()
}

fn open_on_small_disk(folder: &Path) -> Store {
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(folder).status();
    assert!(mount.unwrap().success());
    Store::open(&folder.join("pinfold.db"), &StoreOptions::default()).unwrap()
}

fn write_more_than_fits(folder: &Path) {
    let store = open_on_small_disk(folder);
    let (driven, create) = Driven::on_demand(1, "api");
    store.commit(create).wait().unwrap();
    let define = |store: &Store, number: u32| {
        let mut batch = Batch::new();
        batch.define(driven.id, &serde_json::json!({ "number": number, "text": "x".repeat(3_000) }));
        store.commit(batch).wait().unwrap();
    };
    (1_000..1_004).for_each(|number| define(&store, number));
    // The file now has all of its pages: from here on only the log grows, because every definition has the same length.
    drop(store);
    let store = Store::open(&folder.join("pinfold.db"), &StoreOptions::default()).unwrap();
    (1_004..2_000).for_each(|number| define(&store, number));
    println!("\nall was written");
}

fn fill_and_recover(folder: &Path) {
    let store = open_on_small_disk(folder);
    store.commit(note(1)).wait().unwrap();

    let filler = folder.join("filler");
    fill(&filler);
    let full = store.commit(large(2)).wait().unwrap_err();
    assert!(matches!(*full, CommitError::StorageFull { .. }), "{full:?}");
    assert!(full.is_storage());
    println!("\nthe disk was full: {full}");
    let reader = store.reader().unwrap();
    assert_eq!(reader.max_seq().unwrap(), 1, "nothing of it is visible");

    fs::remove_file(filler).unwrap();
    assert_eq!(store.commit(large(3)).wait().unwrap().seqs, 2..3);
    drop((store, reader));
    let store = Store::open(&folder.join("pinfold.db"), &StoreOptions::default()).unwrap();
    let events = store.reader().unwrap().events(&EventQuery::default()).unwrap();
    let numbers: Vec<_> = events.iter().map(|event| event.data["number"].as_u64()).collect();
    assert_eq!(numbers, [Some(1), Some(3)]);
}

fn fill(path: &Path) {
    let mut file = fs::File::create(path).unwrap();
    while file.write(&[0; 4096]).is_ok_and(|written| written > 0) {}
}

/// Returns a batch larger than the space left in a file that existed before.
fn large(number: u64) -> Batch {
    let mut batch = Batch::new();
    batch.event(audit("note", 1, &[("number", number.into()), ("text", "x".repeat(200_000).into())]));
    batch
}
