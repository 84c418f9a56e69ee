//! Datagrams together with their sender, according to the kernel.
#![expect(unsafe_code, reason = "rustix does not know the pidfd of a sender")]

use crate::sys::last_errno;
use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// The process that sent a message.
#[derive(Debug)]
pub struct DatagramSender {
    /// Its user id.
    pub user: u32,
    /// Its pid; `None` if it is in a pid namespace that cannot be seen from here.
    pub pid: Option<u32>,
    /// Stands for the sender even if its pid has been reused; for one that was already reaped, only Linux
    /// 6.17 and later give it.
    pub pidfd: Option<OwnedFd>,
}

/// Not in libc; the number is the same on every architecture that std supports.
const PASS_PIDFD: libc::c_int = 76;
const SCM_PIDFD: libc::c_int = 4;
/// Room for the credentials, a pidfd and the most descriptors that can come (253): the first must not push
/// out the rest.
const CONTROL: usize = 2048;

/// The buffer for control messages, aligned like their headers.
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// Makes every message of a socket come with its sender.
///
/// # Errors
/// The kernel's error.
pub fn name_senders(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    set_option(socket, libc::SO_PASSCRED)?;
    // Before Linux 6.5 there is no pidfd, and the pid has to do.
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

/// Receives one message without waiting: its length and its sender. Descriptors that came along are closed at
/// once, because a sender that asks for a barrier waits for that.
///
/// # Errors
/// `EAGAIN` if there is none, otherwise the kernel's error.
pub fn receive(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<(usize, Option<DatagramSender>), Errno> {
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
    // SAFETY: the kernel has filled `control` with whole headers and their data, as far as `msg_controllen`
    // says, and the macros stay within that. Data may be unaligned, so it is copied. Every descriptor in it
    // was made for us, and nothing else knows of it.
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
    let sender = credentials.map(|found| DatagramSender {
        user: found.uid,
        pid: u32::try_from(found.pid).ok().filter(|pid| *pid > 0),
        pidfd,
    });
    Ok((length, sender))
}

/// Returns the descriptors in the data of a header. One that could not be created is a negative number.
///
/// # Safety
/// `data` is the data of `header`, and holds descriptors that have no owner yet; each is taken once.
unsafe fn descriptors(header: &libc::cmsghdr, data: *mut u8) -> impl Iterator<Item = OwnedFd> {
    // SAFETY: computes the length of a header without data.
    let before = unsafe { libc::CMSG_LEN(0) } as usize;
    let count = wide(header.cmsg_len).saturating_sub(before) / std::mem::size_of::<RawFd>();
    (0..count).filter_map(move |number| {
        // SAFETY: the header says that this many numbers are there; the caller guarantees the rest.
        unsafe {
            let descriptor = data.cast::<RawFd>().add(number).read_unaligned();
            (descriptor >= 0).then(|| OwnedFd::from_raw_fd(descriptor))
        }
    })
}

/// Converts a length, whose type differs between C libraries.
fn wide(length: impl TryInto<usize>) -> usize {
    length.try_into().unwrap_or(0)
}
