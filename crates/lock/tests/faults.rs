//! Strikes every file operation of the crate in turn, with every fault.
//!
//! After each strike: the lock was given back exactly once or is still held and reported, nothing is leaked,
//! no two holders are inside, and the first error reached the caller.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod limit;

use pinfold_lock::fault::{Fault, FaultReach, arm};
use pinfold_lock::{
    AcquireError, AppendError, Fence, FencedFile, Folder, Guard, ReleaseMark, Request, Resource, RunName,
    Survivors,
};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

const ERRORS: [Errno; 4] = [Errno::IO, Errno::MFILE, Errno::NOSPC, Errno::NOMEM];

/// Descriptors are counted for the whole process, so one test runs at a time.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn faults() -> Vec<(Fault, FaultReach)> {
    let failing = ERRORS.into_iter().flat_map(|errno| {
        [FaultReach::Once, FaultReach::FromThere].map(|reach| (Fault::Fails(errno), reach))
    });
    // An interrupted call is repeated, so it may strike only once; a short write may strike forever.
    let harmless = [
        (Fault::Fails(Errno::INTR), FaultReach::Once),
        (Fault::Short, FaultReach::Once),
        (Fault::Short, FaultReach::FromThere),
    ];
    failing.chain(harmless).collect()
}

fn is_harmless(fault: Fault) -> bool {
    fault == Fault::Short || fault == Fault::Fails(Errno::INTR)
}

struct Place {
    _limit: limit::Limit,
    _temp: tempfile::TempDir,
    root: PathBuf,
    folder: Folder,
}

/// Creates a folder whose lock was granted before, so that every writer that is kept open is open.
fn place(resource: &Resource) -> Place {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    let folder = Folder::open(root.join("locks")).unwrap();
    std::fs::create_dir_all(root.join("a/b")).unwrap();
    let place = Place { _limit: limit::Limit::of_test(), _temp: temp, root, folder };
    assert!(take(&place, resource).release().trouble.is_none());
    place
}

fn resources() -> [Resource; 2] {
    [Resource::Key("k".into()), Resource::Directory("a/b".into())]
}

fn at(place: &Place, resource: &Resource) -> Resource {
    match resource {
        Resource::Directory(path) => Resource::Directory(place.root.join(path)),
        Resource::Key(_) | Resource::Session(_) | Resource::Vendor(_) => resource.clone(),
    }
}

fn request() -> Request {
    Request { run: Some(RunName::new("r-1").unwrap()), ..Request::default() }
}

fn take(place: &Place, resource: &Resource) -> Guard {
    place.folder.try_acquire(&at(place, resource), &request()).unwrap()
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Returns the lock files that are locked now, tried through our own descriptions.
fn locked(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.as_bytes()[1] == b'-' {
            let file = rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).unwrap();
            if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                found.push(name);
            }
        }
    }
    found
}

/// Calls `step` with n = 1, 2, ... until no fault fires any more; returns how many points there were.
fn walk(fault: Fault, reach: FaultReach, mut step: impl FnMut(usize, Fault, FaultReach) -> bool) -> usize {
    (1..).find(|n| !step(*n, fault, reach)).unwrap() - 1
}

#[test]
fn an_acquire_struck_anywhere_grants_or_leaves_nothing_behind() {
    let _turn = turn();
    for resource in resources() {
        for (fault, reach) in faults() {
            let place = place(&resource);
            let mut last = Fence(0);
            let points = walk(fault, reach, |n, fault, reach| {
                let before = open_descriptors();
                let armed = arm(n, fault, reach);
                let outcome = place.folder.try_acquire(&at(&place, &resource), &request());
                let struck = armed.struck() > 0;
                let story = format!("{fault:?} {reach:?} at {n} of {:?}", armed.operations());
                drop(armed);
                match outcome {
                    Ok(guard) => {
                        assert!(guard.fence() > last, "{story}");
                        last = guard.fence();
                        assert!(!locked(place.folder.path()).is_empty(), "{story}");
                        assert_eq!(guard.release().mark, ReleaseMark::Released, "{story}");
                    }
                    Err(error) => {
                        assert!(!is_harmless(fault), "{story}: {error}");
                        assert!(!matches!(error, AcquireError::Busy(_)), "{story}: {error}");
                        assert!(names(&error, fault), "{story}: {error:?}");
                    }
                }
                assert_eq!(locked(place.folder.path()), Vec::<String>::new(), "{story}");
                assert_eq!(open_descriptors(), before, "{story}");
                struck
            });
            assert!(points >= 5, "{resource}: only {points} points");
            let next = take(&place, &resource);
            assert!(next.fence() > last);
        }
    }
}

