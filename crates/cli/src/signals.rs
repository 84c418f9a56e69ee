//! The signals that concern somebody at a terminal, as something that can be waited for.

use pinfold_kernel::signals;
use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Those that end us, and the one that says that the terminal has another size.
const WANTED: [i32; 5] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGWINCH];

/// Readable when one of them came.
pub(crate) struct Signals {
    arrived: signals::SignalFd,
    resized: Cell<bool>,
    ends: Cell<bool>,
}

/// Takes them away from their usual meaning. Call it before any thread is started.
pub(crate) fn take() -> io::Result<Signals> {
    let arrived = signals::SignalFd::take(&WANTED)?;
    Ok(Signals { arrived, resized: Cell::new(false), ends: Cell::new(false) })
}

impl Signals {
    /// Whether the terminal has taken another size since this was asked last.
    pub(crate) fn resized(&self) -> bool {
        self.read();
        self.resized.take()
    }

    /// Whether we are asked to end.
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
