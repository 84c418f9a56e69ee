//! The unsafe code of the crate, each piece inside a safe function: fork, exec, signals, descriptors.
//!
//! A shim has one thread. So a forked child may do whatever its parent may, and no other thread touches what
//! is changed here.
#![expect(unsafe_code, reason = "fork, exec and signals have no safe form; this is the only place")]

use rustix::io::Errno;
use rustix::process::Pid;
use std::ffi::CString;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// `CLONE_INTO_CGROUP`, for which libc's type is too small.
const INTO_CGROUP: u64 = 1 << 33;

/// A child that was just forked.
#[derive(Debug)]
pub(super) struct Forked {
    pub(super) pid: Pid,
    pub(super) pidfd: OwnedFd,
}

/// Forks a child, into a control group if one is given. The child runs `life` and exits with the code that it
/// returns.
pub(super) fn fork(group: Option<BorrowedFd<'_>>, life: &mut dyn FnMut() -> i32) -> Result<Forked, Errno> {
    let mut pidfd: RawFd = -1;
    // SAFETY: `clone_args` is a plain C struct for which all zeroes is valid.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = libc::CLONE_PIDFD as u64;
    arguments.pidfd = (&raw mut pidfd) as u64;
    arguments.exit_signal = libc::SIGCHLD as u64;
    if let Some(group) = group {
        arguments.flags |= INTO_CGROUP;
        arguments.cgroup = group.as_raw_fd() as u64;
    }
    // SAFETY: without CLONE_VM this is a fork: the child has its own copy of this single-threaded process,
    // runs `life` and `_exit`s, so it never returns into the parent's frames.
    let pid = unsafe {
        libc::syscall(libc::SYS_clone3, &raw mut arguments, std::mem::size_of::<libc::clone_args>())
    };
    match pid {
        -1 => Err(last_errno()),
        0 => exit(life()),
        pid => {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
            // SAFETY: the kernel made this descriptor for us, and nobody else knows of it.
            Ok(Forked { pid, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } })
        }
    }
}

/// Like [`fork`], for kernels or sandboxes that do not allow clone3. The pidfd comes with the child or, where the
/// older call does not know it, from pidfd_open.
pub(super) fn plain_fork(life: &mut dyn FnMut() -> i32) -> Result<Forked, Errno> {
    let mut pidfd: RawFd = -1;
    let pid = match clone(&mut pidfd) {
        // SAFETY: as in `fork`.
        -1 => unsafe { libc::fork() },
        pid => pid,
    };
    match pid {
        -1 => Err(last_errno()),
        0 => exit(life()),
        pid => {
            let pid = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
            if pidfd >= 0 {
                // SAFETY: the kernel made this descriptor for us, and nobody else knows of it.
                return Ok(Forked { pid, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } });
            }
            let opened = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty());
            opened.map(|pidfd| Forked { pid, pidfd }).inspect_err(|_| {
                // It waits at its gate, and has not become anything yet. Until it is reaped, the pid is its own.
                _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
            })
        }
    }
}

/// Forks by the older clone, which returns a pidfd since Linux 5.2; earlier kernels leave it alone.
fn clone(pidfd: &mut RawFd) -> i32 {
    let flags = libc::CLONE_PIDFD | libc::SIGCHLD;
    let nothing = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: as in `fork`: without CLONE_VM and without a stack of its own the child has a copy of everything. The
    // kernel writes one number to `pidfd`, which outlives the call.
    #[cfg(not(target_arch = "s390x"))]
    let pid = unsafe {
        libc::syscall(libc::SYS_clone, flags, nothing, std::ptr::from_mut(pidfd), nothing, nothing)
    };
    // SAFETY: the same, with the first two arguments in the other order.
    #[cfg(target_arch = "s390x")]
    let pid = unsafe {
        libc::syscall(libc::SYS_clone, nothing, flags, std::ptr::from_mut(pidfd), nothing, nothing)
    };
    i32::try_from(pid).unwrap_or(-1)
}

/// Whether this system offers a way to be told of a child's end: one of pidfd_open, clone3 and clone with a pidfd.
/// Only where the first is missing does this fork a child. For processes with one thread.
pub(crate) fn ends_are_told() -> bool {
    let own = rustix::process::getpid();
    if rustix::process::pidfd_open(own, rustix::process::PidfdFlags::empty()).is_ok() {
        return true;
    }
    let forked = fork(None, &mut || 0).or_else(|_| plain_fork(&mut || 0));
    let pid = forked.map(|forked| forked.pid);
    pid.is_ok_and(|pid| rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty()).is_ok())
}

/// Forks a child that is not waited for; returns its pid. It runs `life` and exits; true is success.
pub(super) fn fork_away(life: &mut dyn FnMut() -> bool) -> Result<u32, Errno> {
    // SAFETY: as in `fork`.
    match unsafe { libc::fork() } {
        -1 => Err(last_errno()),
        0 => exit(i32::from(!life())),
        pid => Ok(pid.unsigned_abs()),
    }
}

/// Overwrites words of this process's command line, and fills the rest with zeroes.
pub(super) fn write_words(from: usize, room: usize, text: &[u8]) {
    debug_assert!(text.len() < room, "a zero ends it");
    let words: *mut u8 = std::ptr::with_exposed_provenance_mut(from);
    // SAFETY: the caller has made sure that the kernel keeps the words of our command line here: memory of this
    // process that is writable, lives as long as it does, and is read by nobody at the same time (one thread).
    unsafe {
        std::ptr::write_bytes(words, 0, room);
        std::ptr::copy_nonoverlapping(text.as_ptr(), words, text.len());
    }
}

/// Ends the process without running any of the parent's exit code.
fn exit(code: i32) -> ! {
    // SAFETY: always allowed.
    unsafe { libc::_exit(code) }
}

/// Executes a program; returns only if that failed.
pub(super) fn execute(program: &CString, arguments: &[CString], environment: &[CString]) -> Errno {
    let pointers = |texts: &[CString]| {
        let mut all: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
        all.push(std::ptr::null());
        all
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    // SAFETY: both arrays end with a null pointer, and they and their strings live through the call.
    unsafe {
        libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr());
    }
    last_errno()
}

/// Returns unused memory of the allocator and the stack to the kernel.
pub(super) fn trim_memory() {
    pinfold_kernel::allocator::trim();
    trim_stack();
}

/// Returns the stack pages that deeper calls used: a shim sleeps much, and its start went deep.
#[inline(never)]
fn trim_stack() {
    const PAGE: usize = 4096;
    /// The frames of this call and of the system call, with plenty to spare.
    const MARGIN: usize = PAGE;
    const DEEPEST: usize = 32 * PAGE;
    let here = 0_u8;
    let end = ((&raw const here).addr() - MARGIN) & !(PAGE - 1);
    // SAFETY: everything below this frame is dead: the stack grows down, the margin covers what the call itself
    // uses, and there is one thread. What is not mapped in the range is passed over.
    unsafe {
        let from = std::ptr::with_exposed_provenance_mut(end - DEEPEST);
        libc::madvise(from, DEEPEST, libc::MADV_DONTNEED);
    }
}

fn last_errno() -> Errno {
    let code = std::io::Error::last_os_error().raw_os_error();
    code.map_or(Errno::IO, Errno::from_raw_os_error)
}
