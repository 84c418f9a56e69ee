//! The real ports, each by itself: what a loop relies on.

use super::Then;
use super::clock::{Alarm, Clock, MachineClock};
use super::locks::{Folders, Locks, LocksRefused, LocksWanted, Lost, MachineLocks, Obstacle, RunLocks};
use super::memory::{MemoryThread, RunMemoryWatch};
use crate::define::home::Home;
use crate::memory::{RunWatch, Subject, Without};
use pinfold_core::RunNumber;
use pinfold_core::rules::memory::ReadingSource;
use pinfold_lock::{Resource, SessionName};
use pinfold_store::{SessionId, Ulid};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, oneshot};

/// Far more than anything takes on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(240);

/// Lock folders, and a directory that runs want.
struct Ground {
    locks: MachineLocks,
    home: Home,
    temp: tempfile::TempDir,
}

fn ground() -> Ground {
    let temp = tempfile::tempdir().unwrap();
    let state = temp.path().join("home");
    std::fs::create_dir_all(&state).unwrap();
    let home = Home {
        runtime: state.clone(),
        config: state.join("config.toml"),
        user_locks: temp.path().join("locks"),
        variables: Vec::new(),
        refused: None,
        state,
    };
    let folders = Folders::open(&home).unwrap();
    let locks = MachineLocks::new(folders, Arc::new(Semaphore::new(8)), Arc::default());
    Ground { locks, home, temp }
}

impl Ground {
    async fn reserve(&self, session: &str) -> Result<Box<dyn RunLocks>, LocksRefused> {
        let wanted = wanted(session, &self.temp.path().canonicalize().unwrap());
        outcome(|then| self.locks.reserve(wanted, then)).await.unwrap()
    }

    /// Takes the locks of all sessions through separate descriptors, as another process would.
    fn held_by_somebody(&self) -> Vec<File> {
        let files = std::fs::read_dir(self.home.session_locks()).unwrap();
        let files = files.map(|entry| File::open(entry.unwrap().path()).unwrap());
        let files: Vec<File> = files.filter(|file| file.metadata().unwrap().is_file()).collect();
        files.iter().for_each(|file| flock(file, FlockOperation::NonBlockingLockExclusive).unwrap());
        files
    }

    async fn is_absent(&self, session: &str) -> bool {
        let listen = self.temp.path().join("no-such-socket");
        let lost = Lost { name: session.to_owned(), run: None, listen };
        outcome(|then| self.locks.prove_absent(lost, then)).await.unwrap()
    }
}

fn wanted(session: &str, dir: &Path) -> LocksWanted {
    let definition = serde_json::json!({ "agent": "a", "command": ["agent"], "dir": dir, "dir_lock": true, "mode": "always" });
    LocksWanted::new(session, &serde_json::from_value(definition).unwrap(), String::new()).unwrap()
}

/// The outcome of an order; `None` if it will never be reported.
async fn outcome<T: Send + 'static>(order: impl FnOnce(Then<T>)) -> Option<T> {
    let (sender, receiver) = oneshot::channel();
    order(Box::new(move |outcome| _ = sender.send(outcome)));
    tokio::time::timeout(PATIENCE, receiver).await.expect("an outcome, or that there is none").ok()
}

#[tokio::test]
async fn a_run_gets_all_of_its_locks_or_none() {
    let ground = ground();
    let first = ground.reserve("first").await.ok().expect("nobody has them");
    let Err(LocksRefused::Busy { resource: Resource::Directory(_), .. }) = ground.reserve("second").await
    else {
        panic!("two runs in one directory");
    };
    assert!(ground.is_absent("second").await, "its own lock is free again");
    drop(first);
    ground.reserve("second").await.ok().expect("nobody has them");
}

#[tokio::test]
async fn a_session_is_absent_when_nobody_has_its_lock() {
    let ground = ground();
    let held = ground.reserve("first").await.ok().expect("nobody has it");
    assert!(!ground.is_absent("first").await);
    drop(held);
    assert!(ground.is_absent("first").await);
}

#[tokio::test]
async fn who_waits_for_a_lock_hears_when_it_is_free_and_nothing_after_giving_up() {
    let ground = ground();
    drop(ground.reserve("first").await.ok().expect("nobody has it"));
    let held = ground.held_by_somebody();
    let resource = || Resource::Session(SessionName::new("first").unwrap());
    let given_up =
        outcome(|then| ground.locks.wait_for(Obstacle::Lock(resource()), then).unwrap().cancel()).await;
    assert_eq!(given_up, None);
    let mut held = Some(held);
    let free = outcome(|then| {
        _ = ground.locks.wait_for(Obstacle::Lock(resource()), then).unwrap();
        held = None;
    });
    assert_eq!(free.await, Some(()));
}

#[tokio::test]
async fn a_reminder_comes_when_its_moment_has_passed() {
    let clock = MachineClock::new(Arc::new(Alarm::new().unwrap()));
    let at = clock.awake() + Duration::from_millis(30);
    assert_eq!(outcome(|then| clock.remind(at, then)).await, Some(()));
    assert!(Instant::now() >= at);
}

#[test]
fn a_run_is_read_exactly_when_that_is_asked_for() {
    let (sender, readings) = std::sync::mpsc::channel();
    let mut memory =
        MemoryThread::new(Without::default(), move |run, read| _ = sender.send((run, read.source)));
    let run = (SessionId(Ulid::new(1, 1)), RunNumber(1));
    let subject = Subject { agent: std::process::id(), shim: None };
    memory.watch(run, RunWatch { subject, limit: u64::MAX, sample: Duration::from_secs(3600) });
    memory.confirm(run);
    let exact = std::iter::from_fn(|| readings.recv_timeout(PATIENCE).ok())
        .find(|read| *read == (run, ReadingSource::Shares));
    assert!(exact.is_some(), "no exact reading came");
}
