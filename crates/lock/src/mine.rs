//! Knows which lock files this process holds, so that a second acquire by the same holder fails at once.

use crate::record::Run;
use crate::resource::FileId;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

type Held = BTreeMap<(FileId, u64), Holding>;

#[derive(Debug, Clone)]
struct Holding {
    pid: u32,
    run: Option<Run>,
}

static HELD: Mutex<(u64, Held)> = Mutex::new((0, BTreeMap::new()));

/// One guard's entries; dropping it takes them out.
#[derive(Debug)]
pub(crate) struct Entry {
    number: u64,
    files: Vec<FileId>,
}

/// Enters the files of one guard of the process `pid`, which is the caller.
pub(crate) fn enter(files: Vec<FileId>, pid: u32, run: Option<&Run>) -> Entry {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    held.0 += 1;
    let number = held.0;
    let holding = Holding { pid, run: run.cloned() };
    for file in &files {
        held.1.insert((*file, number), holding.clone());
    }
    Entry { number, files }
}

/// Whether the holder `run` (or, without one, this process) holds the file.
pub(crate) fn holds(file: FileId, run: Option<&Run>) -> bool {
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    // A forked child inherits the table but holds by its parent's grace: the pid tells.
    let own = std::process::id();
    held.1
        .range((file, 0)..=(file, u64::MAX))
        .any(|(_, holding)| holding.pid == own && holding.run.as_ref() == run)
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        for file in &self.files {
            held.1.remove(&(*file, self.number));
        }
    }
}
