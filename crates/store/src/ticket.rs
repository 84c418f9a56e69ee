//! How a caller learns that its batch is durable, or that it never will be.

use crate::commit_error::CommitError;
use crate::step::Tally;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The result of a durable batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Committed {
    /// The numbers of its events, in order; empty if it had none.
    pub seqs: Range<u64>,
    /// How much it forgot.
    pub pruned: Tally,
    /// Whether there is more to forget or to give back.
    pub more: bool,
}

/// What became of a batch.
pub type Outcome = Result<Committed, Arc<CommitError>>;

/// The promise that a batch will be durable, or that its caller hears why not.
#[derive(Debug)]
#[must_use = "a batch is not durable before its ticket says so"]
pub struct Ticket(Receiver<Outcome>);

impl Ticket {
    /// Waits until the batch is durable or has failed.
    ///
    /// # Errors
    /// The reason why it failed.
    pub fn wait(self) -> Outcome {
        self.0.recv().unwrap_or_else(|_| Err(Arc::new(CommitError::WriterGone)))
    }

    /// Waits no longer than this; `None` if it takes longer. The batch may become durable all the same.
    #[must_use]
    pub fn wait_for(self, limit: Duration) -> Option<Outcome> {
        match self.0.recv_timeout(limit) {
            Ok(outcome) => Some(outcome),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(Arc::new(CommitError::WriterGone))),
        }
    }
}

/// The other end of a ticket: whatever happens to it, the caller is told. One that is dropped reports that
/// the writer is gone.
pub struct Promise(Option<Box<dyn FnOnce(Outcome) + Send>>);

impl Promise {
    /// Creates a promise that is kept by calling back.
    #[must_use]
    pub fn new(callback: impl FnOnce(Outcome) + Send + 'static) -> Promise {
        Promise(Some(Box::new(callback)))
    }

    /// Creates a promise, and the ticket that tells when it is kept.
    pub fn with_ticket() -> (Promise, Ticket) {
        let (sender, receiver) = channel();
        // A caller that drops the ticket does not want to know.
        (Promise::new(move |outcome| drop(sender.send(outcome))), Ticket(receiver))
    }

    /// Reports what became of the batch.
    pub fn keep(mut self, outcome: Outcome) {
        self.tell(outcome);
    }

    fn tell(&mut self, outcome: Outcome) {
        if let Some(callback) = self.0.take() {
            // A callback that panics has said so on stderr; other batches must not suffer from it.
            drop(catch_unwind(AssertUnwindSafe(|| callback(outcome))));
        }
    }
}

impl fmt::Debug for Promise {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.debug_struct("Promise").field("kept", &self.0.is_none()).finish()
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.tell(Err(Arc::new(CommitError::WriterGone)));
    }
}
