//! Acquiring and giving back within one process: who gets the lock, and who is told what.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod limit;

use pinfold_lock::{
    AcquireError, BusyBecause, Cancel, Fence, Folder, Guard, ReleaseMark, Request, Resource, RunName,
};
use std::time::{Duration, Instant};

struct Place {
    _limit: limit::Limit,
    _temp: tempfile::TempDir,
    folder: Folder,
    root: std::path::PathBuf,
}

fn place() -> Place {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    Place {
        folder: Folder::open(root.join("locks")).unwrap(),
        _temp: temp,
        root,
        _limit: limit::Limit::of_test(),
    }
}

fn key(name: &str) -> Resource {
    Resource::Key(name.into())
}

fn run(name: &str) -> Request {
    Request { run: Some(RunName::new(name).unwrap()), ..Request::default() }
}

fn take(folder: &Folder, resource: &Resource) -> Guard {
    folder.try_acquire(resource, &Request::default()).unwrap()
}

#[test]
fn fences_grow_with_every_grant() {
    let place = place();
    let mut last = Fence(0);
    for _ in 0..20 {
        let guard = take(&place.folder, &key("k"));
        assert!(guard.fence() > last);
        last = guard.fence();
        let receipt = guard.release();
        assert_eq!((receipt.fence, receipt.mark), (last, ReleaseMark::Released));
        assert!(receipt.trouble.is_none());
    }
}

#[test]
fn a_second_acquire_by_the_same_holder_fails_at_once_and_says_so() {
    let place = place();
    let _guard = take(&place.folder, &key("k"));
    let error = place.folder.acquire(&key("k"), &Request::default()).unwrap_err();
    assert!(matches!(error, AcquireError::AlreadyYours { .. }), "{error}");
    let mine = place.folder.try_acquire(&key("other"), &run("r1")).unwrap();
    let error = place.folder.acquire(&key("other"), &run("r1")).unwrap_err();
    assert!(matches!(error, AcquireError::AlreadyYours { .. }), "{error}");
    drop(mine);
    assert!(place.folder.try_acquire(&key("other"), &run("r1")).is_ok());
}

#[test]
fn two_runs_of_one_process_wait_for_each_other() {
    let place = place();
    let first = place.folder.try_acquire(&key("k"), &run("r1")).unwrap();
    let error = place.folder.try_acquire(&key("k"), &run("r2")).unwrap_err();
    let AcquireError::Busy(busy) = error else { panic!("{error}") };
    assert_eq!(busy.because, BusyBecause::Held);
    assert_eq!(busy.lock.unwrap().holder.identity.unwrap().pid, std::process::id());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| place.folder.acquire(&key("k"), &run("r2")).unwrap().fence());
        let fence = first.fence();
        drop(first);
        assert!(waiter.join().unwrap() > fence);
    });
}

#[test]
fn a_sibling_that_is_being_spawned_has_20_ms_to_let_go() {
    let place = place();
    let _first = place.folder.try_acquire(&key("k"), &run("r1")).unwrap();
    // The shortest of several: it is late each time only if the machine is busy each time.
    let wait = || match place.folder.try_acquire(&key("k"), &run("r2")) {
        Err(AcquireError::Busy(busy)) => busy.waited,
        other => panic!("{other:?}"),
    };
    let shortest = (0..10).map(|_| wait()).min().unwrap();
    assert!(shortest >= Duration::from_millis(20), "busy after {shortest:?}");
}

#[test]
fn a_deadline_ends_a_wait_and_names_the_holder() {
    let place = place();
    let request = Request { reason: Some("a reason".into()), command: "the command".into(), ..run("r1") };
    let _guard = place.folder.try_acquire(&key("k"), &request).unwrap();
    let deadline = Instant::now() + Duration::from_millis(50);
    let error = place.folder.acquire_until(&key("k"), &run("r2"), deadline).unwrap_err();
    assert!(Instant::now() >= deadline);
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("`key:k` is held by pid {} (the command, since ", std::process::id())),
        "{text}"
    );
}

#[test]
fn a_cancelled_wait_ends_and_leaves_nothing_behind() {
    let place = place();
    let guard = place.folder.try_acquire(&key("k"), &run("r1")).unwrap();
    let cancel = Cancel::new().unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| place.folder.acquire_cancellable(&key("k"), &run("r2"), None, &cancel));
        cancel.cancel();
        assert!(matches!(waiter.join().unwrap(), Err(AcquireError::Cancelled { .. })));
    });
    drop(guard);
    // A cancelled run is refused, although the lock is free.
    let late = place.folder.acquire_cancellable(&key("k"), &run("r2"), None, &cancel);
    assert!(matches!(late, Err(AcquireError::Cancelled { .. })));
    assert!(place.folder.try_acquire(&key("k"), &run("r3")).is_ok());
}

#[test]
fn a_panic_gives_the_lock_back() {
    let place = place();
    let folder = place.folder.clone();
    let panicked = std::thread::spawn(move || {
        let _guard = take(&folder, &key("k"));
        panic!("on purpose");
    });
    assert!(panicked.join().is_err());
    assert!(place.folder.try_acquire(&key("k"), &Request::default()).is_ok());
}

