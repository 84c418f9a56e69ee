//! The way in: opens a back-end, and offers the everyday calls on its journal and readers.

use crate::batch::Batch;
use crate::copy::{BackupError, Files};
use crate::journal::Journal;
use crate::memory::{History, MemoryJournal};
use crate::open::{OpenError, Opened, StoreOptions};
use crate::position::StorePosition;
use crate::query::Query;
use crate::sqlite::{SqliteJournal, SqliteReader};
use crate::ticket::{Outcome, Promise, Ticket};
use crate::trouble::Trouble;
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a store is kept in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    /// An SQLite file.
    Sqlite {
        /// The file; a missing or empty one becomes a new store.
        path: PathBuf,
        /// How to open it.
        options: StoreOptions,
    },
    /// The memory of this process: it ends with the last handle.
    Memory(History),
}

/// An open store: whatever is committed through it is durable when its ticket says so.
///
/// The process that opens it makes sure that there is only one writer at a time: two would not damage the
/// file, but each would believe in states that the other has changed. Dropping the last clone waits until
/// everything that was committed is written.
#[derive(Debug, Clone)]
pub struct Store {
    journal: Arc<dyn Journal>,
}

/// Opens a store, whatever its back-end. A new back-end is one arm here.
///
/// # Errors
/// A damaged file, or one of a later version, is refused and left as it is.
pub fn open(backend: &Backend) -> Result<Store, OpenError> {
    let journal: Arc<dyn Journal> = match backend {
        Backend::Sqlite { path, options } => Arc::new(SqliteJournal::open(path, options)?),
        Backend::Memory(history) => Arc::new(MemoryJournal::new(*history)),
    };
    Ok(Store { journal })
}

impl Store {
    /// Opens the store in an SQLite file.
    ///
    /// # Errors
    /// The same as for [`open`].
    pub fn open(path: &Path, options: &StoreOptions) -> Result<Store, OpenError> {
        open(&Backend::Sqlite { path: path.to_owned(), options: options.clone() })
    }

    /// Queues a batch. Batches become durable in the order in which they are queued.
    pub fn commit(&self, batch: Batch) -> Ticket {
        let (promise, ticket) = Promise::with_ticket();
        self.journal.commit(batch, promise);
        ticket
    }

    /// Queues a batch, and calls back, on the writing thread, when it is durable or has failed.
    ///
    /// The callback holds up all writing: wake another thread and return, and never wait for a ticket in it.
    pub fn commit_then(&self, batch: Batch, callback: impl FnOnce(Outcome) + Send + 'static) {
        self.journal.commit(batch, Promise::new(callback));
    }

    /// Returns the back-end's journal itself, for a caller with its own promise.
    #[must_use]
    pub fn journal(&self) -> &dyn Journal {
        &*self.journal
    }

    /// Returns how far it is with what was acknowledged.
    #[must_use]
    pub fn position(&self) -> StorePosition {
        self.journal.position()
    }

    /// Returns what opening it did to it.
    #[must_use]
    pub fn opened(&self) -> Opened {
        self.journal.opened()
    }

    /// Returns what keeps it from being written at the moment.
    #[must_use]
    pub fn trouble(&self) -> Trouble {
        self.journal.trouble()
    }

    /// Calls back, on the writing thread, whenever that changes.
    pub fn on_trouble(&self, listener: impl Fn(&Trouble) + Send + 'static) {
        self.journal.on_trouble(Box::new(listener));
    }

    /// Stops waiting for what holds it up: from now on whatever cannot be written fails.
    pub fn give_up(&self) {
        self.journal.give_up();
    }

    /// Creates a separate reader, usable from any one thread.
    ///
    /// # Errors
    /// The store can no longer be opened.
    pub fn reader(&self) -> Result<Reader, OpenError> {
        Ok(Reader { query: self.journal.reader()? })
    }
}

/// A reader of a store, whatever its back-end: everything that [`Query`] has.
#[derive(Debug)]
pub struct Reader {
    query: Box<dyn Query>,
}

impl Reader {
    /// Opens an SQLite file for reading only, whether or not another process writes it.
    ///
    /// # Errors
    /// A missing, damaged or too new file.
    pub fn open(path: &Path) -> Result<Reader, OpenError> {
        Ok(Reader { query: Box::new(SqliteReader::open_with(path, &StoreOptions::default())?) })
    }

    /// Copies the store, as [`Query::backup`] does, with no files beside it.
    ///
    /// # Errors
    /// The same as there.
    pub fn backup(&self, file: &Path) -> Result<u64, BackupError> {
        self.query.backup(file, &mut || Ok(Vec::new()))
    }

    /// Copies the store together with files that belong to it but are not in it; they are read after it was copied.
    ///
    /// # Errors
    /// The same as there, or the files cannot be read.
    pub fn backup_with(
        &self,
        file: &Path,
        beside: impl FnOnce() -> io::Result<Files>,
    ) -> Result<u64, BackupError> {
        let mut beside = Some(beside);
        self.query.backup(file, &mut || beside.take().map_or(Ok(Vec::new()), |read| read()))
    }
}

impl Deref for Reader {
    type Target = dyn Query;

    fn deref(&self) -> &(dyn Query + 'static) {
        &*self.query
    }
}

impl DerefMut for Reader {
    fn deref_mut(&mut self) -> &mut (dyn Query + 'static) {
        &mut *self.query
    }
}
