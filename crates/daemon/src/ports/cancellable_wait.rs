//! A wait that can be cancelled.

/// A wait for a lock.
pub(crate) trait CancellableWait {
    /// Ends the wait.
    fn cancel(&self);
}