#[test]
fn ancestors_and_descendants_exclude_each_other_and_siblings_do_not() {
    let place = place();
    let deep = place.root.join("a/b/c");
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::create_dir_all(place.root.join("a/b/d")).unwrap();
    let directory = |path: &str| Resource::Directory(place.root.join(path));
    let guard = place.folder.try_acquire(&directory("a/b/c"), &run("r1")).unwrap();
    assert_eq!(guard.resource(), deep.to_str().unwrap());
    for other in ["a", "a/b", "a/b/c", "a/b/c/../c"] {
        let error = place.folder.try_acquire(&directory(other), &run("r2")).unwrap_err();
        let AcquireError::Busy(busy) = error else { panic!("{other}: {error}") };
        assert_eq!(busy.lock.unwrap().resource, deep.to_str().unwrap(), "{other}");
    }
    let sibling = place.folder.try_acquire(&directory("a/b/d"), &run("r2")).unwrap();
    drop(guard);
    drop(sibling);
    let above = place.folder.try_acquire(&directory("a"), &run("r1")).unwrap();
    assert!(place.folder.try_acquire(&directory("a/b/d"), &run("r2")).is_err());
    drop(above);
    assert!(place.folder.try_acquire(&directory("a/b/d"), &run("r2")).is_ok());
}

#[test]
fn an_exclusive_waiter_is_not_starved_by_shared_newcomers() {
    let place = place();
    std::fs::create_dir_all(place.root.join("a/b")).unwrap();
    std::fs::create_dir_all(place.root.join("a/c")).unwrap();
    let directory = |path: &str| Resource::Directory(place.root.join(path));
    let below = place.folder.try_acquire(&directory("a/b"), &run("r1")).unwrap();
    std::thread::scope(|scope| {
        let waiter =
            scope.spawn(|| place.folder.acquire(&directory("a"), &run("r2")).map(|guard| guard.release()));
        // The newcomer shares `a` with the holder below, so only the waiter's gate can refuse it.
        let refused = loop {
            match place.folder.try_acquire(&directory("a/c"), &run("r3")) {
                Ok(guard) => drop(guard),
                Err(AcquireError::Busy(busy)) => break busy,
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(refused.because, BusyBecause::Awaited);
        drop(below);
        assert!(waiter.join().unwrap().is_ok());
    });
    assert!(place.folder.try_acquire(&directory("a/c"), &run("r3")).is_ok());
}

#[test]
fn whoever_comes_behind_a_waiter_is_told_who_holds_the_directory() {
    let place = place();
    let directory = Resource::Directory(place.root.clone());
    let request = |reason: &str| Request { reason: Some(reason.into()), ..Request::default() };
    let guard = place.folder.try_acquire(&directory, &request("the holder")).unwrap();
    let cancel = Cancel::new().unwrap();
    let waiting = Request { run: Some(RunName::new("w").unwrap()), ..request("the waiter") };
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| place.folder.acquire_cancellable(&directory, &waiting, None, &cancel));
        for _ in 0..20 {
            let asker = Request { run: Some(RunName::new("a").unwrap()), ..request("the asker") };
            let Err(AcquireError::Busy(busy)) = place.folder.try_acquire(&directory, &asker) else {
                panic!("the lock is held");
            };
            assert_eq!(busy.because, BusyBecause::Held);
            assert_eq!(busy.lock.unwrap().reason.as_deref(), Some("the holder"));
        }
        cancel.cancel();
        assert!(waiter.join().unwrap().is_err());
    });
    drop(guard);
}

#[test]
fn a_symbolic_link_or_a_directory_in_place_of_a_lock_file_is_a_hard_error_and_stays() {
    let place = place();
    drop(take(&place.folder, &key("k")));
    let file = std::fs::read_dir(place.folder.path()).unwrap();
    let path =
        file.map(|entry| entry.unwrap().path()).find(|path| path.to_str().unwrap().contains("/k-")).unwrap();
    let aside = place.root.join("aside");
    std::fs::rename(&path, &aside).unwrap();
    std::os::unix::fs::symlink(&aside, &path).unwrap();
    let error = place.folder.try_acquire(&key("k"), &Request::default()).unwrap_err();
    assert!(matches!(error, AcquireError::NotAFile { .. }), "{error}");
    assert!(path.is_symlink());
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let error = place.folder.try_acquire(&key("k"), &Request::default()).unwrap_err();
    assert!(matches!(error, AcquireError::NotAFile { .. }), "{error}");
    assert!(path.is_dir());
}

#[test]
fn a_lock_file_that_was_removed_while_held_is_not_granted_until_its_holder_has_gone() {
    let place = place();
    let guard = place.folder.try_acquire(&key("k"), &run("r1")).unwrap();
    for entry in std::fs::read_dir(place.folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with("k-") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let error = place.folder.try_acquire(&key("k"), &run("r2")).unwrap_err();
    let AcquireError::Busy(busy) = error else { panic!("{error}") };
    assert_eq!(busy.because, BusyBecause::Removed);
    let seen = place.folder.locks().unwrap();
    assert!(seen.iter().any(|lock| lock.resource == "key:k" && lock.removed), "{seen:?}");
    let fence = guard.fence();
    drop(guard);
    let next = place.folder.try_acquire(&key("k"), &run("r2")).unwrap();
    assert!(next.fence() > fence);
}

#[test]
fn looking_takes_no_lock() {
    use pinfold_lock::fault::{Fault, FaultReach, arm};
    let place = place();
    let _guard = place.folder.try_acquire(&key("k"), &run("r1")).unwrap();
    let armed = arm(usize::MAX, Fault::Short, FaultReach::Once);
    assert_eq!(place.folder.locks().unwrap().len(), 1);
    assert!(place.folder.holder_of(&key("k")).unwrap().is_some());
    place.folder.users_of(&place.root).unwrap();
    let operations = armed.operations();
    assert!(operations.contains(&"readlink") && !operations.contains(&"flock"), "{operations:?}");
}
