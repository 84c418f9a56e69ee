//! A full disk is an error with a name, and no more than that.

use crate::home::{audit, note};
use crate::reexec;
use pinfold_store::{Batch, CommitError, EventQuery, Options, Store};
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

#[test]
fn a_full_disk_fails_the_batch_and_the_store_works_again_when_there_is_space() {
    if let Some(folder) = reexec::role() {
        return in_own_mount_namespace(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    // In a mount namespace of its own the small disk goes away with the process, whatever happens.
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let before: &[&str] =
        if root { &["unshare", "--mount"] } else { &["unshare", "--user", "--map-root-user", "--mount"] };
    let test = "full_disk::a_full_disk_fails_the_batch_and_the_store_works_again_when_there_is_space";
    let output = reexec::again(before, test, folder.path().to_str().unwrap()).output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "mounting must be possible for this test: {said:?}");
    assert!(said[0].contains("the disk was full"), "{said:?}");
}

fn in_own_mount_namespace(folder: &Path) {
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(folder).status();
    assert!(mount.unwrap().success());
    let store = Store::open(&folder.join("pinfold.db"), &Options::default()).unwrap();
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
    let store = Store::open(&folder.join("pinfold.db"), &Options::default()).unwrap();
    let events = store.reader().unwrap().events(&EventQuery::default()).unwrap();
    let numbers: Vec<_> = events.iter().map(|event| event.data["number"].as_u64()).collect();
    assert_eq!(numbers, [Some(1), Some(3)]);
}

fn fill(path: &Path) {
    let mut file = fs::File::create(path).unwrap();
    while file.write(&[0; 4096]).is_ok_and(|written| written > 0) {}
}

/// More than what is left in a file that was there before.
fn large(number: u64) -> Batch {
    let mut batch = Batch::new();
    batch.event(audit("note", 1, &[("number", number.into()), ("text", "x".repeat(200_000).into())]));
    batch
}
