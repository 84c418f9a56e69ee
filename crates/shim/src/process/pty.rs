//! The terminal of a run: the shim has the master side, the agent the other.

use super::bell::Bell;
use pinfold_terminal::{Size, Terminal};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Most keys that wait for an agent that does not read; beyond that, viewers' keys are not read for now.
const MOST_TYPED: usize = 64 << 10;

/// A terminal with its screen.
#[derive(Debug)]
pub(super) struct Pty {
    master: OwnedFd,
    /// Kept open so that a tree that has closed all its own descriptors can open the terminal again.
    _agents: OwnedFd,
    pub(super) screen: Terminal,
    pub(super) bell: Bell,
    typed: Vec<u8>,
}

impl Pty {
    /// Makes a terminal; returns it with the agent's side.
    pub(super) fn open(size: Size) -> Result<(Pty, OwnedFd), Errno> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = rustix::pty::openpt(flags)?;
        rustix::pty::grantpt(&master)?;
        rustix::pty::unlockpt(&master)?;
        let name = rustix::pty::ptsname(&master, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let agents = rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty())?;
        rustix::io::ioctl_fionbio(&master, true)?;
        let theirs = again(&agents)?;
        let pty = Pty {
            master,
            _agents: agents,
            screen: Terminal::new(size),
            bell: Bell::default(),
            typed: Vec::new(),
        };
        pty.tell_size(size)?;
        Ok((pty, theirs))
    }

    /// Returns another descriptor of the master side.
    pub(super) fn master(&self) -> Result<OwnedFd, Errno> {
        again(&self.master)
    }

    /// Sets the size of the viewer that types; the agent is told by a signal.
    pub(super) fn resize(&mut self, size: Size) {
        if size != self.screen.size() && self.tell_size(size).is_ok() {
            self.screen.resize(size);
        }
    }

    fn tell_size(&self, size: Size) -> Result<(), Errno> {
        let size = Winsize { ws_row: size.rows(), ws_col: size.columns(), ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&self.master, size)
    }

    /// Types keys, in the order in which they come.
    pub(super) fn type_keys(&mut self, keys: &[u8]) {
        self.typed.extend_from_slice(keys);
        self.write();
    }

    /// Returns the master side while keys wait to be written to it.
    pub(super) fn wanting(&self) -> Option<BorrowedFd<'_>> {
        (!self.typed.is_empty()).then(|| self.master.as_fd())
    }

    /// Returns whether more keys are taken now.
    pub(super) fn listens(&self) -> bool {
        self.typed.len() < MOST_TYPED
    }

    /// Writes what the terminal takes.
    pub(super) fn write(&mut self) {
        let mut written = 0;
        while written < self.typed.len() {
            match rustix::io::write(&self.master, &self.typed[written..]) {
                Ok(count) => written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // The other side is closed, so the keys will never be read.
                Err(_) => written = self.typed.len(),
            }
        }
        self.typed.drain(..written);
        if self.typed.is_empty() {
            self.typed = Vec::new();
        }
    }
}

fn again(descriptor: &OwnedFd) -> Result<OwnedFd, Errno> {
    rustix::io::fcntl_dupfd_cloexec(descriptor, 3)
}
