//! The order of the crate's operations, and what another process may do between two of them.
//!
//! Every operation is recorded; a test checks the order, or does something itself before one of them.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod limit;

use pinfold_lock::fault::{Armed, before_each, pretend_reboot};
use pinfold_lock::{Folder, Guard, Request, Resource, RunName, Survivors};
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(240);

struct Place {
    _limit: limit::Limit,
    _temp: tempfile::TempDir,
    root: PathBuf,
    folder: Folder,
}

fn place() -> Place {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("a/b")).unwrap();
    Place {
        folder: Folder::open(root.join("locks")).unwrap(),
        _temp: temp,
        root,
        _limit: limit::Limit::of_test(),
    }
}

fn key() -> Resource {
    Resource::Key("k".into())
}

fn run(name: &str, survivors: Survivors) -> Request {
    Request { run: Some(RunName::new(name).unwrap()), survivors, ..Request::default() }
}

fn take(folder: &Folder, resource: &Resource) -> Guard {
    folder.try_acquire(resource, &Request::default()).unwrap()
}

/// Returns the lock file of the key.
fn file_of_key(folder: &Folder) -> PathBuf {
    let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    names.into_iter().find(|path| path.to_str().unwrap().contains("/k-")).unwrap()
}

/// Returns the lock files that refuse this kind of flock, tried through our own descriptions.
fn refusing(folder: &Path, operation: FlockOperation) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.as_bytes()[1] == b'-' {
            let file = rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).unwrap();
            if rustix::fs::flock(&file, operation).is_err() {
                found.push(name);
            }
        }
    }
    found
}

/// Returns the operations of one acquire and release.
fn operations(folder: &Folder, resource: &Resource) -> Vec<&'static str> {
    let armed = before_each(|_, _| {});
    drop(take(folder, resource));
    armed.operations()
}

/// Does something once, before the first operation of this name; the receiver tells whether it was done.
fn once_before(operation: &'static str, act: impl FnOnce() + Send + 'static) -> (Armed, Receiver<()>) {
    let (sender, done) = channel();
    let mut act = Some(act);
    let armed = before_each(move |_, name| {
        if let Some(act) = act.take_if(|_| name == operation) {
            act();
            sender.send(()).unwrap();
        }
    });
    (armed, done)
}

/// Whether the file was synced after everything that was written to it before the grant.
#[track_caller]
fn synced(operations: &[&str]) -> bool {
    let Some(sync) = operations.iter().position(|name| *name == "fdatasync") else { return false };
    let before = operations[..sync].iter().filter(|name| **name == "write").count();
    assert!(before > 0, "synced before it was written: {operations:?}");
    true
}

#[test]
fn the_first_grant_of_a_boot_is_put_on_disk_and_the_next_is_not() {
    let place = place();
    for resource in [key(), Resource::Directory(place.root.join("a/b"))] {
        assert!(synced(&operations(&place.folder, &resource)), "{resource}: the first of all");
        assert!(!synced(&operations(&place.folder, &resource)), "{resource}: the second");
        pretend_reboot(&place.folder, &resource).unwrap();
        assert!(synced(&operations(&place.folder, &resource)), "{resource}: the first of a boot");
        assert!(!synced(&operations(&place.folder, &resource)), "{resource}: the second of a boot");
    }
}

#[test]
fn a_grant_that_mends_a_damaged_slot_is_put_on_disk() {
    let place = place();
    drop(take(&place.folder, &key()));
    let file = std::fs::OpenOptions::new().write(true).open(file_of_key(&place.folder)).unwrap();
    let bytes = std::fs::read(file_of_key(&place.folder)).unwrap();
    // The beginning of the slot of a grant that leaves nothing after its flock.
    let slot = bytes.windows(7).position(|word| word == b"PFlone1").unwrap();
    file.write_all_at(b"XX", slot as u64).unwrap();
    assert!(synced(&operations(&place.folder, &key())));
    assert!(!synced(&operations(&place.folder, &key())));
}

