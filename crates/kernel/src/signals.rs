//! Signals: blocking, resetting and waiting for them.
#![expect(unsafe_code, reason = "signal masks and signalfd have no safe form")]

use crate::sys::last_errno;
use rustix::io::Errno;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The length of one read from a signalfd.
const LENGTH: usize = size_of::<libc::signalfd_siginfo>();
/// The fcntl command that chooses the signal for I/O events; libc does not name it on every system.
const F_SETSIG: i32 = 10;

/// A descriptor that becomes readable when one of some blocked signals arrives.
#[derive(Debug)]
pub struct SignalFd(OwnedFd);

impl SignalFd {
    /// Blocks some signals in this thread and the threads it starts, and receives them here.
    ///
    /// # Errors
    /// No descriptor or memory is left.
    pub fn take(numbers: &[i32]) -> Result<Self, Errno> {
        let set = set_of(numbers);
        // SAFETY: the set is initialised and lives through the calls; the descriptor is new.
        unsafe {
            libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            match libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
                -1 => Err(last_errno()),
                fd => Ok(Self(OwnedFd::from_raw_fd(fd))),
            }
        }
    }

    /// Returns the next signal that arrived, without waiting.
    ///
    /// # Errors
    /// `EAGAIN` if there is none, otherwise the kernel's error.
    pub fn next(&self) -> Result<i32, Errno> {
        let mut bytes = [0; LENGTH];
        loop {
            match rustix::io::read(&self.0, &mut bytes) {
                Ok(LENGTH) => return Ok(i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
                Ok(_) => return Err(Errno::IO),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Makes the kernel send a signal to this process, even after exec, when the last writer of a pipe is gone.
/// The pipe has to stay open for that, and nothing may be written to it.
///
/// # Errors
/// It is not a pipe.
pub fn at_hang_up(reader: BorrowedFd<'_>, signal: rustix::process::Signal) -> Result<(), Errno> {
    let fd = reader.as_raw_fd();
    let me = rustix::process::getpid().as_raw_pid();
    // SAFETY: the descriptor is open, and these commands take numbers only.
    let done = unsafe {
        libc::fcntl(fd, libc::F_SETOWN, me) != -1
            && libc::fcntl(fd, F_SETSIG, signal.as_raw()) != -1
            && libc::fcntl(fd, libc::F_SETFL, libc::O_ASYNC) != -1
    };
    if done { Ok(()) } else { Err(last_errno()) }
}

/// The signals that a thread has blocked.
#[derive(Clone, Copy)]
pub struct Mask(libc::sigset_t);

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mask")
    }
}

impl Mask {
    /// Blocks some signals in this thread; returns the mask that was in force before.
    #[must_use]
    pub fn block(numbers: &[i32]) -> Self {
        let set = set_of(numbers);
        let mut old = MaybeUninit::uninit();
        // SAFETY: both sets live through the call, which initialises `old`.
        unsafe {
            libc::sigprocmask(libc::SIG_BLOCK, &raw const set, old.as_mut_ptr());
            Self(old.assume_init())
        }
    }

    /// Puts this mask in force. This is one system call, so a forked child may do it before exec.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn restore(&self) -> Result<(), Errno> {
        // SAFETY: the mask was filled by `sigprocmask`.
        match unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(last_errno()),
        }
    }
}

/// A signal that was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// The number of the signal.
    pub number: i32,
    /// Whether the kernel sent it, as it does for terminal keys and the end of a child, and not a process.
    pub by_kernel: bool,
}

/// Waits for one of some blocked signals.
///
/// # Errors
/// `EINTR` if another signal was handled meanwhile.
pub fn wait(numbers: &[i32]) -> Result<Arrived, Errno> {
    let set = set_of(numbers);
    let mut info: MaybeUninit<libc::siginfo_t> = MaybeUninit::zeroed();
    // SAFETY: both live through the call; all zeroes is a valid siginfo.
    let (number, info) = unsafe {
        let number = libc::sigwaitinfo(&raw const set, info.as_mut_ptr());
        (number, info.assume_init())
    };
    if number <= 0 { Err(last_errno()) } else { Ok(Arrived { number, by_kernel: info.si_code > 0 }) }
}

/// Unblocks a signal in the calling thread.
pub fn accept(number: i32) {
    let set = set_of(&[number]);
    // SAFETY: the set is initialised and lives through the call.
    unsafe {
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// Ignores a signal: SIGPIPE, so that a write to a closed pipe fails, or SIGCHLD, so that children leave no zombies.
pub fn ignore(number: i32) {
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe {
        libc::signal(number, libc::SIG_IGN);
    }
}

/// Resets every signal to its default action and unblocks all of them.
pub fn reset() {
    // For the kernel all zeroes is the default, whatever the order of the fields. The C library would refuse
    // two signals that it reserves for itself and that a parent may have ignored.
    let default = [0_u64; 4];
    for signal in 1..=64 {
        // SAFETY: the kernel reads at most 32 bytes; a default disposition runs no code of ours, and a signal
        // that cannot be set is refused.
        unsafe {
            let set: libc::c_long = 8;
            libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), std::ptr::null_mut::<u64>(), set);
        }
    }
    let none = set_of(&[]);
    // SAFETY: the set is initialised and lives through the call.
    unsafe {
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

fn set_of(numbers: &[i32]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the set before it is used; a number that is not a signal is refused.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for number in numbers {
            libc::sigaddset(set.as_mut_ptr(), *number);
        }
        set.assume_init()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_signal_comes_to_the_descriptor_and_nowhere_else() {
        // A thread of its own, so that the mask affects no other test.
        let came = std::thread::spawn(|| {
            let signals = SignalFd::take(&[libc::SIGWINCH]).unwrap();
            assert_eq!(signals.next(), Err(Errno::AGAIN));
            // SAFETY: sends a signal to this very thread, which has it blocked.
            unsafe { libc::raise(libc::SIGWINCH) };
            (signals.next(), signals.next())
        });
        assert_eq!(came.join().unwrap(), (Ok(libc::SIGWINCH), Err(Errno::AGAIN)));
    }

    #[test]
    fn a_signal_that_a_process_sent_is_told_from_the_kernels() {
        let arrived = std::thread::spawn(|| {
            let before = Mask::block(&[libc::SIGUSR2]);
            // SAFETY: as above.
            unsafe { libc::raise(libc::SIGUSR2) };
            let arrived = wait(&[libc::SIGUSR2]);
            before.restore().unwrap();
            arrived
        });
        assert_eq!(arrived.join().unwrap(), Ok(Arrived { number: libc::SIGUSR2, by_kernel: false }));
    }
}
