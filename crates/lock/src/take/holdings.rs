//! Knows which lock files this process holds, so that a second acquire by the same holder fails at once.

use crate::files::record::RunName;
use crate::resource::FileId;
use std::sync::{Mutex, PoisonError};

/// One file of one guard. There are few of them, and the last to come is usually the first to go.
#[derive(Debug, Clone)]
struct Holding {
    file: FileId,
    guard: u64,
    pid: u32,
    run: Option<RunName>,
}

#[derive(Debug)]
struct Table {
    guards: u64,
    holdings: Vec<Holding>,
}

static HELD: Mutex<Table> = Mutex::new(Table { guards: 0, holdings: Vec::new() });

/// One guard's entries; dropping it removes them.
#[derive(Debug)]
pub(crate) struct HoldingEntry {
    guard: u64,
    files: usize,
}

/// Enters the files of one guard of the process `pid`, which is the caller.
pub(crate) fn enter(files: &[FileId], pid: u32, run: Option<&RunName>) -> HoldingEntry {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    held.guards += 1;
    let guard = held.guards;
    held.holdings.extend(files.iter().map(|file| Holding { file: *file, guard, pid, run: run.cloned() }));
    HoldingEntry { guard, files: files.len() }
}

/// Whether the holder `run` (or, without one, this process) holds the file.
pub(crate) fn holds(file: FileId, run: Option<&RunName>) -> bool {
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    // A forked child inherits the table but does not hold the locks itself: the pid shows that.
    let own = std::process::id();
    held.holdings
        .iter()
        .any(|holding| holding.file == file && holding.pid == own && holding.run.as_ref() == run)
}

impl Drop for HoldingEntry {
    fn drop(&mut self) {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..self.files {
            if let Some(at) = held.holdings.iter().rposition(|holding| holding.guard == self.guard) {
                held.holdings.remove(at);
            }
        }
    }
}
