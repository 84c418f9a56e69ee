//! The queue to the one writing thread.

use super::answers::AnswerFiles;
use super::open::{self, Writable};
use super::reader::SqliteReader;
use super::reserve::Reserve;
use super::writer::{CommitJob, SqliteWriter, Surroundings};
use crate::batch::Batch;
use crate::journal::Journal;
use crate::open::{OpenError, Opened, StoreOptions};
use crate::position::StorePosition;
use crate::query::Query;
use crate::ticket::Promise;
use crate::trouble::{Listener, SharedTrouble, Trouble};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// A file that is written by its own thread.
#[derive(Debug)]
pub(crate) struct SqliteJournal {
    path: PathBuf,
    options: StoreOptions,
    opened: Opened,
    jobs: Option<Sender<CommitJob>>,
    writer: Option<JoinHandle<()>>,
    health: SharedTrouble,
    leaving: Arc<AtomicBool>,
    acknowledged: Arc<Mutex<StorePosition>>,
}

impl SqliteJournal {
    /// Opens the file at `path`; a missing or empty one becomes a new store.
    ///
    /// # Errors
    /// A damaged file, or one of a later version, is refused and left as it is.
    pub(crate) fn open(path: &Path, options: &StoreOptions) -> Result<SqliteJournal, OpenError> {
        let Writable { conn, opened, position, witness } = open::open_writer(path, options)?;
        let (jobs, waiting) = channel();
        let (health, leaving) = (SharedTrouble::default(), Arc::<AtomicBool>::default());
        let acknowledged = Arc::new(Mutex::new(position));
        let around = Surroundings {
            path: path.to_owned(),
            witness,
            reserve: Reserve::new(options.reserve.clone()),
            health: health.clone(),
            when_held_up: options.when_held_up,
            leaving: Arc::clone(&leaving),
            acknowledged: Arc::clone(&acknowledged),
            answers: AnswerFiles::new(options),
        };
        let writer = SqliteWriter::new(conn, position, around);
        let writer = thread::Builder::new()
            .name("store".into())
            .spawn(move || writer.run(&waiting))
            .map_err(|source: io::Error| OpenError::Io { path: path.to_owned(), source })?;
        Ok(SqliteJournal {
            path: path.to_owned(),
            options: options.clone(),
            opened,
            jobs: Some(jobs),
            writer: Some(writer),
            health,
            leaving,
            acknowledged,
        })
    }
}

impl Journal for SqliteJournal {
    fn commit(&self, batch: Batch, promise: Promise) {
        // If the writer is gone the job comes back, and dropping it tells its caller.
        if let Some(jobs) = &self.jobs {
            drop(jobs.send(CommitJob { batch, promise }));
        }
    }

    fn position(&self) -> StorePosition {
        *self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trouble(&self) -> Trouble {
        self.health.now()
    }

    fn on_trouble(&self, listener: Listener) {
        self.health.listen(listener);
    }

    fn give_up(&self) {
        self.leaving.store(true, Ordering::Release);
    }

    fn opened(&self) -> Opened {
        self.opened
    }

    fn reader(&self) -> Result<Box<dyn Query>, OpenError> {
        Ok(Box::new(SqliteReader::open_with(&self.path, &self.options)?))
    }
}

impl Drop for SqliteJournal {
    fn drop(&mut self) {
        drop(self.jobs.take());
        self.give_up();
        let Some(writer) = self.writer.take() else { return };
        // If it is dropped by one of its own callbacks, it cannot wait for itself.
        if writer.thread().id() != thread::current().id() {
            drop(writer.join());
        }
    }
}
