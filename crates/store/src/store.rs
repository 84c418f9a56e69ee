//! The way in: one handle that writes through one thread, and as many readers as are wanted.

use crate::batch::Batch;
use crate::open::{self, OpenError, Opened, Options, Writable};
use crate::reader::Reader;
use crate::reserve::Reserve;
use crate::ticket::{Committed, Outcome, Promise, Ticket};
use crate::trouble::{Health, Trouble};
use crate::writer::{Job, Surroundings, Writer};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

/// An open store: whatever is committed through it is durable when its ticket says so.
///
/// Whoever opens it sees to it that there is only one writer at a time: two would not damage the file, but
/// each would believe in states that the other one has changed.
/// Dropping it waits until everything that was committed is written.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    options: Options,
    opened: Opened,
    jobs: Option<Sender<Job>>,
    writer: Option<JoinHandle<()>>,
    keeps: Keeps,
    health: Health,
    leaving: Arc<AtomicBool>,
}

/// What a store keeps of what is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeps {
    Everything,
    Nothing,
}

impl Store {
    /// Opens the store at `path`; a missing or empty file becomes a new store.
    ///
    /// # Errors
    /// A damaged file, or one of a later version, is refused and left as it is.
    pub fn open(path: &Path, options: &Options) -> Result<Store, OpenError> {
        let Writable { conn, opened, position, witness } = open::open_writer(path, options)?;
        let (jobs, waiting) = channel();
        let (health, leaving) = (Health::default(), Arc::<AtomicBool>::default());
        let around = Surroundings {
            path: path.to_owned(),
            witness,
            reserve: Reserve::new(options.reserve.clone()),
            health: health.clone(),
            when_held_up: options.when_held_up,
            leaving: Arc::clone(&leaving),
        };
        let writer = Writer::new(conn, position, around);
        let writer = thread::Builder::new()
            .name("store".into())
            .spawn(move || writer.run(&waiting))
            .map_err(|source: io::Error| OpenError::Io { path: path.to_owned(), source })?;
        Ok(Store {
            path: path.to_owned(),
            options: options.clone(),
            opened,
            jobs: Some(jobs),
            writer: Some(writer),
            keeps: Keeps::Everything,
            health,
            leaving,
        })
    }

    /// A store that keeps nothing, for what ends with its process: every batch is taken at once and forgotten.
    #[must_use]
    pub fn nowhere() -> Store {
        Store {
            path: PathBuf::new(),
            options: Options::default(),
            opened: Opened::default(),
            jobs: None,
            writer: None,
            keeps: Keeps::Nothing,
            health: Health::default(),
            leaving: Arc::default(),
        }
    }

    /// What opening it did to it.
    #[must_use]
    pub fn opened(&self) -> Opened {
        self.opened
    }

    /// The file that it is in.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Queues a batch. Batches become durable in the order in which they are queued.
    pub fn commit(&self, batch: Batch) -> Ticket {
        let (promise, ticket) = Promise::with_ticket();
        self.send(Job { batch, promise });
        ticket
    }

    /// Queues a batch, and calls back on the writer's thread when it is durable or has failed.
    ///
    /// The callback holds up all writing: wake somebody and return, and never wait for a ticket in it.
    pub fn commit_then(&self, batch: Batch, callback: impl FnOnce(Outcome) + Send + 'static) {
        self.send(Job { batch, promise: Promise::new(callback) });
    }

    /// What keeps it from being written at the moment.
    #[must_use]
    pub fn trouble(&self) -> Trouble {
        self.health.now()
    }

    /// Calls back, on the writer's thread, whenever that changes.
    pub fn on_trouble(&self, listener: impl Fn(&Trouble) + Send + 'static) {
        self.health.listen(Box::new(listener));
    }

    /// Stops waiting for what holds it up: from here on what cannot be written fails.
    pub fn give_up(&self) {
        self.leaving.store(true, Ordering::Release);
    }

    /// A connection of its own for reading, usable from any one thread.
    ///
    /// # Errors
    /// The file can no longer be opened.
    pub fn reader(&self) -> Result<Reader, OpenError> {
        Reader::open_with(&self.path, &self.options)
    }

    fn send(&self, job: Job) {
        if self.keeps == Keeps::Nothing {
            return job.promise.keep(Ok(Committed::default()));
        }
        // If the writer is gone the job comes back, and dropping it tells its caller.
        if let Some(jobs) = &self.jobs {
            drop(jobs.send(job));
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        drop(self.jobs.take());
        self.give_up();
        let Some(writer) = self.writer.take() else { return };
        // Dropped by one of its own callbacks, it cannot wait for itself.
        if writer.thread().id() != thread::current().id() {
            drop(writer.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_keeps_nothing_takes_everything_at_once() {
        let store = Store::nowhere();
        let (sender, told) = channel();
        store.commit_then(Batch::new(), move |outcome| sender.send(outcome.is_ok()).unwrap());
        assert_eq!(told.try_recv(), Ok(true), "before it returns");
        assert_eq!(store.commit(Batch::new()).wait().ok(), Some(Committed::default()));
    }
}