/// Whether the injected error is the one that came out.
fn names(error: &(dyn std::error::Error + 'static), fault: Fault) -> bool {
    let Fault::Fails(errno) = fault else { return true };
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<Errno>() == Some(&errno) {
            return true;
        }
        cause = error.source();
    }
    false
}

#[test]
fn a_release_struck_anywhere_gives_the_lock_back_and_returns_the_first_error() {
    let _turn = turn();
    for resource in resources() {
        for (fault, reach) in faults() {
            let place = place(&resource);
            let mut last = Fence(0);
            let points = walk(fault, reach, |n, fault, reach| {
                let before = open_descriptors();
                let guard = take(&place, &resource);
                assert!(guard.fence() > last);
                last = guard.fence();
                let armed = arm(n, fault, reach);
                let receipt = guard.release();
                let struck = armed.struck() > 0;
                let story = format!("{fault:?} {reach:?} at {n} of {:?}", armed.operations());
                drop(armed);
                assert_eq!(locked(place.folder.path()), Vec::<String>::new(), "{story}");
                assert_eq!(open_descriptors(), before, "{story}");
                match receipt.trouble {
                    Some(trouble) => {
                        assert!(names(&trouble, fault) && !is_harmless(fault), "{story}: {trouble:?}");
                    }
                    None => assert_eq!(receipt.mark, ReleaseMark::Released, "{story}"),
                }
                struck
            });
            assert!(points >= 2, "{resource}: only {points} points");
        }
    }
}

#[test]
fn a_dropped_guard_struck_anywhere_gives_the_lock_back() {
    let _turn = turn();
    let resource = Resource::Key("k".into());
    let place = place(&resource);
    for (fault, reach) in faults() {
        walk(fault, reach, |n, fault, reach| {
            let guard = take(&place, &resource);
            let armed = arm(n, fault, reach);
            drop(guard);
            let struck = armed.struck() > 0;
            drop(armed);
            assert_eq!(locked(place.folder.path()), Vec::<String>::new(), "{fault:?} at {n}");
            struck
        });
    }
}

#[test]
fn a_new_fence_struck_anywhere_keeps_the_lock_and_never_shrinks() {
    let _turn = turn();
    for resource in resources() {
        for (fault, reach) in faults() {
            let place = place(&resource);
            let mut guard = take(&place, &resource);
            let held = locked(place.folder.path());
            let before = open_descriptors();
            let mut last = guard.fence();
            walk(fault, reach, |n, fault, reach| {
                let armed = arm(n, fault, reach);
                let outcome = guard.new_fence(&request());
                let struck = armed.struck() > 0;
                let story = format!("{fault:?} {reach:?} at {n} of {:?}", armed.operations());
                drop(armed);
                match outcome {
                    Ok(fence) => assert!(fence > last && fence == guard.fence(), "{story}"),
                    Err(trouble) => {
                        assert!(names(&trouble, fault) && !is_harmless(fault), "{story}: {trouble:?}");
                        assert_eq!(guard.fence(), last, "{story}");
                    }
                }
                last = guard.fence();
                assert_eq!(locked(place.folder.path()), held, "{story}");
                assert_eq!(open_descriptors(), before, "{story}");
                struck
            });
            drop(guard);
            assert!(take(&place, &resource).fence() > last);
        }
    }
}

#[test]
fn an_append_struck_anywhere_appends_whole_records_or_nothing_and_the_release_goes_through() {
    let _turn = turn();
    for (fault, reach) in faults() {
        let resource = Resource::Key("k".into());
        let place = place(&resource);
        let path = place.root.join("data");
        let mut written = 0;
        let points = walk(fault, reach, |n, fault, reach| {
            let mut guard = take(&place, &resource);
            let mut file = guard.open_fenced(&path).unwrap();
            let before = std::fs::read(&path).unwrap();
            let open = open_descriptors();
            let armed = arm(n, fault, reach);
            let outcome = file.append(guard.fence(), format!("record {n}").as_bytes());
            let struck = armed.struck() > 0;
            let story = format!("{fault:?} {reach:?} at {n} of {:?}", armed.operations());
            drop(armed);
            match outcome {
                Ok(appended) => {
                    assert_eq!(appended.change, None, "{story}");
                    written += 1;
                }
                Err(error @ AppendError::Failed { .. }) => {
                    assert!(names(&error, fault) && !is_harmless(fault), "{story}: {error:?}");
                    let after = std::fs::read(&path).unwrap();
                    // What could not be removed is a torn line, which no reader counts.
                    assert!(after.starts_with(&before), "{story}");
                }
                Err(error) => panic!("{story}: {error}"),
            }
            assert_eq!(FencedFile::read(&path).unwrap().records.len(), written, "{story}");
            assert_eq!(open_descriptors(), open, "{story}");
            let receipt = guard.release();
            assert_eq!(receipt.mark, ReleaseMark::Released, "{story}");
            struck
        });
        assert!(points >= 5, "only {points} points");
    }
}

