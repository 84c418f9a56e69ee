//! Sockets at paths of any length, and descriptors sent along with bytes.

use pinfold_lock::peer::Other;
use pinfold_lock::private::{self, Wider};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The kernel takes 253 descriptors with one message.
pub(crate) const MOST_DESCRIPTORS: usize = 253;

/// The address of a path; one that is too long for the kernel is named through its folder.
///
/// The descriptor has to live until the address was used.
fn address(path: &Path) -> Result<(SocketAddrUnix, Option<OwnedFd>), Errno> {
    match SocketAddrUnix::new(path) {
        Err(Errno::NAMETOOLONG) => {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                return Err(Errno::NAMETOOLONG);
            };
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = rustix::fs::open(parent, flags, Mode::empty())?;
            let short = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
            Ok((SocketAddrUnix::new(short)?, Some(folder)))
        }
        other => Ok((other?, None)),
    }
}

/// Listens at a path that nobody else listens at: the caller holds the session's lock.
pub(crate) fn listen(path: &Path) -> Result<OwnedFd, Errno> {
    match rustix::fs::unlink(path) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno),
    }
    let (address, _folder) = address(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&socket, &address)?;
    // Nobody could connect before: it does not listen yet.
    rustix::fs::chmod(path, Mode::RUSR | Mode::WUSR)?;
    rustix::net::listen(&socket, 8)?;
    Ok(socket)
}

/// A socket that listens, and the file that leads to it.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: OwnedFd,
    path: PathBuf,
    file: (u64, u64),
}

impl Listener {
    /// Listens at the first of several paths where that is possible. Folders that were removed are made again.
    pub(crate) fn open(paths: &[&Path]) -> Result<Self, Errno> {
        let mut problem = Errno::INVAL;
        for path in paths {
            make_folders(path);
            // Whoever may write to the folder can put another socket there.
            if let Err(error) =
                path.parent().map_or(Ok(()), |folder| private::make_private(folder, Wider::Tighten))
            {
                problem = error.errno();
                continue;
            }
            match listen(path).and_then(|socket| Ok((socket, file_at(path)?))) {
                Ok((socket, file)) => return Ok(Self { socket, path: (*path).to_owned(), file }),
                Err(errno) => problem = errno,
            }
        }
        Err(problem)
    }

    /// Whether its path still leads to it: whoever empties a folder for sockets does not ask whose they are.
    pub(crate) fn is_there(&self) -> bool {
        file_at(&self.path).is_ok_and(|file| file == self.file)
    }

    /// Takes the path away, if it is still its own.
    pub(crate) fn remove(&self) {
        if self.is_there() {
            let _ = rustix::fs::unlink(&self.path);
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn file_at(path: &Path) -> Result<(u64, u64), Errno> {
    rustix::fs::lstat(path).map(|file| (file.st_dev, file.st_ino))
}

/// The folder of a socket, and the one above it; more than that is not ours.
fn make_folders(socket: &Path) {
    let Some(folder) = socket.parent().filter(|folder| !folder.exists()) else { return };
    for missing in [folder.parent(), Some(folder)].into_iter().flatten() {
        let _ = rustix::fs::mkdir(missing, Mode::RWXU);
    }
}

/// Connects to a path where a process of this user listens; at any other one it is `EPERM`, and nothing was said.
pub(crate) fn connect(path: &Path) -> Result<OwnedFd, Errno> {
    let (address, _folder) = address(path)?;
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    loop {
        match rustix::net::connect(&socket, &address) {
            Err(Errno::INTR) => {}
            other => break other?,
        }
    }
    if Other::of(&socket)?.is_own() { Ok(socket) } else { Err(Errno::PERM) }
}

/// Sends bytes with descriptors; says how many bytes went.
pub(crate) fn send_with(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<usize, Errno> {
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

/// Receives bytes and the descriptors that come with them; says how many bytes came.
pub(crate) fn receive_with(
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
