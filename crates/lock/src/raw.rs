//! The unsafe code of the crate, each part wrapped in a safe function: fork, signals, inherited descriptors.
//!
//! Nothing else in the crate is unsafe. Each function is a few lines with its argument next to it, and the
//! tests run them under valgrind's memory checker where it is installed.
#![expect(unsafe_code, reason = "signals, fork and pre_exec have no safe form; this is the only place")]

use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{OnceLock, Weak};

/// The first descriptor number at which a child is given locks, if the limit of open files allows it: far above the numbers that programs use themselves.
pub(crate) const GIVEN_FROM: RawFd = 100;

/// Forks a child that runs `answer` and ends.
///
/// `answer` must not allocate, lock or panic: other threads of the parent may have held the allocator's lock.
pub(crate) fn fork_and_answer(out: BorrowedFd<'_>, answer: &dyn Fn(BorrowedFd<'_>)) -> Result<i32, Errno> {
    // SAFETY: the child calls `answer`, which makes system calls only, and `_exit`, which is
    // async-signal-safe and runs no destructors; it never returns into the caller's frames.
    match unsafe { libc::fork() } {
        -1 => Err(last_errno()),
        0 => {
            answer(out);
            // SAFETY: always allowed.
            unsafe { libc::_exit(0) }
        }
        child => Ok(child),
    }
}

/// Reaps a forked child. Its answer came through a pipe, so it does not matter if it was already reaped.
pub(crate) fn reap(child: i32) {
    if let Some(pid) = rustix::process::Pid::from_raw(child) {
        let none = rustix::process::WaitOptions::empty();
        while matches!(rustix::process::waitpid(Some(pid), none), Err(Errno::INTR)) {}
    }
}

fn last_errno() -> Errno {
    let code = std::io::Error::last_os_error().raw_os_error();
    code.map_or(Errno::IO, Errno::from_raw_os_error)
}

/// The signal that ends a blocking flock: ignored by default and without meaning to almost every program,
/// which is why Go's runtime uses it to interrupt its threads, too.
const WAKE: libc::c_int = libc::SIGURG;

extern "C" fn nothing(_: libc::c_int) {}

/// Whether [`interrupt`] can work: the wake signal has a handler that does not restart system calls.
pub(crate) fn interruptible() -> bool {
    static READY: OnceLock<bool> = OnceLock::new();
    *READY.get_or_init(install)
}

fn install() -> bool {
    // SAFETY: `sigaction` is a plain C struct for which all zeroes is valid, and both pointers are to live
    // values. The handler does nothing, so it is async-signal-safe. A handler of the program is left alone.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(WAKE, std::ptr::null(), &raw mut action) != 0 {
            return false;
        }
        if action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN {
            return action.sa_flags & libc::SA_RESTART == 0;
        }
        action.sa_sigaction = nothing as *const () as usize;
        action.sa_flags = 0;
        libc::sigaction(WAKE, &raw const action, std::ptr::null_mut()) == 0
    }
}

/// Unblocks the wake signal in the calling thread.
pub(crate) fn accept_wake() {
    pinfold_kernel::signals::accept(WAKE);
}

/// Interrupts the system call that a thread of ours is in.
pub(crate) fn interrupt<T>(thread: &std::thread::JoinHandle<T>) {
    use std::os::unix::thread::JoinHandleExt;
    // SAFETY: the handle is not joined while it is borrowed, so its pthread_t is valid, even if the thread
    // has already returned.
    unsafe {
        libc::pthread_kill(thread.as_pthread_t(), WAKE);
    }
}

/// Gives a child of `command` copies of `files`, at the numbers that [`duplicate`] chooses.
///
/// The copies are made in the child, after the fork, so no other child that is spawned at the same moment can
/// inherit them. If a file is closed before the command is spawned, the spawn fails.
pub(crate) fn give(command: &mut Command, files: Vec<Weak<OwnedFd>>) {
    let copy = move || {
        for file in &files {
            let file = file.upgrade().ok_or_else(|| std::io::Error::from(Errno::BADF))?;
            duplicate(file.as_raw_fd())?;
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls and counts references; it neither allocates nor locks.
    unsafe {
        command.pre_exec(copy);
    }
}

/// Copies a descriptor to the lowest free number from 100 on, without close-on-exec. If the limit of open
/// files allows no such number, the copy gets the highest free one below.
///
/// It only makes system calls, so it may be called after a fork.
pub(crate) fn duplicate(fd: RawFd) -> Result<RawFd, Errno> {
    match duplicate_from(fd, GIVEN_FROM) {
        Err(Errno::INVAL | Errno::MFILE) => {
            duplicate_from(fd, highest_free_below(GIVEN_FROM).ok_or(Errno::MFILE)?)
        }
        other => other,
    }
}

fn duplicate_from(fd: RawFd, lowest: RawFd) -> Result<RawFd, Errno> {
    // SAFETY: F_DUPFD takes an integer and touches no memory of ours; a bad number gives EBADF.
    match unsafe { libc::fcntl(fd, libc::F_DUPFD, lowest) } {
        -1 => Err(last_errno()),
        copy => Ok(copy),
    }
}

/// The highest free number below `end` that the limit of open files allows. The standard streams are never free.
fn highest_free_below(end: RawFd) -> Option<RawFd> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let end = limit.and_then(|limit| RawFd::try_from(limit).ok()).map_or(end, |limit| limit.min(end));
    (3..end).rev().find(|number| flags(*number).is_none())
}

/// The flags of a descriptor; `None` if the number is free.
fn flags(number: RawFd) -> Option<libc::c_int> {
    // SAFETY: F_GETFD takes no argument and touches no memory of ours.
    match unsafe { libc::fcntl(number, libc::F_GETFD) } {
        -1 => None,
        flags => Some(flags),
    }
}

/// Copies a descriptor that this process inherited, named by its `/proc/self/fd` path, and closes the original.
///
/// The original has no owner in this program: it came through exec.
pub(crate) fn take_inherited(path: &std::path::Path) -> Result<OwnedFd, Errno> {
    use std::os::fd::FromRawFd;
    let number = path.file_name().and_then(|name| name.to_str()?.parse::<RawFd>().ok()).ok_or(Errno::BADF)?;
    // This crate opens everything close-on-exec, and what came through exec is not.
    if flags(number).is_none_or(|flags| flags & libc::FD_CLOEXEC != 0) {
        return Err(Errno::BADF);
    }
    // SAFETY: a descriptor of a locked lock file that is not close-on-exec comes only from a hand-over at exec,
    // and the caller takes each of them once; so this is the only owner.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_child_has_a_pid_of_its_own_and_its_parent_keeps_its_own() {
        assert_eq!(pinfold_kernel::own::pid(), std::process::id());
        let (read, write) = rustix::pipe::pipe().unwrap();
        let tell = |out: BorrowedFd<'_>| {
            for seen in [pinfold_kernel::own::pid(), std::process::id()] {
                let _ = rustix::io::write(out, &seen.to_ne_bytes());
            }
        };
        let child = fork_and_answer(std::os::fd::AsFd::as_fd(&write), &tell).unwrap();
        let mut seen = [0; 8];
        drop(write);
        std::io::Read::read_exact(&mut std::fs::File::from(read), &mut seen).unwrap();
        reap(child);
        assert_eq!(seen[..4], seen[4..]);
        assert_eq!(u32::from_ne_bytes(seen[..4].try_into().unwrap()), child.cast_unsigned());
        assert_eq!(pinfold_kernel::own::pid(), std::process::id());
    }
}
