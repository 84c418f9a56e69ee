//! A token that ends a wait from another thread.

use pinfold_kernel::sys;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends the acquires it was given to, now and in future.
///
/// Give the same token to every acquire of a run and cancel it when the run is disposed of: an acquire under
/// way then releases at once whatever it got, and a later one is refused.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    cancelled: AtomicBool,
    event: OwnedFd,
}

impl Cancel {
    /// Creates a token; it costs one descriptor.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(Inner { cancelled: AtomicBool::new(false), event: sys::event()? })))
    }

    /// Cancels. Cannot be undone; doing it twice is harmless.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        sys::raise(&self.0.event);
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    pub(crate) fn event(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}
