//! Each file of a home and of its lock folder in turn: removed, moved, replaced or truncated, under a daemon,
//! after `down` and after kill -9. Nothing acknowledged is lost silently, nothing hangs, no session has two
//! agents, and the hints work as written.

mod case;
mod cure;
mod files;
mod harm;
mod inhabited;

use case::{Row, try_one};
use files::{Kind, files};
use harm::Harm;
use inhabited::Inhabited;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the daemon does while a file is harmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Running,
    Down,
    Killed,
}

/// Tests that run in parallel share the machine: more threads than this make none of them faster.
const THREADS: usize = 4;

/// Harms every file that exists at that time in each way; the test fails with the wrong rows.
fn each(when: When, wanted: impl Fn(Kind) -> bool) {
    let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| wanted(*kind)).collect();
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS.min(kinds.len()) {
            scope.spawn(|| {
                while let Some(kind) = kinds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = each_way(*kind, when);
                    rows.lock().unwrap().extend(found);
                }
            });
        }
    });
    let rows = rows.into_inner().unwrap();
    rows.iter().for_each(|row| println!("{row}"));
    let wrong: Vec<String> = rows.iter().filter(|row| row.wrong.is_some()).map(Row::to_string).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

fn each_way(kind: Kind, when: When) -> Vec<Row> {
    let mut home = Inhabited::new();
    let mut rows = Vec::new();
    for harm in Harm::ALL {
        let mut way = 0;
        loop {
            let row = try_one(&home, kind, harm, when, way);
            let (more, wrong, absent) = (row.ways > way + 1, row.wrong.is_some(), row.is_absent());
            let cured = row.ways > 0;
            rows.push(row);
            if absent {
                return rows;
            }
            // A home that went wrong may contain anything, and one that began anew contains nothing.
            if wrong || (cured && !home.is_whole()) {
                home = Inhabited::new();
            }
            if !more || wrong {
                break;
            }
            way += 1;
        }
    }
    rows
}

#[test]
fn no_file_of_a_home_is_unknown_here() {
    let home = Inhabited::new();
    home.world.ok(&["down"]);
    files(&home.world);
}

fn is_of_store(kind: Kind) -> bool {
    matches!(kind, Kind::Database | Kind::Log | Kind::Index | Kind::Witness)
}

#[test]
fn files_of_the_store_under_a_daemon() {
    each(When::Running, is_of_store);
}

#[test]
fn files_of_the_store_after_down() {
    each(When::Down, is_of_store);
}

#[test]
fn files_of_the_store_after_kill_9() {
    each(When::Killed, is_of_store);
}

fn is_of_search(kind: Kind) -> bool {
    matches!(kind, Kind::Search | Kind::SearchLog | Kind::SearchIndex)
}

#[test]
fn files_of_the_search_under_a_daemon() {
    each(When::Running, is_of_search);
}

#[test]
fn files_of_the_search_after_down() {
    each(When::Down, is_of_search);
}

#[test]
fn files_of_the_search_after_kill_9() {
    each(When::Killed, is_of_search);
}

fn is_another(kind: Kind) -> bool {
    !is_of_store(kind) && !is_of_search(kind)
}

#[test]
fn all_other_files_under_a_daemon() {
    each(When::Running, is_another);
}

#[test]
fn all_other_files_after_down() {
    each(When::Down, is_another);
}

#[test]
fn all_other_files_after_kill_9() {
    each(When::Killed, |kind| is_another(kind) && is_left_otherwise(kind));
}

/// Whether a killed daemon leaves such a file in another state than one that goes down.
fn is_left_otherwise(kind: Kind) -> bool {
    match kind {
        Kind::Database
        | Kind::Log
        | Kind::Index
        | Kind::Witness
        | Kind::DaemonLock
        | Kind::DaemonPlace
        | Kind::Audit
        | Kind::Socket
        | Kind::ShimSocket
        | Kind::Output
        | Kind::Exits
        | Kind::Turn
        | Kind::SessionLock
        | Kind::SessionLedger
        | Kind::DirectoryLock
        | Kind::Ledger
        | Kind::Search
        | Kind::SearchLog
        | Kind::SearchIndex => true,
        Kind::Reserve
        | Kind::Stops
        | Kind::Marker
        | Kind::Values
        | Kind::DaemonLog
        | Kind::Config
        | Kind::SessionTest
        | Kind::PathLock
        | Kind::KeyLock
        | Kind::Gate
        | Kind::Test
        | Kind::AccountKey
        | Kind::Old => false,
    }
}
