//! The unsafe lines of the crate, each behind a safe function: fork, signals, inherited descriptors.
//!
//! Nothing else in the crate is unsafe. Each function is a few lines with its argument beside it, and the
//! tests run them under valgrind's memory checker where it is installed.
#![expect(unsafe_code, reason = "signals, fork and pre_exec have no safe form; this is the only place")]

use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{OnceLock, Weak};

/// The first descriptor number at which a child is given locks: far above what programs expect to be theirs.
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

/// Reaps a forked child. Its answer came through a pipe, so it does not matter if somebody else reaped it.
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

/// The caller's pid, asked for once: it is kept in memory that the kernel wipes in every forked child.
pub(crate) fn pid() -> u32 {
    static KEPT: OnceLock<Option<&'static AtomicU32>> = OnceLock::new();
    let Some(kept) = KEPT.get_or_init(wiped_at_fork) else { return std::process::id() };
    match kept.load(Ordering::Relaxed) {
        0 => {
            let pid = std::process::id();
            kept.store(pid, Ordering::Relaxed);
            pid
        }
        pid => pid,
    }
}

/// A zero of one's own that is zero again in every child; nothing where the kernel has no such memory.
fn wiped_at_fork() -> Option<&'static AtomicU32> {
    const LENGTH: usize = size_of::<AtomicU32>();
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at a place of the kernel's choice touches no memory of ours. It is page-aligned,
    // zeroed and at least as long as asked, and it is unmapped only where no reference to it was made.
    unsafe {
        let page = libc::mmap(std::ptr::null_mut(), LENGTH, access, kind, -1, 0);
        if page == libc::MAP_FAILED {
            return None;
        }
        if libc::madvise(page, LENGTH, libc::MADV_WIPEONFORK) != 0 {
            libc::munmap(page, LENGTH);
            return None;
        }
        Some(&*page.cast::<AtomicU32>())
    }
}

/// `SO_PEERPIDFD` (Linux 6.5), which libc does not name; the same number on every architecture that std supports.
const PEER_PIDFD: libc::c_int = 77;

/// The pid and user of whoever connected. rustix does not know a peer without a pid.
pub(crate) fn peer(socket: BorrowedFd<'_>) -> Result<(Option<u32>, u32), Errno> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: both places live through the call, and `length` is the size of the one that is written to.
    let asked = unsafe {
        let place = (&raw mut found).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, place, &raw mut length)
    };
    match asked {
        0 => Ok((u32::try_from(found.pid).ok().filter(|pid| *pid > 0), found.uid)),
        _ => Err(last_errno()),
    }
}

/// The process that connected, whoever has its number by now.
pub(crate) fn peer_pidfd(socket: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    use std::os::fd::FromRawFd;
    let mut found: RawFd = -1;
    let mut length = size_of::<RawFd>() as libc::socklen_t;
    // SAFETY: both places live through the call, and `length` is the size of the one that is written to.
    let asked = unsafe {
        let place = (&raw mut found).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, PEER_PIDFD, place, &raw mut length)
    };
    match asked {
        // SAFETY: the kernel made this descriptor for us, and nobody else knows of it.
        0 => Ok(unsafe { OwnedFd::from_raw_fd(found) }),
        _ => Err(last_errno()),
    }
}

/// Requests to a pidfd for the namespaces of its process (Linux 6.11), which libc does not name.
const NAMESPACES: [libc::c_ulong; 3] = [0xFF03, 0xFF09, 0xFF04];

/// The inodes of a process's mount, user and network namespaces. Through its pidfd nothing of `/proc` has to be made for
/// it, which takes the kernel longer than all the rest of a look at a process.
pub(crate) fn namespaces(pidfd: BorrowedFd<'_>) -> Result<[u64; 3], Errno> {
    use std::os::fd::FromRawFd;
    let mut inodes = [0; 3];
    for (inode, request) in inodes.iter_mut().zip(NAMESPACES) {
        // SAFETY: the request takes no argument, and its answer is a descriptor that was made for us.
        let namespace = unsafe {
            match libc::ioctl(pidfd.as_raw_fd(), request as _, 0) {
                -1 => return Err(last_errno()),
                found => OwnedFd::from_raw_fd(found),
            }
        };
        *inode = rustix::fs::fstat(&namespace)?.st_ino;
    }
    Ok(inodes)
}

/// Whether the kernel started this program with more rights than its caller has.
pub(crate) fn is_secure_execution() -> bool {
    // SAFETY: reads a value that the kernel gave at exec.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Closes every descriptor from `first` on that came through exec.
pub(crate) fn close_from(first: u32) {
    // SAFETY: the caller has opened nothing yet: these came through exec and have no owner here.
    unsafe {
        libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0);
    }
}

/// The signal that ends a blocking flock: ignored by default and without meaning to almost every program,
/// which is why Go's runtime interrupts its threads with it too.
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

/// Lets the wake signal through to the calling thread.
pub(crate) fn accept_wake() {
    // SAFETY: the set is initialised by `sigemptyset` before use and lives through the calls.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, WAKE);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// Interrupts the system call a thread of ours is in.
pub(crate) fn interrupt<T>(thread: &std::thread::JoinHandle<T>) {
    use std::os::unix::thread::JoinHandleExt;
    // SAFETY: the handle is not joined while it is borrowed, so its pthread_t is valid, also when the
    // thread has already returned.
    unsafe {
        libc::pthread_kill(thread.as_pthread_t(), WAKE);
    }
}

/// Has a child of `command` receive copies of `files`, at the lowest free numbers from 100 on.
///
/// The copies are made in the child, after the fork: no other child that is spawned at the same moment can
/// ever inherit them. When a file is closed before the command is spawned, the spawn fails.
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

/// Copies a descriptor to the lowest free number from 100 on, without close-on-exec.
pub(crate) fn duplicate(fd: RawFd) -> Result<RawFd, Errno> {
    // SAFETY: F_DUPFD takes an integer and touches no memory of ours; a bad number gives EBADF.
    match unsafe { libc::fcntl(fd, libc::F_DUPFD, GIVEN_FROM) } {
        -1 => Err(last_errno()),
        copy => Ok(copy),
    }
}

/// Whether two threads of a process have one descriptor table; false also when the kernel does not say.
pub(crate) fn same_files(one: u32, other: u32) -> bool {
    const KCMP_FILES: libc::c_long = 2;
    // SAFETY: kcmp takes integers only.
    unsafe {
        libc::syscall(libc::SYS_kcmp, libc::c_long::from(one), libc::c_long::from(other), KCMP_FILES, 0, 0)
            == 0
    }
}

/// Copies a descriptor that this process inherited, named by its `/proc/self/fd` path, and closes the original.
///
/// The original has no owner in this program: it came through exec.
pub(crate) fn take_inherited(path: &std::path::Path) -> Result<OwnedFd, Errno> {
    use std::os::fd::FromRawFd;
    let number = path.file_name().and_then(|name| name.to_str()?.parse::<RawFd>().ok()).ok_or(Errno::BADF)?;
    if number < GIVEN_FROM {
        return Err(Errno::BADF);
    }
    // SAFETY: numbers from 100 on with a lock on a lock file come only from a hand-over at exec, and the
    // caller takes each of them once; so this is the only owner.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_child_has_a_pid_of_its_own_and_its_parent_keeps_its_own() {
        assert_eq!(pid(), std::process::id());
        let (read, write) = rustix::pipe::pipe().unwrap();
        let tell = |out: BorrowedFd<'_>| {
            for seen in [pid(), std::process::id()] {
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
        assert_eq!(pid(), std::process::id());
    }
}
