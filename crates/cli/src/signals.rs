//! The signals that matter to a program on a terminal, as a descriptor to wait on.

use pinfold_kernel::signals;
use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The signals that end us, and the one for a new terminal size.
const WANTED: [i32; 5] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGWINCH];

/// Readable when one of these signals has arrived.
pub(crate) struct Signals {
    arrived: signals::SignalFd,
    resized: Cell<bool>,
    ends: Cell<bool>,
}

/// Blocks the signals' usual effect. Call this before starting any thread.
pub(crate) fn take() -> io::Result<Signals> {
    let arrived = signals::SignalFd::take(&WANTED)?;
    Ok(Signals { arrived, resized: Cell::new(false), ends: Cell::new(false) })
}

impl Signals {
    /// Whether the terminal's size has changed since the last call.
    pub(crate) fn resized(&self) -> bool {
        self.read();
        self.resized.take()
    }

    /// Whether a signal has asked us to end.
    pub(crate) fn end_asked(&self) -> bool {
        self.read();
        self.ends.get()
    }

    fn read(&self) {
        while let Ok(number) = self.arrived.next() {
            match number {
                libc::SIGWINCH => self.resized.set(true),
                _ => self.ends.set(true),
            }
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.arrived.as_fd()
    }
}
