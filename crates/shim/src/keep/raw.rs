//! The unsafe lines of the crate, each behind a safe function: fork, exec, signals, descriptors.
//!
//! A shim has one thread. So a forked child may do whatever its parent may, and nobody else touches what is
//! changed here.
#![expect(unsafe_code, reason = "fork, exec and signals have no safe form; this is the only place")]

use rustix::io::Errno;
use rustix::process::Pid;
use std::ffi::CString;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// `CLONE_INTO_CGROUP`, which libc gives a type that is too small.
const INTO_CGROUP: u64 = 1 << 33;

/// Who sent a message.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) user: u32,
    /// Nothing where it is in a pid namespace that cannot be seen from here.
    pub(super) pid: Option<u32>,
    /// Whoever has the number by now; of one that was reaped already only Linux 6.17 and later tell.
    pub(super) pidfd: Option<OwnedFd>,
}

/// These are not in libc; the numbers are those of every architecture that std supports.
const PASS_PIDFD: libc::c_int = 76;
const SCM_PIDFD: libc::c_int = 4;
/// Room for the credentials, a pidfd and as many descriptors as can come (253): what came first must not push out the rest.
const CONTROL: usize = 2048;

/// The place for what comes beside a message, aligned as its headers are.
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// Has every message of a socket come with its sender.
pub(super) fn name_senders(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    set_option(socket, libc::SO_PASSCRED)?;
    // Before Linux 6.5 there is none, and the number has to do.
    let _ = set_option(socket, PASS_PIDFD);
    Ok(())
}

fn set_option(socket: BorrowedFd<'_>, option: libc::c_int) -> Result<(), Errno> {
    let on: libc::c_int = 1;
    let length = std::mem::size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the value lives through the call, and `length` is its size.
    let set = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const on).cast(), length)
    };
    if set == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Takes one message, without waiting: its length, and who sent it. Descriptors that came along are closed at once: a
/// sender that asks for a barrier waits for that.
pub(super) fn receive(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<(usize, Option<Sender>), Errno> {
    let mut control = Control([0; CONTROL]);
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: `msghdr` is a plain C struct for which all zeroes is valid.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = CONTROL as _;
    let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
    // SAFETY: the header names places that live through the call, with their sizes.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) };
    let Ok(length) = usize::try_from(length) else { return Err(last_errno()) };
    let (mut credentials, mut pidfd) = (None, None);
    // SAFETY: the kernel has filled `control` with whole headers and their data, as far as `msg_controllen` says, and the
    // macros stay within that. Data may lie unaligned, so it is copied. Every descriptor in it was made for us, and nobody
    // else knows of it.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(&raw const header);
        while let Some(one) = at.as_ref() {
            let data = libc::CMSG_DATA(at);
            match (one.cmsg_level, one.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) => {
                    credentials = Some(data.cast::<libc::ucred>().read_unaligned());
                }
                (libc::SOL_SOCKET, SCM_PIDFD) => pidfd = descriptors(one, data).next(),
                (libc::SOL_SOCKET, libc::SCM_RIGHTS) => descriptors(one, data).for_each(drop),
                _ => {}
            }
            at = libc::CMSG_NXTHDR(&raw const header, at);
        }
    }
    let sender = credentials.map(|found| Sender {
        user: found.uid,
        pid: u32::try_from(found.pid).ok().filter(|pid| *pid > 0),
        pidfd,
    });
    Ok((length, sender))
}

/// The descriptors in the data of a header. One that could not be made is told as a number below zero.
///
/// # Safety
/// `data` is the data of `header`, and holds descriptors that belong to nobody yet; each is taken once.
unsafe fn descriptors(header: &libc::cmsghdr, data: *mut u8) -> impl Iterator<Item = OwnedFd> {
    // SAFETY: no length is shorter than that of nothing.
    let before = unsafe { libc::CMSG_LEN(0) } as usize;
    let count = wide(header.cmsg_len).saturating_sub(before) / std::mem::size_of::<RawFd>();
    (0..count).filter_map(move |number| {
        // SAFETY: the header says that so many numbers are there; the caller answers for the rest.
        unsafe {
            let descriptor = data.cast::<RawFd>().add(number).read_unaligned();
            (descriptor >= 0).then(|| OwnedFd::from_raw_fd(descriptor))
        }
    })
}

