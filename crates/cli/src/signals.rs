//! The signals that concern somebody at a terminal, as something that can be waited for.
#![expect(unsafe_code, reason = "signal masks and signalfd have no safe form")]

use std::cell::Cell;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Those that end us, and the one that says that the terminal has another size.
const WANTED: [i32; 5] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGWINCH];

/// Readable when one of them came.
pub(crate) struct Signals {
    descriptor: OwnedFd,
    resized: Cell<bool>,
    ends: Cell<bool>,
}

/// Takes them away from their usual meaning. Call it before any thread is started.
pub(crate) fn take() -> io::Result<Signals> {
    // SAFETY: the set is initialised by `sigemptyset` and lives through the calls; the descriptor is new.
    let descriptor = unsafe {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        for signal in WANTED {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
        match libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => return Err(io::Error::last_os_error()),
            descriptor => OwnedFd::from_raw_fd(descriptor),
        }
    };
    Ok(Signals { descriptor, resized: Cell::new(false), ends: Cell::new(false) })
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
        const LENGTH: usize = size_of::<libc::signalfd_siginfo>();
        let mut bytes = [0_u8; LENGTH];
        // SAFETY: the kernel writes at most `LENGTH` bytes into the buffer.
        while unsafe { libc::read(self.descriptor.as_raw_fd(), bytes.as_mut_ptr().cast(), LENGTH) } > 0 {
            let number = i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            match number {
                libc::SIGWINCH => self.resized.set(true),
                _ => self.ends.set(true),
            }
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
