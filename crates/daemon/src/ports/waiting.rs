//! Something that is waited for, until nobody wants to know any more.

/// Somebody who waits for a lock.
pub(crate) trait Waiting {
    /// It is not waited for any more.
    fn cancel(&self);
}
