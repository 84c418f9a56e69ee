//! The moment at which a tree has to end, come what may.

use pinfold_core::time::Boot;
use pinfold_kernel::clock::Timer;
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// A moment of the boot clock, with the grace that the tree has then.
#[derive(Debug)]
pub(super) struct Death {
    timer: Timer,
    pub(super) grace: Duration,
}

impl Death {
    /// Sets the moment; one that has passed is now.
    pub(super) fn at(at: Boot, grace: Duration) -> Result<Self, Errno> {
        let timer = Timer::new()?;
        timer.set(Some(at.0))?;
        Ok(Death { timer, grace })
    }
}

impl AsFd for Death {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