#[test]
fn a_directory_is_let_go_before_what_is_above_it() {
    let place = place();
    let guard = take(&place.folder, &Resource::Directory(place.root.join("a/b")));
    let folder = place.folder.path().to_owned();
    let leaf = refusing(&folder, FlockOperation::NonBlockingLockShared);
    let all = refusing(&folder, FlockOperation::NonBlockingLockExclusive);
    assert!(leaf.len() == 2 && all.len() > leaf.len() + 2, "{leaf:?} of {all:?}");
    let (sender, seen) = channel();
    let armed = before_each(move |_, name| {
        if name == "close" {
            sender.send(refusing(&folder, FlockOperation::NonBlockingLockExclusive)).unwrap();
        }
    });
    drop(guard);
    drop(armed);
    let steps: Vec<Vec<String>> = seen.into_iter().collect();
    assert_eq!(steps.len(), all.len(), "one close for each file");
    for held in steps {
        let own = leaf.iter().filter(|name| held.contains(name)).count();
        let above = held.len() - own;
        assert!(own == 0 || above == all.len() - leaf.len(), "an ancestor went first; still held: {held:?}");
    }
}

#[test]
fn a_directory_that_is_replaced_while_it_is_locked_is_taken_anew() {
    let place = place();
    let path = place.root.join("a/b");
    let resource = Resource::Directory(path.clone());
    // The last flock of an acquire; an acquirer that comes after it holds the files of a directory that has moved.
    let clean = operations(&place.folder, &resource);
    let last = clean.iter().rposition(|name| *name == "flock").unwrap() + 1;
    let (moved, elsewhere) = (path.clone(), place.root.join("elsewhere"));
    let armed = before_each(move |number, _| {
        if number == last + 1 {
            std::fs::rename(&moved, &elsewhere).unwrap();
            std::fs::create_dir(&moved).unwrap();
        }
    });
    let guard = take(&place.folder, &resource);
    let operations = armed.operations();
    drop(armed);
    let now = std::fs::metadata(&path).unwrap().ino();
    assert_ne!(now, std::fs::metadata(place.root.join("elsewhere")).unwrap().ino());
    let locked = rustix::fs::fstat(guard.directory().unwrap()).unwrap().st_ino;
    assert_eq!(locked, now, "another directory than the path's is locked: {operations:?}");
}

#[test]
fn a_lock_file_that_is_removed_while_it_is_locked_grants_nothing() {
    let place = place();
    // The folder keeps open the file that the first grant wrote to.
    drop(take(&place.folder, &key()));
    let path = file_of_key(&place.folder);
    let (armed, done) = once_before("flock", move || std::fs::remove_file(path).unwrap());
    let guard = take(&place.folder, &key());
    drop(armed);
    done.try_recv().expect("a flock was asked for");
    let held = refusing(place.folder.path(), FlockOperation::NonBlockingLockShared);
    assert_eq!(held.len(), 1, "the grant is of a file that has no name");
    drop(guard);
}

/// A process that carries a run until it is told to become one that does not.
struct Changing(Child);

impl Changing {
    fn of_run(name: &str) -> Changing {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo; read -r word; exec env -i cat"]).env(pinfold_lock::RUN_VARIABLE, name);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        Changing(child)
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Makes it another process with the same pid, as if the first had ended and the kernel had reused its pid.
fn becomes_another(pid: u32, mut stdin: impl Write) {
    stdin.write_all(b"now\n").unwrap();
    let until = Instant::now() + PATIENCE;
    let environment = || std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    while !environment().is_empty() || std::fs::read(format!("/proc/{pid}/cmdline")).unwrap() != b"cat\0" {
        assert!(Instant::now() < until, "process {pid} did not become another one");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn who_has_the_pid_of_a_survivor_by_now_is_not_ended() {
    let place = place();
    let guard = place.folder.try_acquire(&key(), &run("r-changing", Survivors::End)).unwrap();
    let mut innocent = Changing::of_run("r-changing");
    _ = guard.surrender();
    let (pid, stdin) = (innocent.0.id(), innocent.0.stdin.as_ref().unwrap());
    let stdin = std::fs::File::from(rustix::io::dup(stdin).unwrap());
    let (armed, done) = once_before("pidfd_open", move || becomes_another(pid, stdin));
    drop(take(&place.folder, &key()));
    drop(armed);
    done.try_recv().expect("the survivor was found");
    assert!(innocent.0.try_wait().unwrap().is_none(), "another process was ended in place of a survivor");
}
