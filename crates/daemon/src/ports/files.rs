//! Files that the loop decides about: folders of sessions, values of `--env`, the configuration, unrecorded
//! stops. A file system may block, so the loop itself never uses these.

use super::Then;
use super::stops::{NotedStop, Stops};
use crate::define::before_start::{BeforeStart, BeforeStartFindings, first_missing};
use crate::define::config::{self, Config, LoadError};
use crate::define::holder_clue::HolderClue;
use crate::define::kept::{Saved, TranscriptCopy};
use crate::define::values::Values;
use pinfold_core::life::HolderSeen;
use pinfold_kernel::private::{self, Wider};
use pinfold_store::{SessionId, Ulid};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use tracing::warn;

/// Makes, reads and removes files.
pub(crate) trait Files: Send + Sync {
    /// Makes the folder of a new session, and the one that contains it.
    fn make_session(&self, folder: PathBuf, then: Then<Result<(), NotMade>>);

    /// Removes the folder of a session that was not created after all; a folder with content stays.
    fn remove_empty(&self, folder: PathBuf);

    /// Deletes the folder of a session and what is left of its shim's control group; returns how many bytes
    /// that was.
    fn delete(&self, folder: PathBuf, listen: PathBuf, then: Then<Result<u64, String>>);

    /// Deletes values that no record names any more. It may have to wait for a backup.
    fn remove_values(&self, values: Values, file: Ulid, then: Then<()>);

    fn read_config(&self, file: PathBuf, then: Then<Result<Config, LoadError>>);

    /// Checks what a vendor has of a session, before a run of it.
    fn look_for(&self, before: BeforeStart, then: Then<BeforeStartFindings>);

    /// Copies what a vendor has written since.
    fn keep(&self, keeping: TranscriptCopy, then: Then<io::Result<Saved>>) {
        then(keeping.keep());
    }

    /// Finds the process that has the vendor's own lock at this path; `resource` is its name for people.
    fn writer_of(&self, lock: PathBuf, resource: String, then: Then<Option<HolderSeen>>);

    /// Finds the process that an agent names as the holder of what it could not get.
    fn holder_of(&self, clue: HolderClue, then: Then<Option<HolderSeen>>) {
        then(clue.look());
    }

    /// The first of these files that does not exist.
    fn missing(&self, files: Vec<String>, then: Then<Option<String>>) {
        then(first_missing(&files));
    }

    /// Reads the stops that an earlier daemon left, and makes the file if there is none. Blocks, so it runs
    /// before the loop begins.
    fn open_stops(&self, file: PathBuf) -> io::Result<Vec<NotedStop>>;

    /// Notes a stop; it is on disk when `then` is called. Stops are noted and settled in the order of the
    /// calls.
    fn note_stop(&self, noted: NotedStop, then: Then<io::Result<()>>);

    /// The stop noted of a session is now recorded, or no longer counts.
    fn settle_stop(&self, session: SessionId);
}

/// The process that has a flock on a file of the vendor. The kernel is asked: no lock is tried.
pub(crate) fn writer(lock: &Path, resource: String) -> Option<HolderSeen> {
    let pid = pinfold_kernel::proc::fdinfo::holder(lock)?;
    let command = Some(pinfold_kernel::proc::command(pid)).filter(|command| !command.is_empty());
    Some(HolderSeen { resource, pid: Some(pid), command, session: None, since: None })
}

/// A folder that could not be made.
#[derive(Debug)]
pub(crate) struct NotMade {
    pub(crate) what: &'static str,
    pub(crate) error: io::Error,
}

/// A task for the thread that has the file of stops.
type Order = Box<dyn FnOnce(&mut Stops) + Send>;

/// Files of this machine, handled by pool threads.
#[derive(Default)]
pub(crate) struct DiskFiles {
    /// The thread that has the file of stops.
    stops: Mutex<Option<Sender<Order>>>,
}

impl Files for DiskFiles {
    fn make_session(&self, folder: PathBuf, then: Then<Result<(), NotMade>>) {
        tokio::task::spawn_blocking(move || then(make_session(&folder)));
    }

