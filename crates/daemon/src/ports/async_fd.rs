//! Descriptors that the runtime watches: the only place that has to promise that they stay open.
#![expect(unsafe_code, reason = "that a descriptor stays open has no safe form; this is the only place")]

use std::io;
use std::os::fd::OwnedFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Lets the runtime watch a descriptor for reading.
pub(crate) fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    watch_for(fd, Interest::READABLE)
}

/// Lets the runtime watch a descriptor.
pub(crate) fn watch_for(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open until it is dropped, and is moved into the `AsyncFd`, which drops it last.
    let watched = unsafe { AsyncFd::register_with_interest(fd, interest) };
    watched.map_err(io::Error::from)
}
