//! Sockets at paths of any length, and descriptors sent along with bytes.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The kernel accepts 253 descriptors with one message.
pub const MOST_DESCRIPTORS: usize = 253;

/// The longest socket path that the kernel accepts, in bytes.
const LONGEST_PATH: usize = 107;

/// Returns a path that the kernel accepts for the socket at this one: one that is too long is reached through its folder.
///
/// The descriptor has to live until the path has been used.
///
/// # Errors
/// The folder cannot be opened, or the path has no file name.
pub fn reachable(path: &Path) -> Result<(PathBuf, Option<OwnedFd>), Errno> {
    if path.as_os_str().len() <= LONGEST_PATH {
        return Ok((path.to_owned(), None));
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::NAMETOOLONG);
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(parent, flags, Mode::empty())?;
    let short = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
    Ok((short, Some(folder)))
}

/// Returns the address of the socket at a path; the descriptor has to live until it has been used.
fn address(path: &Path) -> Result<(SocketAddrUnix, Option<OwnedFd>), Errno> {
    let (short, folder) = reachable(path)?;
    Ok((SocketAddrUnix::new(short)?, folder))
}

/// Listens at a path that no other process listens at; only this user may connect. Whatever is at the path is removed.
///
/// # Errors
/// The kernel's error.
pub fn listen(path: &Path) -> Result<OwnedFd, Errno> {
    match rustix::fs::unlink(path) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno),
    }
    let (address, _folder) = address(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&socket, &address)?;
    // No process could connect before this: the socket does not listen yet.
    rustix::fs::chmod(path, Mode::RUSR | Mode::WUSR)?;
    rustix::net::listen(&socket, 8)?;
    Ok(socket)
}

/// Connects to a path and waits no longer than `within` for the listener to have room.
///
/// # Errors
/// The kernel's error.
pub fn connect(path: &Path, within: Option<Duration>) -> Result<OwnedFd, Errno> {
    let (address, _folder) = address(path)?;
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    if within.is_some() {
        set_socket_timeout(&socket, Timeout::Send, within)?;
    }
    rustix::io::retry_on_intr(|| rustix::net::connect(&socket, &address))?;
    Ok(socket)
}

/// Sends bytes with descriptors; returns how many bytes were sent.
///
/// # Errors
/// The kernel's error.
pub fn send_with(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::INVAL);
    }
    loop {
        let slices = [IoSlice::new(bytes)];
        match rustix::net::sendmsg(socket.as_fd(), &slices, &mut control, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Receives bytes and the descriptors that come with them; returns how many bytes came.
///
/// # Errors
/// The kernel's error.
pub fn receive_with(
    socket: impl AsFd,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let mut slices = [IoSliceMut::new(bytes)];
        match rustix::net::recvmsg(socket.as_fd(), &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            other => break other?,
        }
    };
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(came) = message {
            descriptors.extend(came);
        }
    }
    Ok(received.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_socket_at_a_path_of_any_length_is_reached() {
        let temp = tempfile::tempdir().unwrap();
        let deep = temp.path().join("x".repeat(150));
        std::fs::create_dir(&deep).unwrap();
        for folder in [temp.path(), &deep] {
            let path = folder.join("socket");
            let listening = listen(&path).unwrap();
            let mut one = std::os::unix::net::UnixStream::from(connect(&path, None).unwrap());
            let other = rustix::net::accept(&listening).unwrap();
            one.write_all(b"hello").unwrap();
            let mut heard = [0; 5];
            std::os::unix::net::UnixStream::from(other).read_exact(&mut heard).unwrap();
            assert_eq!(&heard, b"hello");
        }
        let nowhere = temp.path().join("nowhere");
        assert_eq!(connect(&nowhere, Some(Duration::from_secs(1))).unwrap_err(), Errno::NOENT);
    }

    #[test]
    fn a_descriptor_comes_along_with_its_byte() {
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        let (read, write) = rustix::pipe::pipe().unwrap();
        assert_eq!(send_with(&one, &[7], &[write.as_fd()]), Ok(1));
        drop(write);
        let (mut byte, mut came) = ([0], Vec::new());
        assert_eq!(receive_with(&other, &mut byte, &mut came), Ok(1));
        assert_eq!((byte, came.len()), ([7], 1));
        assert_eq!(rustix::io::write(&came[0], b"x"), Ok(1));
        assert_eq!(rustix::io::read(&read, &mut byte), Ok(1));
    }
}