#[test]
fn trouble_with_a_watched_file_never_prevents_the_release() {
    let _turn = turn();
    for errno in [Errno::IO, Errno::MFILE, Errno::NOENT] {
        let resource = Resource::Key("k".into());
        let place = place(&resource);
        let path = place.root.join("data");
        walk(Fault::Fails(errno), FaultReach::FromThere, |n, fault, reach| {
            let mut guard = take(&place, &resource);
            let mut file = guard.open_fenced(&path).unwrap();
            let _ = file.append(guard.fence(), b"x").unwrap();
            let armed = arm(n, fault, reach);
            let receipt = guard.release();
            let struck = armed.struck() > 0;
            drop(armed);
            assert_eq!(locked(place.folder.path()), Vec::<String>::new(), "{errno} at {n}");
            assert!(
                !struck || receipt.trouble.is_some() || !receipt.changes.is_empty(),
                "{errno} at {n}: {receipt:?}"
            );
            struck
        });
    }
}

/// An error while searching for survivors must not pass for "none is left".
#[test]
fn a_search_for_survivors_struck_anywhere_never_overlooks_one() {
    let _turn = turn();
    let resource = Resource::Key("k".into());
    let place = place(&resource);
    let run = RunName::new("the-run").unwrap();
    let guard = place
        .folder
        .try_acquire(&resource, &Request { run: Some(run), survivors: Survivors::Wait, ..Request::default() })
        .unwrap();
    let mut survivor = std::process::Command::new("cat")
        .env(pinfold_lock::RUN_VARIABLE, "the-run")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Its answer proves that its exec is over, and that every copy of our descriptors is gone.
    let mut echo = [0];
    survivor.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    survivor.stdout.as_mut().unwrap().read_exact(&mut echo).unwrap();
    // The flock goes but the mark stays: as if the holder had been killed.
    assert_eq!(guard.surrender().mark, ReleaseMark::Unreleased);
    for errno in [Errno::IO, Errno::MFILE] {
        walk(Fault::Fails(errno), FaultReach::Once, |n, fault, reach| {
            let armed = arm(n, fault, reach);
            let outcome = place.folder.try_acquire(&resource, &request());
            let struck = armed.struck() > 0;
            let story = format!("{errno} at {n}: {:?}", armed.operations().get(n.saturating_sub(3)..n));
            drop(armed);
            assert!(outcome.is_err(), "{story}");
            assert_eq!(locked(place.folder.path()), Vec::<String>::new(), "{story}");
            struck
        });
    }
    drop(survivor.stdin.take());
    survivor.wait().unwrap();
    assert!(place.folder.try_acquire(&resource, &request()).is_ok());
}

#[test]
fn a_folder_struck_anywhere_while_it_is_opened_is_refused_or_whole() {
    let _turn = turn();
    for (fault, reach) in faults() {
        let temp = tempfile::tempdir().unwrap();
        walk(fault, reach, |n, fault, reach| {
            let path = temp.path().join(format!("{n}/locks"));
            let before = open_descriptors();
            let armed = arm(n, fault, reach);
            let outcome = Folder::open(&path);
            let struck = armed.struck() > 0;
            let story = format!("{fault:?} {reach:?} at {n} of {:?}", armed.operations());
            drop(armed);
            if let Ok(folder) = outcome {
                drop(folder.try_acquire(&Resource::Key("k".into()), &request()).unwrap());
            } else {
                assert!(!is_harmless(fault), "{story}");
            }
            assert_eq!(open_descriptors(), before, "{story}");
            // A search through /proc makes thousands of operations; what it misses is found at the grant.
            struck && n < 60
        });
    }
}
