//! Files that the loop decides about: folders of sessions, values of `--env`, the configuration, stops that are not
//! recorded. A file system may keep whoever uses it waiting, so that is never the loop.

use super::Then;
use super::stops::{Noted, Stops};
use crate::define::before_start::{BeforeStart, Found, first_missing};
use crate::define::config::{self, Config, LoadError};
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
    /// Makes the folder of a new session, and the one that it is in.
    fn make_session(&self, folder: PathBuf, then: Then<Result<(), NotMade>>);

    /// Removes the folder of a session that came to nothing; one that has something in it stays.
    fn remove_empty(&self, folder: PathBuf);

    /// Deletes the folder of a session, and what is left of its shim's control group; says how many bytes that was.
    fn delete(&self, folder: PathBuf, listen: PathBuf, then: Then<Result<u64, String>>);

    /// Removes values that no record names any more. It may have to wait for a copy of everything.
    fn remove_values(&self, values: Values, file: Ulid, then: Then<()>);

    fn read_config(&self, file: PathBuf, then: Then<Result<Config, LoadError>>);

    /// Looks at what a vendor has of a session, before a run of it.
    fn look_for(&self, before: BeforeStart, then: Then<Found>);

    /// Who has the vendor's own lock at this path; `resource` is what it is called.
    fn writer_of(&self, lock: PathBuf, resource: String, then: Then<Option<HolderSeen>>);

    /// The first of these files that is not there.
    fn missing(&self, files: Vec<String>, then: Then<Option<String>>) {
        then(first_missing(&files));
    }

    /// Reads which stops an earlier daemon left, and makes the file where there is none. Before the loop begins: blocks.
    fn open_stops(&self, file: PathBuf) -> io::Result<Vec<Noted>>;

    /// Notes a stop; it is on disk when that is told. Stops are noted and settled in the order in which that was asked.
    fn note_stop(&self, noted: Noted, then: Then<io::Result<()>>);

    /// What was noted of a session is recorded now, or does not count any more.
    fn settle_stop(&self, session: SessionId);
}

/// The process that has a flock on a file of the vendor's. The kernel is asked for it: no lock is tried.
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

/// Something that is done with the file of stops.
type Order = Box<dyn FnOnce(&mut Stops) + Send>;

/// Files of this machine, by threads of the pool.
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
            // What a run put into its group and nothing could remove then.
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

    fn look_for(&self, before: BeforeStart, then: Then<Found>) {
        tokio::task::spawn_blocking(move || then(before.look()));
    }

    fn writer_of(&self, lock: PathBuf, resource: String, then: Then<Option<HolderSeen>>) {
        tokio::task::spawn_blocking(move || then(writer(&lock, resource)));
    }

    fn missing(&self, files: Vec<String>, then: Then<Option<String>>) {
        tokio::task::spawn_blocking(move || then(first_missing(&files)));
    }

    /// One thread has the file, for as long as the daemon lives: a line is never written by two.
    fn open_stops(&self, file: PathBuf) -> io::Result<Vec<Noted>> {
        let mut stops = Stops::open(file)?;
        let left = stops.all();
        let (orders, taken) = channel::<Order>();
        std::thread::Builder::new()
            .name("stops".into())
            .spawn(move || taken.into_iter().for_each(|order| order(&mut stops)))?;
        *self.stops.lock().unwrap_or_else(PoisonError::into_inner) = Some(orders);
        Ok(left)
    }

    fn note_stop(&self, noted: Noted, then: Then<io::Result<()>>) {
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

/// Makes the folder of a new session, and the one that it is in.
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

/// Deletes a folder with everything in it; how many bytes that was.
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