    fn remove_empty(&self, folder: PathBuf) {
        tokio::task::spawn_blocking(move || _ = std::fs::remove_dir(folder));
    }

    fn delete(&self, folder: PathBuf, listen: PathBuf, then: Then<Result<u64, String>>) {
        tokio::task::spawn_blocking(move || {
            // What a run put into its group and could not be removed then.
            _ = pinfold_shim::client::sweep(&listen);
            then(delete(&folder));
        });
    }

    fn remove_values(&self, values: Values, file: Ulid, then: Then<()>) {
        tokio::task::spawn_blocking(move || {
            values.remove(file);
            then(());
        });
    }

    fn read_config(&self, file: PathBuf, then: Then<Result<Config, LoadError>>) {
        tokio::task::spawn_blocking(move || then(config::load(&file)));
    }

    fn look_for(&self, before: BeforeStart, then: Then<BeforeStartFindings>) {
        tokio::task::spawn_blocking(move || then(before.look()));
    }

    fn keep(&self, keeping: TranscriptCopy, then: Then<io::Result<Saved>>) {
        tokio::task::spawn_blocking(move || then(keeping.keep()));
    }

    fn writer_of(&self, lock: PathBuf, resource: String, then: Then<Option<HolderSeen>>) {
        tokio::task::spawn_blocking(move || then(writer(&lock, resource)));
    }

    fn holder_of(&self, clue: HolderClue, then: Then<Option<HolderSeen>>) {
        tokio::task::spawn_blocking(move || then(clue.look()));
    }

    fn missing(&self, files: Vec<String>, then: Then<Option<String>>) {
        tokio::task::spawn_blocking(move || then(first_missing(&files)));
    }

    /// One thread has the file as long as the daemon lives: no line is ever written by two.
    fn open_stops(&self, file: PathBuf) -> io::Result<Vec<NotedStop>> {
        let mut stops = Stops::open(file)?;
        let left = stops.all();
        let (orders, taken) = channel::<Order>();
        std::thread::Builder::new()
            .name("stops".into())
            .spawn(move || taken.into_iter().for_each(|order| order(&mut stops)))?;
        *self.stops.lock().unwrap_or_else(PoisonError::into_inner) = Some(orders);
        Ok(left)
    }

    fn note_stop(&self, noted: NotedStop, then: Then<io::Result<()>>) {
        let orders = self.stops.lock().unwrap_or_else(PoisonError::into_inner);
        match &*orders {
            Some(orders) => _ = orders.send(Box::new(move |stops| then(stops.note(noted)))),
            None => then(Err(io::Error::other("the file of stops is not open"))),
        }
    }

    fn settle_stop(&self, session: SessionId) {
        let orders = self.stops.lock().unwrap_or_else(PoisonError::into_inner);
        let settle = move |stops: &mut Stops| {
            if let Err(error) = stops.settle(session) {
                warn!("a stop stays noted: {error}");
            }
        };
        if let Some(orders) = &*orders {
            _ = orders.send(Box::new(settle));
        }
    }
}

/// Makes the folder of a new session, and the one that contains it.
pub(crate) fn make_session(folder: &Path) -> Result<(), NotMade> {
    let make = |folder: &Path, what| {
        let made = private::make_private(folder, Wider::Tighten);
        made.map_err(|error| NotMade { what, error: error.into() })
    };
    if let Some(around) = folder.parent() {
        make(around, "the home cannot be written")?;
    }
    make(folder, "the folder of the session could not be made")
}

/// Deletes a folder with everything in it; returns how many bytes that was.
pub(crate) fn delete(folder: &Path) -> Result<u64, String> {
    let sizes = std::fs::read_dir(folder).map(|entries| {
        let sizes = entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|facts| facts.len());
        sizes.sum()
    });
    match std::fs::remove_dir_all(folder) {
        Ok(()) => Ok(sizes.unwrap_or(0)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error.to_string()),
    }
}