/// Whether nobody can be asked about a process any more; a zombie still can. Nothing is sent to it.
pub(super) fn is_reaped(pidfd: BorrowedFd<'_>) -> bool {
    let nothing: *const libc::siginfo_t = std::ptr::null();
    // SAFETY: no signal is sent, and the kernel takes no place for what would be said with it.
    let asked = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), 0, nothing, 0) };
    asked == -1 && last_errno() == Errno::SRCH
}

/// A length, which is of another type in every C library.
fn wide(length: impl TryInto<usize>) -> usize {
    length.try_into().unwrap_or(0)
}

/// `PIDFD_GET_INFO`, with the kernel's first form of its answer.
const GET_INFO: u64 = 0xC040_FF0B;
const INFO_GROUP: u64 = 1 << 2;
const INFO_EXIT: u64 = 1 << 3;

#[repr(C)]
struct Info {
    mask: u64,
    group: u64,
    numbers: [u32; 12],
}

/// The control group of the second hierarchy in which a process was when it ended (Linux 6.15).
pub(super) fn last_group(pidfd: BorrowedFd<'_>) -> Option<u64> {
    let mut info = Info { mask: INFO_GROUP | INFO_EXIT, group: 0, numbers: [0; 12] };
    // SAFETY: the number of the request has the size of `info` in it, which lives through the call.
    let asked = unsafe { libc::ioctl(pidfd.as_raw_fd(), GET_INFO as _, &raw mut info) };
    let told = INFO_GROUP | INFO_EXIT;
    (asked == 0 && info.mask & told == told).then_some(info.group)
}

/// A child that was just forked.
#[derive(Debug)]
pub(super) struct Forked {
    pub(super) pid: Pid,
    pub(super) pidfd: OwnedFd,
}

/// Forks a child, into a control group if one is given. The child runs `life` and ends with its answer.
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

/// As [`fork`], where the kernel or its guards do not let us use clone3.
pub(super) fn plain_fork(life: &mut dyn FnMut() -> i32) -> Result<Forked, Errno> {
    // SAFETY: as in `fork`.
    match unsafe { libc::fork() } {
        -1 => Err(last_errno()),
        0 => exit(life()),
        pid => {
            let pid = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
            let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?;
            Ok(Forked { pid, pidfd })
        }
    }
}

/// Forks a child that nobody waits for. It runs `life` and ends; true is success.
pub(super) fn fork_away(life: &mut dyn FnMut() -> bool) -> Result<(), Errno> {
    // SAFETY: as in `fork`.
    match unsafe { libc::fork() } {
        -1 => Err(last_errno()),
        0 => exit(i32::from(!life())),
        _ => Ok(()),
    }
}

/// Writes over words of this process's command line, and ends them with zeroes.
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

/// Ends the process without running anything of the parent's.
fn exit(code: i32) -> ! {
    // SAFETY: always allowed.
    unsafe { libc::_exit(code) }
}

/// Executes a program; returns only when that failed.
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

/// Gives back to the kernel what the allocator and the stack do not use now.
pub(super) fn trim_memory() {
    crate::memory::trim();
    trim_stack();
}

/// Gives back the pages that deeper calls have used before: a shim sleeps much and its start went deep.
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

/// Closes every descriptor from `first` on. Call it before anything is opened.
pub(super) fn close_from(first: u32) {
    // SAFETY: the caller has opened nothing yet: these came through exec and have no owner here.
    unsafe {
        libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0);
    }
}

/// Has every descriptor from `first` on closed at exec.
pub(super) fn close_at_exec_from(first: u32) {
    // SAFETY: sets a flag on descriptors; closes nothing.
    unsafe {
        libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
}

fn last_errno() -> Errno {
    let code = std::io::Error::last_os_error().raw_os_error();
    code.map_or(Errno::IO, Errno::from_raw_os_error)
}
