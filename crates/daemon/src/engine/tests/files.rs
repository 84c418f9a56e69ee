//! Files without threads: everything asked for is done when the call returns.

use crate::define::before_start::{BeforeStart, BeforeStartFindings};
use crate::define::config::{Config, LoadError};
use crate::define::values::Values;
use crate::ports::Then;
use crate::ports::files::{Files, NotMade, make_session, writer};
use crate::ports::stops::{NotedStop, Stops};
use pinfold_core::life::HolderSeen;
use pinfold_store::{SessionId, Ulid};
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;

#[derive(Default)]
pub(super) struct AtOnce {
    stops: Mutex<Stops>,
}

impl Files for AtOnce {
    fn make_session(&self, folder: PathBuf, then: Then<Result<(), NotMade>>) {
        then(make_session(&folder));
    }

    fn remove_empty(&self, folder: PathBuf) {
        _ = std::fs::remove_dir(folder);
    }

    fn delete(&self, folder: PathBuf, _listen: PathBuf, then: Then<Result<u64, String>>) {
        then(std::fs::remove_dir_all(folder).map(|()| 0).map_err(|error| error.to_string()));
    }

    fn remove_values(&self, values: Values, file: Ulid, then: Then<()>) {
        values.remove(file);
        then(());
    }

    fn read_config(&self, file: PathBuf, then: Then<Result<Config, LoadError>>) {
        then(crate::define::config::load(&file));
    }

    fn look_for(&self, before: BeforeStart, then: Then<BeforeStartFindings>) {
        then(before.look());
    }

    fn writer_of(&self, lock: PathBuf, resource: String, then: Then<Option<HolderSeen>>) {
        then(writer(&lock, resource));
    }

    fn open_stops(&self, file: PathBuf) -> io::Result<Vec<NotedStop>> {
        let stops = Stops::open(file)?;
        let left = stops.all();
        *self.stops.lock().unwrap() = stops;
        Ok(left)
    }

    fn note_stop(&self, noted: NotedStop, then: Then<io::Result<()>>) {
        then(self.stops.lock().unwrap().note(noted));
    }

    fn settle_stop(&self, session: SessionId) {
        self.stops.lock().unwrap().settle(session).unwrap();
    }
}
