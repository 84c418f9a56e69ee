//! Fenced files: whose bytes are written, whose count, and what other programs did to them.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use pinfold_lock::{AppendError, FencedFile, Folder, ForeignChange, Guard, Request, Resource};
use std::path::PathBuf;

struct Place {
    _temp: tempfile::TempDir,
    folder: Folder,
    data: PathBuf,
}

fn place() -> Place {
    let temp = tempfile::tempdir().unwrap();
    let folder = Folder::open(temp.path().join("locks")).unwrap();
    Place { folder, data: temp.path().join("data"), _temp: temp }
}

fn resource() -> Resource {
    Resource::Key("k".into())
}

fn take(place: &Place) -> Guard {
    place.folder.try_acquire(&resource(), &Request::default()).unwrap()
}

fn texts(place: &Place) -> Vec<String> {
    let records = FencedFile::read(&place.data).unwrap().records;
    records.into_iter().map(|record| String::from_utf8(record.data).unwrap()).collect()
}

#[test]
fn a_superseded_fence_is_refused_and_the_bytes_stay() {
    let place = place();
    let mut first = take(&place);
    let mut old = first.open_fenced(&place.data).unwrap();
    let six = first.fence();
    let _ = old.append(six, b"from six").unwrap();
    drop(first);
    // Granted, but it has not touched the file: only the lock file tells.
    let mut second = take(&place);
    let bytes = std::fs::read(&place.data).unwrap();
    let refused = old.append(six, b"too late").unwrap_err();
    let by = second.fence();
    assert_eq!(refused, AppendError::Superseded { path: place.data.clone(), fence: six, by });
    assert_eq!(std::fs::read(&place.data).unwrap(), bytes);
    let mut new = second.open_fenced(&place.data).unwrap();
    let _ = new.append(by, b"from seven").unwrap();
    assert!(matches!(old.append(six, b"again"), Err(AppendError::Superseded { .. })));
    assert_eq!(texts(&place), ["from six", "from seven"]);
}

#[test]
fn a_writer_paused_between_check_and_write_leaves_a_record_that_does_not_count() {
    let place = place();
    let mut first = take(&place);
    let mut old = first.open_fenced(&place.data).unwrap();
    let _ = old.append(first.fence(), b"early").unwrap();
    let before = std::fs::read(&place.data).unwrap();
    let _ = old.append(first.fence(), b"paused").unwrap();
    let paused = std::fs::read(&place.data).unwrap()[before.len()..].to_vec();
    // The delayed bytes are written after the successor has claimed the file.
    std::fs::write(&place.data, &before).unwrap();
    drop(first);
    let mut second = take(&place);
    let mut new = second.open_fenced(&place.data).unwrap();
    std::fs::OpenOptions::new()
        .append(true)
        .open(&place.data)
        .and_then(|mut file| std::io::Write::write_all(&mut file, &paused))
        .unwrap();
    let _ = new.append(second.fence(), b"now").unwrap();
    assert_eq!(texts(&place), ["early", "now"]);
    assert_eq!(FencedFile::read(&place.data).unwrap().late, 1);
}

#[test]
fn a_child_that_knows_the_fence_appends_without_a_guard() {
    let place = place();
    let guard = take(&place);
    let mut file = FencedFile::open(&place.data, &place.folder, &resource()).unwrap();
    let _ = file.append(guard.fence(), b"child").unwrap();
    assert_eq!(texts(&place), ["child"]);
}

#[test]
fn a_writer_stopped_inside_the_section_does_not_stop_its_successor() {
    let place = place();
    std::fs::write(&place.data, "").unwrap();
    let stopped = std::fs::File::open(&place.data).unwrap();
    rustix::fs::flock(&stopped, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let mut guard = take(&place);
    let mut file = guard.open_fenced(&place.data).unwrap();
    let _ = file.append(guard.fence(), b"went on").unwrap();
    assert_eq!(texts(&place), ["went on"]);
}

type Deed = fn(&std::path::Path);

#[test]
fn a_foreign_change_is_reported_as_what_it_is_and_never_blocks_the_release() {
    let deeds: [(&str, Deed); 5] = [
        ("grown", |path| {
            let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
            std::io::Write::write_all(&mut file, b"rubbish\n").unwrap();
        }),
        ("shrunk", |path| std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(3).unwrap()),
        ("replaced", |path| {
            std::fs::write(path.with_extension("new"), "").unwrap();
            std::fs::rename(path.with_extension("new"), path).unwrap();
        }),
        ("removed", |path| std::fs::remove_file(path).unwrap()),
        ("not a file", |path| {
            std::fs::remove_file(path).unwrap();
            std::fs::create_dir(path).unwrap();
        }),
    ];
    for (name, deed) in deeds {
        let place = place();
        let mut guard = take(&place);
        let mut file = guard.open_fenced(&place.data).unwrap();
        let _ = file.append(guard.fence(), b"ours").unwrap();
        deed(&place.data);
        let receipt = guard.release();
        assert!(receipt.trouble.is_none(), "{name}: {receipt:?}");
        let [change] = &receipt.changes[..] else { panic!("{name}: {receipt:?}") };
        let told = match change {
            ForeignChange::Grown { bytes, .. } if *bytes == 8 => "grown",
            ForeignChange::Shrunk { .. } => "shrunk",
            ForeignChange::Replaced { .. } => "replaced",
            ForeignChange::Removed { .. } => "removed",
            ForeignChange::NotAFile { .. } => "not a file",
            ForeignChange::Grown { .. } | ForeignChange::Unreadable { .. } => "something else",
        };
        assert_eq!(told, name);
        drop(take(&place));
    }
}

#[test]
fn the_next_append_tells_of_a_foreign_change_and_goes_through() {
    let place = place();
    let mut guard = take(&place);
    let mut file = guard.open_fenced(&place.data).unwrap();
    let _ = file.append(guard.fence(), b"one").unwrap();
    std::fs::remove_file(&place.data).unwrap();
    let appended = file.append(guard.fence(), b"two").unwrap();
    assert_eq!(appended.change, Some(ForeignChange::Removed { path: place.data.clone() }));
    assert_eq!(texts(&place), ["two"]);
    // No sticky error: the next one is clean.
    assert_eq!(file.append(guard.fence(), b"three").unwrap().change, None);
}
