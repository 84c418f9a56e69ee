//! Writing: what every back-end does with a batch, in plain data.

use crate::batch::Batch;
use crate::open::{OpenError, Opened};
use crate::position::StorePosition;
use crate::query::Query;
use crate::ticket::Promise;
use crate::trouble::{Listener, Trouble};
use std::fmt::Debug;

/// Makes batches durable.
///
/// Batches become durable in the order in which they are given, each of them whole or not at all, and one
/// that fails fails alone. Its promise is kept after that, in the same order, and never by two threads at
/// once. Dropping the journal waits until everything that was given is durable or has failed.
pub trait Journal: Debug + Send + Sync {
    /// Takes a batch and returns; the promise is kept when the batch is durable or has failed.
    ///
    /// The thread that keeps promises writes nothing meanwhile: a callback should wake another thread and return.
    fn commit(&self, batch: Batch, promise: Promise);

    /// Returns how far it is with what was acknowledged.
    fn position(&self) -> StorePosition;

    /// Returns what keeps it from being written at the moment.
    fn trouble(&self) -> Trouble;

    /// Makes a listener be called whenever that changes.
    fn on_trouble(&self, listener: Listener);

    /// Stops waiting for what holds it up: from now on whatever cannot be written fails.
    fn give_up(&self);

    /// Returns what opening it did to it.
    fn opened(&self) -> Opened;

    /// Creates a separate reader, usable from any one thread.
    ///
    /// # Errors
    /// The store can no longer be opened.
    fn reader(&self) -> Result<Box<dyn Query>, OpenError>;
}
